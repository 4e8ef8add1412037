//! A run: shards, clients, and a nemesis that goes by a seed; then everything is put right, and what
//! happened is checked.

mod clients;
mod coordinators;
pub(crate) mod histories;
mod locks;
mod member;
mod minima;
mod movers;
mod nemesis;
mod once;
mod plan;
pub(crate) mod process;
pub(crate) mod replicated;
mod report;
mod shard;

use std::{
    io, iter,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use rand::{RngExt, rngs::StdRng};
use ringfence_client::{Client, Namespace, Removal};
use ringfence_coordinator::{
    name::KeyPrefix,
    topology::{Constants, Namespaces, Topology, server::Founding, shard_id},
};
use ringfence_ring::{Replicas, SlotCount};
use tempfile::TempDir;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

pub(crate) use self::plan::HOME;
use self::{
    clients::Clients,
    coordinators::Coordinators,
    histories::Histories,
    locks::Locks,
    movers::Movers,
    nemesis::Nemesis,
    plan::Plan,
    process::Program,
    shard::{Kind, Shard},
};
pub use self::{histories::HistoriesArgs, member::Member, plan::Step, report::Outcome};
use crate::{
    checker::{Counts, LIVENESS_WITHIN, Rule, Violation, check},
    client::ClientArgs,
    election,
    history::{History, Recorder},
    ledger,
    mover::{self, MoverArgs},
    resource::Server,
    sets, shares,
};

/// Of five servers one is no shard at first.
const SHARDS: usize = 4;
const SERVERS: usize = 5;
/// No server of the service fails.
const SHARDS_OF_SERVICE: usize = 3;
/// Things are done to one client of each group at a time.
const GROUPS: usize = 3;
const CLIENTS_PER_GROUP: usize = 3;
/// Few enough that clients meet, and enough that some are held whenever a shard dies.
const KEYS_PER_SHARD: usize = 4;
const KEYS_WITH_REPLICAS: usize = 4;
/// Fewer than by default, times the replicas: a resize is over in a few seconds, and there are several in a run.
const SLOTS: u32 = 4_096;
/// Every lease, the longest there may be, and the longest critical section.
const LEASE: Duration = Duration::from_secs(2);
/// The same over the service: a session needs most of it to find out that its coordinator is stopped, also on a busy machine.
const LEASE_OF_SERVICE: Duration = Duration::from_secs(4);
/// The longest critical section over the service: most last beyond a coordinator.
const SECTION_OF_SERVICE: Duration = Duration::from_secs(6);
/// How long a view of the topology is believed with `removal = leased`.
const VIEW_LEASE: Duration = Duration::from_secs(1);
/// How long every other process keeps what was given back in it.
const LINGER: Duration = Duration::from_millis(300);

const NEMESIS: u32 = 0;
const RESOURCE: u32 = 1;
/// Movers have numbers from here on.
const MOVERS: u32 = 100;
/// A group's clients have numbers from here on, of every so many.
pub(crate) const GROUP_NUMBERS: u32 = 10_000;
/// A group of clients that run another program: few, with a lock of their own, so that one is held at most stops, and waited
/// for.
const VISITORS: usize = 2;

/// How a run is asked for.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// What all choices are made from; a new one if not said.
    #[arg(long)]
    pub seed: Option<u64>,
    /// How long things are done to servers, processes and connections.
    #[arg(long = "for", value_parser = humantime::parse_duration, default_value = "60s")]
    pub length: Duration,
    /// Has the locks granted by two coordinators of the service. Things are done to them, and nothing to shards.
    #[arg(long, conflicts_with = "mixed")]
    pub service: bool,
    /// Beside the coordinators, has a client of the shards whose clock loses time, gains it, and runs slow: no shard may be
    /// armed anew. Now and then one is, so no run of the gate has it.
    #[arg(long, requires = "service")]
    pub bad_clock: bool,
    /// Beside the coordinators' clients, has some that run this program, as docs/write-a-client.md says. May be said for several.
    #[arg(long = "client", value_name = "PROGRAM", requires = "service")]
    pub clients: Vec<PathBuf>,
    /// Has shards on Redis, PostgreSQL or MariaDB, etcd and ZooKeeper. The seed chooses which of them keeps the topology's record, and which joins.
    #[arg(long)]
    pub mixed: bool,
    /// Where histories are.
    #[command(flatten)]
    pub histories: HistoriesArgs,
}

