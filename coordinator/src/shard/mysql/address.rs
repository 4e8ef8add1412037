//! Where a server is.

use std::{fmt, str::FromStr};

use mysql_async::{Opts, OptsBuilder};

use crate::shard::server::{Kind, is_plain};

/// The address of a server: `mysql://user:password@host:port/database`, or `mariadb://`. Shown without user and password.
#[derive(Clone)]
pub struct MysqlAddress {
    pub(super) opts: Opts,
    shown: String,
}

/// The address is not one of MariaDB. It is not repeated: it may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address of MariaDB (mysql://user:password@host:port/database): {0}")]
pub struct MysqlAddressError(&'static str);

impl MysqlAddress {
    /// The server at `shown`, with the credentials of this one: servers of one topology share them.
    ///
    /// # Errors
    ///
    /// [`MysqlAddressError`].
    pub(crate) fn sibling(&self, shown: &str) -> Result<Self, MysqlAddressError> {
        let Self { opts, shown } = shown.parse()?;
        let login = OptsBuilder::from_opts(opts)
            .user(self.opts.user())
            .pass(self.opts.pass());
        let opts = login.into();
        Ok(Self { opts, shown })
    }

    /// Without user and password.
    pub fn as_str(&self) -> &str {
        &self.shown
    }
}

impl FromStr for MysqlAddress {
    type Err = MysqlAddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        if Kind::of(url) != Kind::Mysql {
            return Err(MysqlAddressError("it begins otherwise"));
        }
        let url = url.replacen("mariadb://", "mysql://", 1);
        let opts = Opts::from_url(&url).map_err(|_| MysqlAddressError("it cannot be read"))?;
        let database = opts.db_name().filter(|name| !name.is_empty());
        let database = database.ok_or(MysqlAddressError("it names no database"))?;
        let host = match opts.ip_or_hostname() {
            host if host.contains(':') && !host.starts_with('[') => format!("[{host}]"),
            host => host.to_owned(),
        };
        let socket = opts.socket().unwrap_or_default();
        if !is_plain(database, "") || !is_plain(&host, ":[]") || !is_plain(socket, "/") {
            return Err(MysqlAddressError(
                "the host and the database are of letters, digits, '_', '-', '.' and '$'; other characters of a user or \
                 a password are percent-encoded",
            ));
        }
        let shown = match opts.socket() {
            Some(socket) => format!("mysql://{host}/{database}?socket={socket}"),
            None => format!("mysql://{host}:{}/{database}", opts.tcp_port()),
        };
        Ok(Self { opts, shown })
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
}
