//! `ringfence ring`: which servers are shards, and which slots are whose.

mod recover;
mod status;

use std::{sync::Arc, time::Duration};

use clap::{Args, Subcommand};
use ringfence_client::{BootClock, BuildError, Client, Constants, Removal, Token, TopologyError};
use ringfence_coordinator::{
    ids::ClientId,
    limits::EPOCH_MAX,
    random::Random,
    shard::redis::{Address, AddressError, RedisOptions},
    topology::redis::{Founding, Joined, connect},
};

use super::{
    FAILED, USAGE,
    seeds::{Seeds, SeedsError},
    show,
};
use recover::Recover;
pub(super) use status::fair_share;
use status::{Done, Status};

/// How long to go on asking servers that do not answer.
const ASK_WITHIN: Duration = Duration::from_secs(3);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Found a topology on servers that have none, or say which one they have
    ///
    /// All of them must answer; they become shards a, b, c and so on. Each is used from then on,
    /// by whoever names one of them. Founding again changes nothing.
    Init(Init),
    /// Show the topology, and how its shards are
    Status(ShowStatus),
    /// Put the topology's record back in force where its home lost it
    ///
    /// Clients do so by themselves, as soon as every member answers. Where one never will again, it
    /// takes a person to say so. Without need it changes nothing.
    Recover(Recover),
}

#[derive(Args, Debug)]
pub(crate) struct Init {
    #[command(flatten)]
    seeds: Seeds,
    /// The longest lease there will be; a shard that comes back grants nothing for as long
    #[arg(long, value_name = "LENGTH", default_value = "30s")]
    #[arg(value_parser = humantime::parse_duration)]
    max_lease: Duration,
    /// A shard that came back grants nothing for this much longer. Where a former primary can still
    /// be reached after a failover: 3s, with min-replicas-to-write 1 and min-replicas-max-lag 1
    #[arg(long, value_name = "LENGTH", default_value = "0s")]
    #[arg(value_parser = humantime::parse_duration)]
    replica_lag: Duration,
    /// How a shard that is gone for good is removed. supervised: somebody attests that nobody can reach it.
    /// leased: whoever cannot reach the topology's home sends nothing any more, and loses its locks
    #[arg(long, value_name = "HOW", default_value_t)]
    removal: Removal,
    /// Where removal is leased: that happens after this long; a sixth of --max-lease if not said
    #[arg(long, value_name = "LENGTH", value_parser = humantime::parse_duration)]
    view_lease: Option<Duration>,
    /// The servers were started for this and have never held a lock: no grace is needed. Wrong, it
    /// can make two holders
    #[arg(long)]
    servers_are_new: bool,
    /// Keep the record on this server, instead of on one of the shards
    #[arg(long, value_name = "URL")]
    topology_at: Option<String>,
    /// Tokens shall be greater than this one, the greatest that a resource has seen: for after the
    /// loss of every server
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    after: Option<Token>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ShowStatus {
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Why there is no topology to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RingError {
    /// The servers carry no topology.
    #[error("no topology on these servers yet; to found one: ringfence ring init --redis URL...")]
    None,
    /// Nobody is called that.
    #[error("--attest-dead {id}: topology {topology} has no such shard; it has {shards}")]
    NoShard {
        id: String,
        topology: String,
        shards: String,
    },
    /// Tokens of the topology that is there already may be smaller.
    #[error("topology {0} is there already: --after is for founding one")]
    TooLate(String),
    #[error(transparent)]
    Seeds(#[from] SeedsError),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("cannot start a runtime")]
    Runtime(#[from] std::io::Error),
    #[error("cannot write to stdout")]
    Unshown(#[source] std::io::Error),
}

impl RingError {
    /// What to exit with.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Seeds(SeedsError::None) => USAGE,
            _ => FAILED,
        }
    }
}

/// Does what was asked, and prints what is to be known.
pub(crate) fn run(command: &Command) -> Result<(), RingError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (status, json) = match command {
        Command::Init(init) => (runtime.block_on(init.found())?, init.json),
        Command::Status(show) => (runtime.block_on(show.look())?, show.json),
        Command::Recover(recover) => (runtime.block_on(recover.run())?, recover.json),
    };
    let shown = if json {
        let object = serde_json::to_string_pretty(&status);
        show(object.expect("numbers, texts and lists") + "\n")
    } else {
        show(status)
    };
    shown.map_err(RingError::Unshown)
}

impl Init {
    /// Founds the topology, then arms its shards: only now is it known that they are new.
    async fn found(&self) -> Result<Status, RingError> {
        let urls = self.seeds.urls()?;
        let constants = Constants {
            max_lease_ms: millis(self.max_lease),
            replica_lag_ms: millis(self.replica_lag),
            removal: self.removal,
            view_lease_ms: self.view_lease.map(millis),
            ..Constants::default()
        };
        let home = self
            .topology_at
            .as_deref()
            .map(str::parse::<Address>)
            .transpose()?;
        let founding = Founding {
            after: self.after.map(Token::epoch).unwrap_or_default(),
            constants,
            home,
            within: ASK_WITHIN,
            ..Founding::default()
        };
        let joined = join(&urls, founding).await?;
        if let Some(token) = self.after
            && joined.topology.founded <= token.epoch()
        {
            return Err(RingError::TooLate(joined.topology.id.clone()));
        }
        let client = Client::builder().redis(urls).existing_topology(true);
        let mut client = client
            .max_lease(self.max_lease)
            .replica_lag(self.replica_lag)
            .removal(self.removal);
        if let Some(length) = self.view_lease {
            client = client.view_lease(length);
        }
        let client = client.servers_are_new(self.servers_are_new).build().await?;
        let done = if joined.founded_now {
            Done::Founded
        } else {
            Done::ThereAlready
        };
        Ok(Status::of(&client, done).await)
    }
}

impl ShowStatus {
    async fn look(&self) -> Result<Status, RingError> {
        let client = existing(&self.seeds).await?;
        Ok(Status::of(&client, Done::Looked).await)
    }
}

/// A client of the topology that is there. It founds none.
pub(super) async fn existing(seeds: &Seeds) -> Result<Client, RingError> {
    let client = Client::builder().redis(seeds.urls()?);
    let client = client.existing_topology(true).connect_within(ASK_WITHIN);
    match client.build().await {
        Err(BuildError::Topology(TopologyError::Absent)) => Err(RingError::None),
        client => Ok(client?),
    }
}

/// Founds nothing.
fn look() -> Founding {
    Founding {
        allowed: false,
        within: ASK_WITHIN,
        ..Founding::default()
    }
}

async fn join(urls: &[String], founding: Founding) -> Result<Joined, RingError> {
    let clock = Arc::new(BootClock);
    let random = Arc::new(Random::from_os());
    let me = ClientId(random.id());
    let seeds: Result<Vec<_>, AddressError> = urls
        .iter()
        .map(|url| Ok(RedisOptions::new(url.parse()?, me)))
        .collect();
    match connect(seeds?, founding, clock, random, me).await {
        Err(TopologyError::Absent) => Err(RingError::None),
        joined => Ok(joined?),
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A token, as a resource wrote it down.
fn token(text: &str) -> Result<Token, String> {
    let number: u64 = text.parse().map_err(|_| "a token is a number".to_owned())?;
    let token = Token::from_number(number);
    // One more epoch is needed for each change to come.
    if token.epoch().0 + 1 >= EPOCH_MAX {
        return Err("a token is less than 2^63, and of an epoch that others can follow".to_owned());
    }
    Ok(token)
}