/// Runs, heals, checks.
///
/// # Errors
///
/// Something of our own failed: a file, a process, a server that does not start.
pub async fn run(args: &RunArgs) -> io::Result<Outcome> {
    let fresh = || rand::make_rng::<StdRng>().random();
    let seed = args.seed.unwrap_or_else(fresh);
    let removal = removal(seed);
    let kinds = kinds(args.mixed, seed);
    println!(
        "chaos: seed {seed} for {:?}, removal = {removal}, on {kinds:?}",
        args.length
    );
    let histories = Histories::create(&args.histories)?;
    let happened = happen(seed, args, (removal, kinds), histories.dir()).await;
    let mut violations = match happened {
        Ok(violations) => violations,
        Err(error) => return Err(histories.failed(error)),
    };
    let history = History::read(histories.dir())?;
    let minima = match args.service {
        true => minima::of_service(args.length),
        false => minima::of_shards(args.length, &kinds),
    };
    violations.extend(check(&history, &minima));
    let kept = histories.end(!violations.is_empty());
    Ok(Outcome {
        seed,
        length: args.length,
        flags: match (args.mixed, args.service) {
            (true, _) => " --mixed",
            (_, true) if args.bad_clock => " --service --bad-clock",
            (_, true) => " --service",
            _ => "",
        },
        counts: Counts::of(&history),
        violations,
        kept,
    })
}

/// How failed shards are removed. Views of the topology end in every third seed.
fn removal(seed: u64) -> Removal {
    match seed.is_multiple_of(3) {
        true => Removal::Leased,
        false => Removal::Supervised,
    }
}

/// The kinds of the servers. The first one's keeps the record; the last one joins.
fn kinds(mixed: bool, seed: u64) -> [Kind; SERVERS] {
    let mut kinds = [Kind::Redis; SERVERS];
    if mixed {
        let seed = seed as usize;
        let sql = [Kind::PostgreSql, Kind::MariaDb][seed / SERVERS % 2];
        kinds[1..4].copy_from_slice(&[sql, Kind::Etcd, Kind::Zookeeper]);
        kinds.rotate_left(seed % SERVERS);
    }
    kinds
}

