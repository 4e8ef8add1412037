//! Where a run takes place: shards, a bank, a clock.

use std::{ops::Range, sync::Arc, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use ringfence_client::{BootClock, Client, Clock, TokioClock};
use ringfence_coordinator::spawn::RedisServer;
use tokio::time::sleep;

use super::{
    Args, DemoError, Time,
    bank::{Bank, BankError, Books, MemoryBank, RedisBank},
    progress::Progress,
};

/// When simulated runs begin: 2026-01-01.
const SIMULATED_UNIX: Duration = Duration::from_secs(1_767_225_600);

/// How far away simulated shards are, and the simulated bank, each way.
const SIMULATED_LATENCY: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(3);

/// How long a shard may take to answer before the run begins.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Pause between two looks at shards that do not grant yet.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Where a run takes place.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) bank: Arc<dyn Bank>,
    pub(super) clock: Arc<dyn Clock>,
    /// Names what the run leaves anywhere while it goes on.
    pub(super) run: String,
    /// Where the shards are, in words.
    pub(super) place: String,
    /// The demo's own; gone with it.
    _servers: Vec<RedisServer>,
}

impl Stage {
    /// Starts what `args` ask for; what is simulated, from `seed`.
    pub(super) async fn set(args: &Args, time: Time, seed: u64) -> Result<Self, DemoError> {
        match (time, &args.redis[..], args.spawn_redis) {
            (Time::Simulated, ..) => Self::simulated(args, seed).await,
            (Time::Real, [], None) => Self::embedded(args).await,
            (Time::Real, urls, None) => {
                let client = Client::builder().redis(urls).label("demo").build().await?;
                let place = format!("{} shards on Redis", client.topology().shards.len());
                Self::on_servers(args, client, urls, Vec::new(), place).await
            }
            (Time::Real, _, Some(count)) => {
                let mut servers = Vec::new();
                for _ in 0..count {
                    servers.push(RedisServer::spawn().await?);
                }
                let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
                let builder = Client::builder()
                    .redis(&urls)
                    .servers_are_new(true)
                    .label("demo");
                let place = format!("{count} shards on Redis servers of this run");
                Self::on_servers(args, builder.build().await?, &urls, servers, place).await
            }
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
            client,
            bank: Arc::new(bank),
            clock,
            run,
            place,
            _servers: Vec::new(),
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
            client,
            bank,
            clock,
            run,
            place,
            _servers: Vec::new(),
        })
    }

    async fn on_servers(
        args: &Args,
        client: Client,
        urls: &[String],
        servers: Vec<RedisServer>,
        place: String,
    ) -> Result<Self, DemoError> {
        let run = run_name(&mut rand::make_rng::<StdRng>());
        let bank = RedisBank::open(urls, &run, (args.accounts, args.coins)).await?;
        let clock = Arc::new(BootClock);
        Ok(Self {
            client,
            bank: Arc::new(bank),
            clock,
            run,
            place,
            _servers: servers,
        })
    }

    /// Waits until every shard grants new locks.
    pub(super) async fn every_shard_grants(&self, progress: &Progress) -> Result<(), DemoError> {
        let start = self.clock.now();
        loop {
            let shards = self.client.shards().await;
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

    /// Closes the bank and gives up the rest.
    pub(super) async fn clear(self) -> Result<Books, BankError> {
        let books = self.bank.close().await;
        self.client.close().await;
        books
    }
}

fn run_name(random: &mut impl RngExt) -> String {
    format!("{:08x}", random.random::<u32>())
}
