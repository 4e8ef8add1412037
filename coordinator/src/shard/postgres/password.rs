//! Passwords that no URL has, as libpq finds them.

use std::{env, fs, os::unix::fs::MetadataExt as _, path::PathBuf};

use tokio_postgres::Config;
use tracing::warn;

/// The password for the server at `place`, host and port, from `PGPASSWORD`, or from a password file.
pub(super) fn of(config: &Config, place: &str, database: &str) -> Option<String> {
    if let Ok(password) = env::var("PGPASSWORD") {
        return Some(password);
    }
    let path = path()?;
    let lines = fs::read_to_string(&path).ok()?;
    if fs::metadata(&path).ok()?.mode() & 0o077 != 0 {
        let path = path.display();
        warn!("others may read {path}: its passwords are not used, as libpq does not");
        return None;
    }
    let (host, port) = place.rsplit_once(':').unwrap_or(("localhost", "5432"));
    let host = host.trim_matches(['[', ']']);
    let user = config.get_user().map(str::to_owned);
    let user = user.or_else(|| env::var("USER").ok()).unwrap_or_default();
    lines
        .lines()
        .find_map(|line| of_line(line, [host, port, database, &user]))
}

/// The file that `PGPASSFILE` names, or `~/.pgpass`.
fn path() -> Option<PathBuf> {
    let named = env::var_os("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pgpass")))
}

/// The password of a line `host:port:database:user:password`, if it is for these. A field may be `*`, and a backslash
/// is before a `:` or a backslash that belongs to it.
fn of_line(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ':' if fields.len() <= wanted.len() => fields.push(String::new()),
            '\\' => fields.last_mut()?.extend(letters.next()),
            _ => fields.last_mut()?.push(letter),
        }
    }
    let password = fields.pop()?;
    let fits = fields.len() == wanted.len()
        && fields
            .iter()
            .zip(wanted)
            .all(|(field, is)| field == "*" || field == is);
    fits.then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_server_has_its_password() {
        let of = |line| of_line(line, ["db", "5432", "locks", "coin"]);
        assert_eq!(of("db:5432:locks:coin:s3cret"), Some("s3cret".into()));
        assert_eq!(of("*:*:*:*:a:b"), Some("a:b".into()));
        assert_eq!(of(r"d\b:*:*:coin:a\:\\b"), Some(r"a:\b".into()));
        for other in [
            "",
            "# db:5432:locks:coin:s3cret",
            "db:5432:locks:coin",
            "other:5432:locks:coin:s3cret",
            "db:5433:locks:coin:s3cret",
            r"\*:5432:other:coin:s3cret",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
