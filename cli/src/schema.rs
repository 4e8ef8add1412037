//! `ringfence schema`: the statements that make the tables of a server.

use std::{io, process::ExitCode};

use clap::Subcommand;
use ringfence_coordinator::{
    name::KeyPrefix,
    shard::postgres::{self, Tables},
};

use super::show;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Postgres(Postgres),
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

fn prefix(text: &str) -> Result<KeyPrefix, String> {
    KeyPrefix::new(text).map_err(|error| error.to_string())
}

/// Prints the statements.
pub(crate) fn run(Command::Postgres(args): &Command) -> io::Result<ExitCode> {
    let tables = match args.unlogged {
        true => Tables::Unlogged,
        false => Tables::Logged,
    };
    let rights = args.role.as_deref();
    let rights = rights.map(|role| postgres::grants(&args.prefix, role));
    let tables = postgres::schema(&args.prefix, tables);
    show(format!("{tables}\n{}", rights.unwrap_or_default()))?;
    Ok(ExitCode::SUCCESS)
}
