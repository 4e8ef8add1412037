//! Where a server is.

use std::{fmt, str::FromStr};

use mysql_async::{ClientIdentity, Opts, OptsBuilder, SslOpts};

use crate::shard::{
    server::{Kind, is_plain},
    tls::{Tls, files, read, take},
};

/// The query parameter that says whether TLS is used.
const MODE: &str = "ssl-mode";

/// Those that name files of TLS, as MariaDB's programs have them.
const FILES: [&str; 3] = ["ssl-ca", "ssl-cert", "ssl-key"];

/// The address of a server: `mysql://user:password@host:port/database`, or `mariadb://`. Shown without user and password.
///
/// `?ssl-mode=VERIFY_IDENTITY` is for TLS: the server's certificate must be for the host that the address names. It is
/// checked against Mozilla's authorities, or against those in a file: `&ca=/path/ca.pem`. For servers that require a client
/// certificate, `&cert=/path/client.pem&key=/path/client.key` names it and its key. The names of MariaDB's programs,
/// `ssl-ca`, `ssl-cert` and `ssl-key`, are the same. All files are PEM. They are read when the address is parsed. If an application has several providers of cryptography for rustls, it must
/// install a default one.
#[derive(Clone)]
pub struct MysqlAddress {
    pub(super) opts: Opts,
    shown: String,
}

/// The address is not one of MariaDB. It is not repeated: it may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address of MariaDB (mysql://user:password@host:port/database): {0}")]
pub struct MysqlAddressError(String);

impl MysqlAddress {
    /// The server at `shown`, with the credentials and certificates of this one: servers of one topology share them.
    ///
    /// # Errors
    ///
    /// [`MysqlAddressError`].
    pub(crate) fn sibling(&self, shown: &str) -> Result<Self, MysqlAddressError> {
        let Self { opts, shown } = Self::parse(shown, self.opts.ssl_opts())?;
        let login = OptsBuilder::from_opts(opts)
            .user(self.opts.user())
            .pass(self.opts.pass());
        let opts = login.into();
        Ok(Self { opts, shown })
    }

    /// Without user, password and files.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// A server with TLS is reached as `tls` says; if that is `None`, as the URL says.
    fn parse(url: &str, tls: Option<&SslOpts>) -> Result<Self, MysqlAddressError> {
        let refused = |reason: &str| MysqlAddressError(reason.to_owned());
        if Kind::of(url) != Kind::Mysql {
            return Err(refused("it begins otherwise"));
        }
        let (url, [mode]) = take(&url.replacen("mariadb://", "mysql://", 1), [MODE]);
        let (url, names, paths) = files(&url, FILES);
        let opts = Opts::from_url(&url).map_err(|_| refused("it cannot be read"))?;
        let tls = asked(mode.as_deref(), names, paths, tls).map_err(MysqlAddressError)?;
        let database = opts.db_name().filter(|name| !name.is_empty());
        let database = database.ok_or(refused("it names no database"))?;
        let host = match opts.ip_or_hostname() {
            host if host.contains(':') && !host.starts_with('[') => format!("[{host}]"),
            host => host.to_owned(),
        };
        let socket = opts.socket().unwrap_or_default();
        if !is_plain(database, "") || !is_plain(&host, ":[]") || !is_plain(socket, "/") {
            return Err(refused(
                "the host and the database are of letters, digits, '_', '-', '.' and '$'; other characters of a user or \
                 a password are percent-encoded",
            ));
        }
        let shown = match (opts.socket(), &tls) {
            (Some(_), Some(_)) => return Err(refused("ssl-mode=VERIFY_IDENTITY is for a host")),
            (Some(socket), None) => format!("mysql://{host}/{database}?socket={socket}"),
            (None, None) => format!("mysql://{host}:{}/{database}", opts.tcp_port()),
            (None, Some(_)) => {
                let port = opts.tcp_port();
                format!("mysql://{host}:{port}/{database}?ssl-mode=VERIFY_IDENTITY")
            }
        };
        let opts = OptsBuilder::from_opts(opts).ssl_opts(tls).into();
        Ok(Self { opts, shown })
    }
}

/// The TLS that the parameters ask for, or `known` instead of it.
fn asked(
    mode: Option<&str>,
    names: [&str; 3],
    paths: [Option<String>; 3],
    known: Option<&SslOpts>,
) -> Result<Option<SslOpts>, String> {
    let paths = paths.each_ref().map(Option::as_deref);
    match (mode, known) {
        (Some("VERIFY_IDENTITY"), Some(known)) => Ok(Some(known.clone())),
        (Some("VERIFY_IDENTITY"), None) => of_files(names, paths).map(Some),
        (None | Some("DISABLED"), _) if paths == [None; 3] => Ok(None),
        (None | Some("DISABLED"), _) => {
            let [ca, cert, key] = names;
            Err(format!(
                "{ca}, {cert} and {key} are for ssl-mode=VERIFY_IDENTITY"
            ))
        }
        _ => Err("ssl-mode is VERIFY_IDENTITY or DISABLED: certificates are checked always".into()),
    }
}

fn of_files(names: [&str; 3], paths: [Option<&str>; 3]) -> Result<SslOpts, String> {
    let [ca, cert, key] = paths;
    if paths != [None; 3] {
        // Says what is wrong with them, and where.
        Tls::of(names, paths)?;
    }
    let file = |place: usize, path: Option<&str>| {
        let file = path.map(|path| read(names[place], path));
        file.transpose()
    };
    let mut tls = SslOpts::default();
    if let Some(ca) = file(0, ca)? {
        tls = tls
            .with_root_certs(vec![ca.into()])
            .with_disable_built_in_roots(true);
    }
    let identity = file(1, cert)?.zip(file(2, key)?);
    let identity = identity.map(|(cert, key)| ClientIdentity::new(cert.into(), key.into()));
    Ok(tls.with_client_identity(identity))
}

impl FromStr for MysqlAddress {
    type Err = MysqlAddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        Self::parse(url, None)
    }
}

impl fmt::Display for MysqlAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for MysqlAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown_or_repeated() {
        let address: MysqlAddress = "mariadb://coin:s3cret@db:3307/locks".parse().expect("one");
        assert_eq!(
            format!("{address} {address:?}"),
            "mysql://db:3307/locks mysql://db:3307/locks"
        );
        let sibling = address.sibling("mysql://other:1/locks").expect("one");
        assert_eq!(
            (sibling.opts.user(), sibling.opts.pass()),
            (Some("coin"), Some("s3cret"))
        );
        let error = "mysql://coin:s3cret@db:port/x".parse::<MysqlAddress>();
        assert!(!error.expect_err("no port").to_string().contains("s3cret"));
    }

    #[test]
    fn certificates_are_checked_or_not_asked_for() {
        let plain: MysqlAddress = "mysql://db/locks?ssl-mode=DISABLED".parse().expect("one");
        assert!(plain.opts.ssl_opts().is_none() && plain.as_str() == "mysql://db:3306/locks");
        for (query, why) in [
            ("ssl-mode=REQUIRED", "VERIFY_IDENTITY or DISABLED"),
            ("ssl-ca=/ca.pem", "for ssl-mode=VERIFY_IDENTITY"),
            ("ssl-mode=VERIFY_IDENTITY&ssl-ca=/none", "ssl-ca=/none: "),
            ("ssl-mode=VERIFY_IDENTITY&ssl-key=/none", "ssl-key=/none: "),
        ] {
            let error = format!("mysql://db/locks?{query}").parse::<MysqlAddress>();
            let error = error.expect_err(query).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
