//! Where a server is.

use std::{fmt, str::FromStr};

use tokio_postgres::{Config, config::Host};

use crate::shard::server::{Kind, is_plain};

/// The address of a server: `postgres://user:password@host:port/database`. Shown without user and password.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    shown: String,
}

/// The address is not one of PostgreSQL. It is not repeated: it may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address of PostgreSQL (postgres://user:password@host:port/database): {0}")]
pub struct PostgresAddressError(String);

impl PostgresAddress {
    /// The server at `shown`, with the credentials of this one: servers of one topology share them.
    ///
    /// # Errors
    ///
    /// [`PostgresAddressError`].
    pub(crate) fn sibling(&self, shown: &str) -> Result<Self, PostgresAddressError> {
        let mut sibling: Self = shown.parse()?;
        if let Some(user) = self.config.get_user() {
            sibling.config.user(user);
        }
        if let Some(password) = self.config.get_password() {
            sibling.config.password(password);
        }
        Ok(sibling)
    }

    /// Without user and password.
    pub fn as_str(&self) -> &str {
        &self.shown
    }
}

impl FromStr for PostgresAddress {
    type Err = PostgresAddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        if Kind::of(url) != Kind::Postgres {
            return Err(PostgresAddressError("it begins otherwise".into()));
        }
        let config = url.parse::<Config>();
        let config = config.map_err(|_| PostgresAddressError("it cannot be read".into()))?;
        let [host] = config.get_hosts() else {
            let reason = "it names one server";
            return Err(PostgresAddressError(reason.into()));
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let database = config.get_dbname().or(config.get_user());
        let database = database.unwrap_or("postgres");
        let is_plain_host = match host {
            Host::Tcp(host) => is_plain(host, ":") && !host.is_empty(),
            Host::Unix(folder) => folder.to_str().is_some_and(|folder| is_plain(folder, "/")),
        };
        if !is_plain_host || !is_plain(database, "") || database.is_empty() {
            let reason = "the host and the database are of letters, digits, '_', '-', '.' and '$'; other characters of \
                          a user or a password are percent-encoded";
            return Err(PostgresAddressError(reason.into()));
        }
        let shown = match host {
            Host::Tcp(host) if host.contains(':') => {
                format!("postgres://[{host}]:{port}/{database}")
            }
            Host::Tcp(host) => format!("postgres://{host}:{port}/{database}"),
            Host::Unix(folder) => {
                format!(
                    "postgres:///{database}?host={}&port={port}",
                    folder.display()
                )
            }
        };
        Ok(Self { config, shown })
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown_or_repeated() {
        let address: PostgresAddress = "postgres://coin:s3cret@db:6543/locks".parse().expect("one");
        assert_eq!(
            format!("{address} {address:?}"),
            "postgres://db:6543/locks postgres://db:6543/locks"
        );
        let sibling = address.sibling("postgres://other:1/locks").expect("one");
        assert_eq!(sibling.config.get_password(), Some(&b"s3cret"[..]));
        assert_eq!(sibling.as_str(), "postgres://other:1/locks");
        let error = "postgres://coin:s3cret@db:port".parse::<PostgresAddress>();
        assert!(!error.expect_err("no port").to_string().contains("s3cret"));
    }

    #[test]
    fn a_database_without_a_name_is_refused() {
        for url in ["postgres://:@db", "postgres://:s3cret@db/"] {
            let error = url.parse::<PostgresAddress>().expect_err(url);
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
