//! A run: shards, clients, and a nemesis that goes by a seed; then everything is put right, and what
//! happened is checked.

mod clients;
mod member;
mod nemesis;
mod plan;
mod report;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use rand::{RngExt, rngs::StdRng};
use ringfence_client::{Client, Namespace};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use self::{clients::Clients, member::Member, nemesis::Nemesis, plan::Plan};
use crate::{
    checker::{Counts, LIVENESS_WITHIN, Minima, check},
    client::ClientArgs,
    history::{Deed, Fault, History, Kind, Phase, Recorder},
    resource::Server,
};
pub use report::Outcome;

const SHARDS: usize = 3;
const CLIENTS: usize = 9;
/// Few, so that clients meet.
const KEYS_PER_SHARD: usize = 2;
/// Every lease, and the longest there may be.
const LEASE: Duration = Duration::from_secs(2);

const NEMESIS: u32 = 0;
const RESOURCE: u32 = 1;
const FIRST_CLIENT: u32 = 10;

/// How a run is asked for.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// What all choices are made from; a new one if not said.
    #[arg(long)]
    pub seed: Option<u64>,
    /// How long things are done to servers, processes and connections.
    #[arg(long = "for", value_parser = humantime::parse_duration, default_value = "60s")]
    pub length: Duration,
    /// Keeps the histories in this directory, which must not be there yet.
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

/// Runs, heals, checks.
///
/// # Errors
///
/// Something of our own failed: a file, a process, a server that does not start.
pub async fn run(args: &RunArgs) -> io::Result<Outcome> {
    let fresh = || rand::make_rng::<StdRng>().random();
    let seed = args.seed.unwrap_or_else(fresh);
    println!("chaos: seed {seed} for {:?}", args.length);
    let temporary = TempDir::with_prefix("ringfence-chaos-")?;
    let dir = match &args.keep {
        Some(dir) => {
            std::fs::create_dir(dir)?;
            dir.clone()
        }
        None => temporary.path().to_owned(),
    };
    happen(seed, args.length, &dir).await?;
    let history = History::read(&dir)?;
    let violations = check(&history, &minima(args.length));
    let kept = match (&args.keep, violations.is_empty()) {
        (Some(dir), _) => Some(dir.clone()),
        (None, false) => Some(temporary.keep()),
        (None, true) => None,
    };
    Ok(Outcome {
        seed,
        length: args.length,
        counts: Counts::of(&history),
        violations,
        kept,
    })
}

/// Has everything happen, and be recorded in `dir`.
async fn happen(seed: u64, length: Duration, dir: &Path) -> io::Result<()> {
    let run = format!("chaos-{seed}");
    let recorder = |process| Recorder::create(dir, &run, seed, process);
    let nemesis = Arc::new(recorder(NEMESIS)?);
    let mut members = Vec::new();
    for number in 0..SHARDS as u64 {
        members.push(Member::start(seed ^ number).await);
    }
    let urls: Vec<String> = members.iter().map(Member::url).collect();
    let founded = found(&urls).await?;
    let socket = TempDir::with_prefix("ringfence-chaos-")?;
    let resource = Server::start(&socket.path().join("resource"), recorder(RESOURCE)?)?;
    let keys: Vec<String> = founded
        .shards
        .iter()
        .flat_map(|(_, keys)| keys.clone())
        .collect();
    let first = ClientArgs {
        dir: dir.to_owned(),
        run: run.clone(),
        seed,
        process: FIRST_CLIENT,
        resource: resource.path().to_owned(),
        urls: urls.clone(),
        keys: keys.clone(),
        lease_ms: LEASE.as_millis() as u64,
    };
    let clients = Clients::start(first, CLIENTS)?;
    all_granted(&resource, &keys, 0).await;

    let plan = Plan::new(seed, SHARDS, length, LEASE);
    let nemesis = Nemesis {
        recorder: nemesis,
        until: Instant::now() + length,
    };
    let named = founded.in_order(members);
    let (named, clients) = nemesis.strike(plan, named, clients).await?;

    let healed = nemesis.recorder.now();
    let heal = Deed::ended(nemesis.recorder.next_op(), Kind::Nemesis, Phase::Ok);
    let fault = Some(Fault::Heal);
    nemesis.recorder.record_at(healed, Deed { fault, ..heal });
    all_granted(&resource, &keys, healed).await;
    clients.end().await?;
    drop(named);
    Ok(())
}

/// Waits until every key was granted after `since_ns`, or it is too late for that.
async fn all_granted(resource: &Server, keys: &[String], since_ns: u64) {
    let until = Instant::now() + LIVENESS_WITHIN + Duration::from_secs(1);
    let all = || keys.iter().all(|key| resource.granted_since(key, since_ns));
    while !all() && Instant::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
}

/// The topology that was founded: each shard's name and keys, in the order of the servers' URLs.
struct Founded {
    shards: Vec<(String, Vec<String>)>,
    home: usize,
}

impl Founded {
    /// `members` by name, the topology's home first.
    fn in_order(&self, members: Vec<Member>) -> Vec<(String, Member)> {
        let names = self.shards.iter().map(|(name, _)| name.clone());
        let mut named: Vec<_> = names.zip(members).collect();
        named.swap(0, self.home);
        named
    }
}

async fn found(urls: &[String]) -> io::Result<Founded> {
    let builder = Client::builder()
        .redis(urls)
        .max_lease(LEASE)
        .servers_are_new(true);
    let client = builder.build().await.map_err(io::Error::other)?;
    let topology = client.topology();
    let at = |url: &str, address: &str| {
        let port = url.rsplit(':').next().unwrap_or_default();
        address.contains(&format!(":{port}"))
    };
    let namespace = Namespace::default();
    let mut shards = Vec::new();
    for url in urls {
        let is_here = |key: &String| {
            let shard = client.shard_of(&namespace, key).ok();
            let entry = shard.as_ref().and_then(|shard| topology.shard(shard));
            entry.is_some_and(|entry| at(url, &entry.address))
        };
        let keys: Vec<String> = (0..)
            .map(|number| format!("key/{number}"))
            .filter(is_here)
            .take(KEYS_PER_SHARD)
            .collect();
        let shard = client
            .shard_of(&namespace, &keys[0])
            .map_err(io::Error::other)?;
        shards.push((shard.to_string(), keys));
    }
    let home = urls.iter().position(|url| at(url, &topology.home.address));
    let home = home.ok_or_else(|| io::Error::other("the home is none of the shards"))?;
    client.close().await;
    Ok(Founded { shards, home })
}

/// What a run of `length` must have seen to mean something: far less than it does on a slow machine.
fn minima(length: Duration) -> Minima {
    let per_minute = |count: usize| count * length.as_secs() as usize / 60;
    Minima {
        grants: per_minute(60),
        grants_in_faults: per_minute(30),
        writes: per_minute(60),
        rejected: 0,
        renewed: per_minute(20),
        reclaimed: per_minute(1),
        held: per_minute(30),
        grace: per_minute(5),
        unknown: per_minute(5),
        lost: per_minute(2),
        faults: [
            (Fault::KillClient, per_minute(4)),
            (Fault::StopClient, per_minute(4)),
        ]
        .into(),
    }
}
