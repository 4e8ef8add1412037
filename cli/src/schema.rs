//! `ringfence schema`: the statements that make the tables of a server.

use std::{io, process::ExitCode};

use clap::Subcommand;
use ringfence_coordinator::{
    name::KeyPrefix,
    shard::{
        mysql,
        postgres::{self, Tables},
    },
};

use super::show;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Postgres(Postgres),
    Mysql(Mysql),
}

/// Print the tables and functions of a shard on PostgreSQL ≥ 15
///
/// ringfence schema postgres --role app | psql postgres://owner@host/database
///
/// `ringfence ring init` and `ringfence ring add` make logged tables by themselves, if they are
/// missing, and if the user may make a schema. The statements may be repeated, and keep what is
/// stored.
#[derive(clap::Args, Debug)]
pub(crate) struct Postgres {
    /// The name of the schema: the prefix of the clients
    #[arg(long, value_name = "NAME", default_value_t, value_parser = prefix)]
    prefix: KeyPrefix,
    /// Unlogged tables: no commit waits for the disk, and after a crash they are empty, as Redis is
    #[arg(long)]
    unlogged: bool,
    /// Also print the rights of this role: all that a client needs
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

/// Print the tables and procedures of a shard on MariaDB ≥ 10.11
///
/// ringfence schema mysql | mariadb --user=owner database
///
/// `ringfence ring init` and `ringfence ring add` make them by themselves, if they are missing, which
/// needs CREATE, CREATE ROUTINE and ALTER ROUTINE. A client needs SELECT, INSERT, UPDATE, DELETE and
/// EXECUTE in the database. The statements may be repeated, and keep what is stored.
#[derive(clap::Args, Debug)]
pub(crate) struct Mysql {
    /// What the names of the tables begin with: the prefix of the clients
    #[arg(long, value_name = "NAME", default_value_t, value_parser = prefix)]
    prefix: KeyPrefix,
}

fn prefix(text: &str) -> Result<KeyPrefix, String> {
    KeyPrefix::new(text).map_err(|error| error.to_string())
}

/// Prints the statements.
pub(crate) fn run(command: &Command) -> io::Result<ExitCode> {
    show(match command {
        Command::Postgres(args) => args.statements(),
        Command::Mysql(args) => mysql::schema(&args.prefix),
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Postgres {
    fn statements(&self) -> String {
        let tables = match self.unlogged {
            true => Tables::Unlogged,
            false => Tables::Logged,
        };
        let rights = self.role.as_deref();
        let rights = rights.map(|role| postgres::grants(&self.prefix, role));
        let tables = postgres::schema(&self.prefix, tables);
        format!("{tables}\n{}", rights.unwrap_or_default())
    }
}