/// Has everything happen, and be recorded in `dir`. Returns what was wrong that is not in the histories.
async fn happen(
    seed: u64,
    args: &RunArgs,
    (removal, kinds): (Removal, [Kind; SERVERS]),
    dir: &Path,
) -> io::Result<Vec<Violation>> {
    let (length, service) = (args.length, args.service);
    let (lease, section) = lengths(service);
    let run = format!("chaos-{seed}");
    let recorder = |process| Recorder::create(dir, &run, seed, process);
    let (members, urls, shards) = start_servers(kinds, service, seed).await;
    let keys = found(&urls[..shards], removal, service).await?;
    let mut coordinators = match service {
        true => Some(Coordinators::start(dir, &urls[..shards], seed, args.bad_clock).await?),
        false => None,
    };
    let of_service = coordinators.as_ref().map(Coordinators::urls);

    let socket = TempDir::with_prefix("ringfence-chaos-")?;
    let resource = Server::start(&socket.path().join("resource"), recorder(RESOURCE)?)?;
    let mut clients = start_clients(
        &ClientArgs {
            dir: dir.to_owned(),
            run: run.clone(),
            seed,
            process: 0,
            resource: resource.path().to_owned(),
            urls: if service { Vec::new() } else { urls.clone() },
            coordinators: of_service.unwrap_or_default(),
            keys: keys.clone(),
            lease_ms: lease.as_millis() as u64,
            linger_ms: Some(LINGER.as_millis() as u64),
            section_ms: section.as_millis() as u64,
        },
        &args.clients,
    )?;
    all_granted(&resource, &keys, 0).await;

    let until = Instant::now() + length;
    let recorder = recorder(NEMESIS)?;
    let onlooker = onlooker(&urls).await?;
    let begun = onlooker.topology();
    let locks = Locks::of(&keys, onlooker.clone());
    let like = mover_args(dir, &run, seed, &urls);
    let mut movers = Movers::new(like, (&recorder, until), onlooker.clone(), &members);
    let nemesis = Nemesis {
        recorder: &recorder,
        until,
    };
    nemesis
        .strike(
            plan(seed, args, &kinds, clients.len()),
            &members,
            &mut clients,
            &locks,
            &mut movers,
            coordinators.as_mut(),
        )
        .await?;
    let healed = nemesis.heal();
    let soon = Instant::now() + LIVENESS_WITHIN + Duration::from_secs(1);
    let all_granted = all_granted(&resource, &keys, healed);
    let (finished, ()) = tokio::join!(movers.finish(soon), all_granted);
    for group in clients {
        group.end().await?;
    }
    finished?;
    let ended = onlooker.topology();
    onlooker.close().await;
    match coordinators {
        Some(coordinators) => {
            coordinators.end().await?;
            Ok(recovered(&begun, &ended))
        }
        None => once::free_for_one_shots(&urls, &keys).await,
    }
}

/// The shards that began a recovery period, where nothing was done to any.
fn recovered(begun: &Topology, ended: &Topology) -> Vec<Violation> {
    let recovered = begun.shards.iter().filter_map(|(name, before)| {
        let epoch = ended.shard(&name.0)?.epoch;
        let told = ended.alarms.get(name);
        let what = || format!("shard {} is armed with epoch {epoch}: {told:?}", name.0);
        (epoch != before.epoch).then(|| Violation::new(Rule::Recovery, "", what(), []))
    });
    recovered.collect()
}

/// The servers by their names, where clients find them, and how many of them are shards at first.
async fn start_servers(
    kinds: [Kind; SERVERS],
    service: bool,
    seed: u64,
) -> (Vec<(String, Mutex<Shard>)>, Vec<String>, usize) {
    let (shards, count) = match service {
        true => (SHARDS_OF_SERVICE, SHARDS_OF_SERVICE),
        false => (SHARDS, SERVERS),
    };
    let (mut members, mut urls) = (Vec::new(), Vec::new());
    for (place, kind) in kinds.into_iter().enumerate().take(count) {
        let server = Shard::start(kind, seed ^ place as u64).await;
        urls.push(server.url());
        members.push((shard_id(place).to_string(), Mutex::new(server)));
    }
    (members, urls, shards)
}

/// The lease, and the longest critical section.
fn lengths(service: bool) -> (Duration, Duration) {
    match service {
        true => (LEASE_OF_SERVICE, SECTION_OF_SERVICE),
        false => (LEASE, LEASE),
    }
}

fn plan(seed: u64, args: &RunArgs, kinds: &[Kind], groups: usize) -> Plan {
    let (lease, _) = lengths(args.service);
    match args.service {
        true => Plan::of_service(seed, groups, args.length, lease),
        false => Plan::new(seed, kinds, groups, args.length, lease),
    }
}

fn mover_args(dir: &Path, run: &str, seed: u64, urls: &[String]) -> MoverArgs {
    MoverArgs {
        dir: dir.to_owned(),
        run: run.to_owned(),
        seed,
        process: MOVERS,
        urls: urls.to_owned(),
        prefix: KeyPrefix::default(),
        begin: None,
        slot: None,
        failed: None,
        turn_back: false,
        halt: None,
    }
}

