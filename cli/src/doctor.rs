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
use serde::{Serialize, Serializer};

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
    #[serde(flatten)]
    found: Checkup,
    /// The one that the server belongs to.
    topology: Option<Found>,
}

/// A topology.
#[derive(Debug)]
struct Found {
    id: String,
    version: u64,
}

impl Serialize for Found {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}, version {}", self.id, self.version))
    }
}

impl fmt::Display for Found {
    /// As much of the id as tells it from others.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.8}… version {}", self.id, self.version)
    }
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
        let mut found = match &options {
            ServerOptions::Redis(options) => checkup(options, &BootClock).await,
            others => Checkup {
                problem: (others.shard(random).connect_control(None).await)
                    .err()
                    .map(|error| error.to_string()),
                ..Checkup::default()
            },
        };
        let mut belongs_to = None;
        if found.problem.is_none() {
            (belongs_to, found.problem) = topology(url).await;
        }
        Self {
            server: options.address().to_owned(),
            ok: found.problem.is_none(),
            found,
            topology: belongs_to,
        }
    }
}

/// The topology of the server at `url`, or why none can be told.
async fn topology(url: &str) -> (Option<Found>, Option<String>) {
    let client = Client::builder().servers(url).existing_topology(true);
    match client.connect_within(LOOK).build().await {
        Ok(client) => {
            let topology = client.topology();
            let found = Found {
                id: topology.id.clone(),
                version: topology.version,
            };
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
            "scripts",
            "clock",
            "connections",
            "topology",
        ]);
        for Server {
            server,
            ok,
            found,
            topology,
        } in &self.servers
        {
            table.row([
                server.clone(),
                if *ok { "yes" } else { "no" }.into(),
                or_dash(found.version.as_ref()),
                or_dash(found.role.as_ref()),
                or_dash(found.eviction.as_ref()),
                or_dash(found.persistence.as_ref()),
                or_dash(found.scripts),
                or_dash(found.clock_ahead_ms.map(|ms| format!("{ms:+} ms"))),
                or_dash(found.connections_left.map(|left| format!("{left} left"))),
                or_dash(topology.as_ref()),
            ]);
        }
        write!(out, "{table}")?;
        let mut problems = self
            .servers
            .iter()
            .filter_map(|server| server.found.problem.as_ref());
        problems.try_for_each(|problem| writeln!(out, "\n{problem}"))
    }
}

fn or_dash(told: Option<impl ToString>) -> String {
    told.map_or_else(|| "-".to_owned(), |told| told.to_string())
}
