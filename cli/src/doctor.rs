//! `ringfence doctor`: whether servers can have locks, and what to do if not.

use std::{fmt, process::ExitCode, sync::Arc, time::Duration};

use ringfence_client::{BootClock, BuildError, Client, TopologyError};
use ringfence_coordinator::{
    ids::ClientId,
    random::Random,
    shard::{
        ServerOptions,
        redis::{Checkup, checkup},
    },
};
use serde::Serialize;

use crate::{
    FAILED,
    ring::{self, RingError},
    seeds::Seeds,
    table::Table,
};

const AFTER: &str = "\
Exit codes:
    0  locks can be on every server
    1  a server was unreachable or cannot be used: the reason and the cure are printed
    2  invalid command line

Nothing is changed but that the functions of Ringfence are loaded on servers of Redis, as by any use. The clock is the
server's against this machine's: the difference does no harm, but for the ids of counters, which tell when a
request was made.";

/// Longest look for a topology.
const LOOK: Duration = Duration::from_secs(2);

/// Check servers: version, rights, settings, clock, connections, topology
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    /// Servers, as for --redis
    #[arg(value_name = "URL", conflicts_with_all = ["redis", "redis_file"])]
    urls: Vec<String>,
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    servers: Vec<Server>,
}

#[derive(Debug, Serialize)]
struct Server {
    server: String,
    /// Whether locks can be on it.
    ok: bool,
    problem: Option<String>,
    version: Option<String>,
    role: Option<String>,
    eviction: Option<String>,
    persistence: Option<String>,
    clock_ahead_ms: Option<i64>,
    connections_left: Option<u64>,
    /// The topology that the server belongs to, and its version.
    topology: Option<String>,
}

/// Checks the servers, and prints the result.
pub(crate) fn run(args: &Args) -> Result<ExitCode, RingError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let servers = args.seeds.with(&args.urls).servers()?;
    let random = Random::from_os();
    let me = ClientId(random.id());
    let random = Arc::new(random);
    let report = runtime.block_on(async {
        let mut found = Vec::new();
        for (options, url) in servers.options(me).into_iter().zip(servers.urls()) {
            found.push(Server::look(options, url, &random).await);
        }
        Report { servers: found }
    });
    ring::print(&report, args.json)?;
    match report.servers.iter().all(|server| server.ok) {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::from(FAILED)),
    }
}

impl Server {
    async fn look(options: ServerOptions, url: &str, random: &Arc<Random>) -> Self {
        let found = match &options {
            ServerOptions::Redis(options) => checkup(options, &BootClock).await,
            others => Checkup {
                problem: (others.shard(random).connect_control().await)
                    .err()
                    .map(|error| error.to_string()),
                ..Checkup::default()
            },
        };
        let (topology, problem) = match found.problem {
            Some(problem) => (None, Some(problem)),
            None => topology(url).await,
        };
        Self {
            server: options.address().to_owned(),
            ok: problem.is_none(),
            problem,
            version: found.version,
            role: found.role,
            eviction: found.eviction,
            persistence: found.persistence,
            clock_ahead_ms: found.clock_ahead_ms,
            connections_left: found.connections_left,
            topology,
        }
    }
}

/// The topology of the server at `url`, or why none can be told.
async fn topology(url: &str) -> (Option<String>, Option<String>) {
    let client = Client::builder().servers(url).existing_topology(true);
    match client.connect_within(LOOK).build().await {
        Ok(client) => {
            let topology = client.topology();
            let found = format!("{}, version {}", topology.id, topology.version);
            client.close().await;
            (Some(found), None)
        }
        Err(BuildError::Topology(TopologyError::Absent)) => (None, None),
        Err(error) => (None, Some(error.to_string())),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "server",
            "locks",
            "version",
            "role",
            "if full",
            "persistence",
            "clock",
            "connections",
            "topology",
        ]);
        let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        for server in &self.servers {
            let topology = server.topology.as_deref().map(|text| {
                let (id, version) = text.split_once(", ").unwrap_or((text, ""));
                format!("{}… {version}", &id[..id.len().min(8)])
            });
            table.row([
                server.server.clone(),
                if server.ok { "yes" } else { "no" }.into(),
                said(&server.version),
                said(&server.role),
                said(&server.eviction),
                said(&server.persistence),
                said(&server.clock_ahead_ms.map(|ms| format!("{ms:+} ms"))),
                said(&server.connections_left.map(|left| format!("{left} left"))),
                said(&topology),
            ]);
        }
        write!(out, "{table}")?;
        for Server { problem, .. } in &self.servers {
            if let Some(problem) = problem {
                writeln!(out, "\n{problem}")?;
            }
        }
        Ok(())
    }
}
