//! `ringfence uninstall`: deletes the libraries of Redis Functions that releases left on servers.

use std::{fmt, process::ExitCode};

use ringfence_coordinator::{
    ids::ClientId,
    random::Random,
    shard::{
        ServerOptions, ShardError,
        redis::{Functions, RedisOptions},
    },
};
use serde::Serialize;

use crate::{
    FAILED,
    ring::{self, RingError},
    seeds::{Seeds, Servers},
    table::Table,
};

const AFTER: &str = "\
Consequences for running processes:
  A running process of another release loads its library again. It reconnects to
  the server; no lock is lost.

Exit codes:
    0  the libraries were deleted, or there were none
    1  a server was unreachable or misconfigured; the libraries on the others
       were deleted
    2  invalid command line";

/// Delete the libraries of Redis Functions that other releases left on servers
///
/// Each release of Ringfence loads one library, ringfence_<hash>, on each server. Locks, counters
/// and the topology stay, and so do libraries of other programs. Only the named servers are asked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// Delete libraries of Redis Functions
    #[arg(long, required = true)]
    functions: bool,
    /// Also delete the library of this release
    #[arg(long)]
    all: bool,
    /// Delete nothing: show what would be deleted
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The libraries of all servers, and the servers that failed.
#[derive(Debug, Serialize)]
struct Report {
    dry_run: bool,
    libraries: Vec<Found>,
    unreachable: Vec<Unreachable>,
}

/// A library on a server.
#[derive(Debug, Serialize)]
struct Found {
    server: String,
    library: String,
    this_release: bool,
    /// On a dry run: it would be deleted.
    deleted: bool,
}

#[derive(Debug, Serialize)]
struct Unreachable {
    server: String,
    error: String,
}

/// Runs the command, and prints the result.
pub(crate) fn run(args: &Args) -> Result<ExitCode, RingError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let servers = args.seeds.servers()?;
    let report = runtime.block_on(args.report(&servers))?;
    ring::print(&report, args.json)?;
    for Unreachable { error, .. } in &report.unreachable {
        crate::say(&servers.located(error));
    }
    match report.unreachable.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::from(FAILED)),
    }
}

impl Args {
    async fn report(&self, servers: &Servers) -> Result<Report, RingError> {
        let mut report = Report {
            dry_run: self.dry_run,
            libraries: Vec::new(),
            unreachable: Vec::new(),
        };
        let me = ClientId(Random::from_os().id());
        for options in servers.options(me) {
            // Others have no libraries.
            let ServerOptions::Redis(options) = options else {
                continue;
            };
            let server = options.address.to_string();
            if let Err(error) = self.of_server(options, &mut report.libraries).await {
                let error = error.to_string();
                report.unreachable.push(Unreachable { server, error });
            }
        }
        Ok(report)
    }

    /// Deletes libraries of one server, and adds each to `found`.
    async fn of_server(
        &self,
        options: RedisOptions,
        found: &mut Vec<Found>,
    ) -> Result<(), ShardError> {
        let server = options.address.to_string();
        let mut functions = Functions::connect(options).await?;
        for library in functions.libraries().await? {
            let deleted = self.all || !library.is_current;
            if deleted && !self.dry_run {
                functions.delete(&library).await?;
            }
            found.push(Found {
                server: server.clone(),
                library: library.name,
                this_release: library.is_current,
                deleted,
            });
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.libraries.is_empty() {
            return match self.unreachable.is_empty() {
                true => writeln!(out, "no library of Ringfence is on these servers"),
                false => Ok(()),
            };
        }
        let mut table = Table::new(&["server", "library", "release", "result"]);
        for found in &self.libraries {
            let release = match found.this_release {
                true => "this one",
                false => "another",
            };
            let result = match (found.deleted, self.dry_run) {
                (true, false) => "deleted",
                (true, true) => "would be deleted",
                (false, _) => "kept",
            };
            let cells = [&found.server, &found.library, release, result];
            table.row(cells.map(str::to_owned));
        }
        write!(out, "{table}")
    }
}
