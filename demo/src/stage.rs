//! The environment of a run: shards, a bank, a clock.

use std::{ops::Range, sync::Arc, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use ringfence_client::{BootClock, Client, Clock, NewShard, TokioClock};
use ringfence_coordinator::spawn::{RedisServer, SpawnError};
use tokio::time::sleep;

use super::{
    Args, DemoError, Time,
    bank::{Bank, BankError, Books, MemoryBank, RedisBank},
    progress::Progress,
};

/// The begin of simulated runs: 2026-01-01.
const SIMULATED_UNIX: Duration = Duration::from_secs(1_767_225_600);

/// The latency of simulated shards, and of the simulated bank, each way.
const SIMULATED_LATENCY: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(3);

/// Longest wait for a shard's answer before the run begins.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Pause between two checks of shards that do not grant yet.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Clients on servers that are resized, as of so many processes: each has a view of the ring of its own,
/// and none can grant what only a shard may. Shards in this process have no others.
const CLIENTS: usize = 4;

/// The environment of a run.
#[derive(Debug)]
pub(super) struct Stage {
    /// At least one.
    pub(super) clients: Vec<Client>,
    pub(super) bank: Arc<dyn Bank>,
    pub(super) clock: Arc<dyn Clock>,
    /// The name of everything that the run leaves outside of this process while it runs.
    pub(super) run: String,
    /// The location of the shards, in words.
    pub(super) place: String,
    servers: Servers,
}

/// The demo's own servers, if it has any; gone with it.
#[derive(Debug, Default)]
struct Servers {
    members: Vec<RedisServer>,
    /// The shard that will join.
    spare: Option<RedisServer>,
}

impl Stage {
    /// Starts everything that `args` require; simulated parts from `seed`.
    pub(super) async fn set(args: &Args, time: Time, seed: u64) -> Result<Self, DemoError> {
        let urls = args.servers();
        match (time, &urls[..], args.spawn_redis) {
            (Time::Simulated, ..) => Self::simulated(args, seed).await,
            (Time::Real, [], None) => Self::embedded(args).await,
            (Time::Real, urls, None) => {
                let builder = Client::builder().redis(urls).label("demo");
                let client = builder.existing_topology(true).build().await?;
                let place = format!("{} shards on Redis", client.topology().shards.len());
                Self::on_servers(args, vec![client], urls, place).await
            }
            (Time::Real, _, Some(count)) => Self::on_own_servers(args, count).await,
        }
    }

    async fn simulated(args: &Args, seed: u64) -> Result<Self, DemoError> {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(SIMULATED_UNIX));
        let builder = Client::builder()
            .embedded(args.shards)
            .seed(seed)
            .label("demo");
        let client = builder
            .clock(clock.clone())
            .latency(SIMULATED_LATENCY)
            .build()
            .await?;
        let mut random = StdRng::seed_from_u64(seed);
        let run = run_name(&mut random);
        let bank = MemoryBank::open(args.accounts, args.coins).far_away(SIMULATED_LATENCY, random);
        let place = format!("{} simulated shards", args.shards);
        Ok(Self {
            clients: vec![client],
            bank: Arc::new(bank),
            clock,
            run,
            place,
            servers: Servers::default(),
        })
    }

    async fn embedded(args: &Args) -> Result<Self, DemoError> {
        let client = Client::builder()
            .embedded(args.shards)
            .label("demo")
            .build()
            .await?;
        let bank = Arc::new(MemoryBank::open(args.accounts, args.coins));
        let (clock, run) = (
            Arc::new(BootClock),
            run_name(&mut rand::make_rng::<StdRng>()),
        );
        let place = format!("{} shards in this process", args.shards);
        Ok(Self {
            clients: vec![client],
            bank,
            clock,
            run,
            place,
            servers: Servers::default(),
        })
    }

    async fn on_own_servers(args: &Args, count: u32) -> Result<Self, DemoError> {
        let servers = Servers::spawn(count, args.resize).await?;
        let urls: Vec<String> = servers.members.iter().map(RedisServer::url).collect();
        let processes = if args.resize { CLIENTS } else { 1 };
        let mut clients = Vec::new();
        for _ in 0..processes {
            let builder = Client::builder().redis(&urls).servers_are_new(true);
            clients.push(builder.label("demo").build().await?);
        }
        let mut place = format!("{count} shards on Redis servers of this run");
        if processes > 1 {
            place += &format!(", {processes} clients");
        }
        let stage = Self::on_servers(args, clients, &urls, place).await?;
        Ok(Self { servers, ..stage })
    }

    async fn on_servers(
        args: &Args,
        clients: Vec<Client>,
        urls: &[String],
        place: String,
    ) -> Result<Self, DemoError> {
        let run = run_name(&mut rand::make_rng::<StdRng>());
        let bank = RedisBank::open(urls, &run, (args.accounts, args.coins)).await?;
        let clock = Arc::new(BootClock);
        Ok(Self {
            clients,
            bank: Arc::new(bank),
            clock,
            run,
            place,
            servers: Servers::default(),
        })
    }

    /// The first client, which asks for the state of the shards and resizes them.
    pub(super) fn client(&self) -> &Client {
        &self.clients[0]
    }

    /// The shard that will join.
    pub(super) fn newcomer(&self) -> NewShard {
        match &self.servers.spare {
            Some(server) => NewShard::redis(server.url()),
            None => NewShard::embedded(),
        }
    }

    /// Waits until every shard grants new locks.
    pub(super) async fn every_shard_grants(&self, progress: &Progress) -> Result<(), DemoError> {
        let start = self.clock.now();
        loop {
            let shards = self.client().shards().await;
            let mut silent = shards.iter().filter(|(_, status)| status.error.is_some());
            let patient = self.clock.now().since(start) < ANSWERS_WITHIN;
            if let Some((id, status)) = silent.next() {
                let source = status.error.clone().expect("just filtered");
                if !patient || !source.is_retryable() {
                    return Err(DemoError::Shard {
                        shard: id.to_string(),
                        source,
                    });
                }
            } else {
                let waits = shards.iter().map(|(id, status)| (status.grace_left, id));
                match waits.max() {
                    Some((left, id)) if !left.is_zero() => progress.count_down(id, left),
                    _ => return Ok(()),
                }
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Closes the bank and drops everything else.
    pub(super) async fn clear(self) -> Result<Books, BankError> {
        let books = self.bank.close().await;
        for client in &self.clients {
            client.close().await;
        }
        books
    }
}

impl Servers {
    /// Starts `count` of them, and one that will join if `spare`.
    async fn spawn(count: u32, spare: bool) -> Result<Self, SpawnError> {
        let mut servers = Self::default();
        for _ in 0..count {
            servers.members.push(RedisServer::spawn().await?);
        }
        if spare {
            servers.spare = Some(RedisServer::spawn().await?);
        }
        Ok(servers)
    }
}

fn run_name(random: &mut impl RngExt) -> String {
    format!("{:08x}", random.random::<u32>())
}