/// Starts the client processes of each group, which differ from `like` in their numbers; and a group of each of `others`.
fn start_clients(like: &ClientArgs, others: &[PathBuf]) -> io::Result<Vec<Clients>> {
    let own = iter::repeat_n(Program::This("client"), GROUPS);
    let others = others.iter().cloned().map(Program::Other);
    let programs = own.chain(others).zip(1..);
    let group = |(program, group)| {
        let (keys, count) = match &program {
            Program::This(_) => (like.keys.clone(), CLIENTS_PER_GROUP),
            Program::Other(_) => (vec![format!("visited/{group}")], VISITORS),
        };
        let process = group * GROUP_NUMBERS;
        let first = ClientArgs {
            process,
            keys,
            ..like.clone()
        };
        Clients::start(program, first, count)
    };
    programs.map(group).collect()
}

/// A client that takes no locks.
async fn onlooker(urls: &[String]) -> io::Result<Client> {
    let builder = Client::builder().servers(urls).existing_topology(true);
    builder.build().await.map_err(io::Error::other)
}

/// Waits until every key was granted after `since_ns`, or it is too late for that.
async fn all_granted(resource: &Server, keys: &[String], since_ns: u64) {
    let until = Instant::now() + LIVENESS_WITHIN + Duration::from_secs(1);
    let all = || keys.iter().all(|key| resource.granted_since(key, since_ns));
    while !all() && Instant::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
}

/// What a topology is founded with.
fn founding(removal: Removal, service: bool) -> Founding {
    let (lease, _) = lengths(service);
    let view_lease = match service {
        // A session finds out within a view that its coordinator is stopped.
        true => lease,
        false => VIEW_LEASE,
    };
    let mut namespaces = Namespaces::default();
    let declared = namespaces.declare(
        Namespace::new(ledger::NAMESPACE).expect("a valid name"),
        Replicas::new(ledger::REPLICAS).expect("a valid number"),
    );
    declared.expect("it is the only one");
    Founding {
        constants: Constants {
            max_lease_ms: lease.as_millis() as u64,
            removal,
            view_lease_ms: (removal == Removal::Leased).then_some(view_lease.as_millis() as u64),
            ..Constants::default()
        },
        slots: SlotCount::new(SLOTS).expect("a power of two"),
        namespaces,
        ..Founding::default()
    }
}

/// Founds a topology of the servers at `urls`. Returns as many keys of each, some with replicas at all, and an election.
async fn found(urls: &[String], removal: Removal, service: bool) -> io::Result<Vec<String>> {
    let _founded = mover::found(urls, founding(removal, service)).await;
    let _founded = _founded.map_err(io::Error::other)?;
    let builder = Client::builder().servers(urls).existing_topology(true);
    let builder = builder.servers_are_new(true);
    let client = builder.build().await.map_err(io::Error::other)?;
    let namespace = Namespace::default();
    let (mut keys, mut in_sets) = (Vec::new(), Vec::new());
    for place in 0..urls.len() {
        let id = shard_id(place);
        let is_there = |key: &String| {
            let shard = client.shard_of(&namespace, key);
            shard.is_ok_and(|shard| shard == id)
        };
        let named = (0..).map(|number| format!("key/{number}"));
        keys.extend(named.filter(is_there).take(KEYS_PER_SHARD));
        // Of the first shard the semaphore is a hot one, of the last the read-write lock.
        keys.extend(shares::keys(is_there, place));
        let named = (0..).map(sets::key);
        in_sets.extend(named.filter(is_there).take(sets::KEYS_PER_SHARD));
    }
    let with_replicas = (0..KEYS_WITH_REPLICAS).map(|number| format!("ledger/{number}"));
    keys.extend(with_replicas);
    keys.extend(in_sets);
    keys.push(election::KEY.into());
    client.close().await;
    Ok(keys)
}
