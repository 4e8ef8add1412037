//! `ringfence ring`: the shards, and the owner of each slot.

mod change;
mod init;
mod namespace;
mod plan;
mod progress;
mod readdress;
mod recover;
mod remove_failed;
mod resize;
mod run;
mod show;
mod verbs;
mod view;
mod watch;

use std::{fmt::Display, sync::Arc, time::Duration};

use clap::Subcommand;
use nix::sys::signal::Signal;
use ringfence_client::{BootClock, BuildError, Client, Effect, ShardId, TopologyError};
use ringfence_coordinator::{
    ids::ClientId,
    mover::NamespaceError,
    random::Random,
    shard::{ServerAddressError, ShardError},
    topology::{
        DeclareError, DecommissionError, ResizeError,
        server::{Founding, Joined, connect},
    },
};
use ringfence_ring::Zone;
use serde::Serialize;

use super::{
    FAILED, Nature, USAGE,
    place::Named,
    seeds::{Seeds, SeedsError, Servers},
};
use init::Init;
use plan::Plan;
use readdress::Readdress;
use recover::Recover;
use show::Show;
use verbs::{Abort, Add, Remove, Resume, Weigh};
use watch::Watch;

/// Added to the number of the signal that interrupted the command.
const SIGNALLED: u8 = 128;

/// How long to ask servers that do not answer.
const ASK_WITHIN: Duration = Duration::from_secs(3);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Found a topology on servers without one; otherwise show the existing one
    ///
    /// All servers must answer; they become shards a, b, c and so on. From then on, a client that
    /// names one of them uses all of them. Founding again changes nothing.
    Init(Init),
    /// Show the topology: its shards, their state, and the resize under way, if any
    Show(Show),
    /// Show the effect of a resize: the slots that move, and the shares before and after
    ///
    /// A dry run: nothing is changed, and new servers are not asked. All named changes are one
    /// resize: one at a time they move more slots.
    Plan(Box<Plan>),
    Add(Box<Add>),
    Remove(Box<Remove>),
    Weigh(Box<Weigh>),
    Abort(Box<Abort>),
    Resume(Box<Resume>),
    Watch(Watch),
    #[command(subcommand)]
    Namespace(namespace::Command),
    /// Have the topology's record name another address of a shard's server
    ///
    /// Every process goes by the address in the record, whatever its command line says. The server
    /// is the same, and was not restarted: locks stay held.
    Readdress(Box<Readdress>),
    /// Restore the topology's record after its home lost it
    ///
    /// Clients restore it on their own as soon as every member answers. If a member is dead, a
    /// person must attest that. If the record is in force, nothing is changed.
    Recover(Recover),
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RingError {
    /// The servers carry no topology. The command founds one.
    #[error("these servers have no topology: they are new, or were emptied; to found one: {0}")]
    None(String),
    /// The servers have no usable topology.
    #[error("{shown}")]
    Servers {
        /// `error`, with the option or variable that names its servers.
        shown: String,
        /// The cause.
        error: TopologyError,
    },
    /// No shard has that id.
    #[error("--attest-dead {id}: topology {topology} has no such shard; it has {shards}")]
    NoShard {
        id: String,
        topology: String,
        shards: String,
    },
    /// The topology exists already, and its tokens may be smaller.
    #[error("topology {0} exists already: --after needs a new topology")]
    TooLate(String),
    #[error("--id names {ids} shards, must be at most the number of servers, {servers}")]
    TooManyIds { ids: usize, servers: usize },
    #[error("--zone names {zones} zones, must be none, or as many as servers, {servers}")]
    Zones { zones: usize, servers: usize },
    /// A namespace of a new topology cannot be declared.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// A namespace cannot be declared.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The resize cannot begin, or cannot be turned back.
    #[error(transparent)]
    Resize(#[from] ResizeError),
    /// It cannot be declared dead.
    #[error(transparent)]
    Decommission(#[from] DecommissionError),
    /// The shard is not gone.
    #[error("shard {id}, {address}, is not dead: {how}")]
    Answers {
        id: ShardId,
        address: String,
        how: String,
    },
    /// It was declared dead before.
    #[error("shard {0} is already declared dead; to go on: ringfence ring resume")]
    DeclaredDead(ShardId),
    #[error("--gone {gone} --attest-dead {other}: must name the same shard")]
    OtherAttested { gone: ShardId, other: ShardId },
    /// A server cannot become a shard, or be another shard's.
    #[error(transparent)]
    Newcomer(TopologyError),
    /// A signal came.
    #[error(
        "interrupted: the resize stays as it is; to go on: ringfence ring resume, \
        to turn back: ringfence ring abort"
    )]
    Interrupted { signal: Signal },
    /// The ring is not as requested.
    #[error(
        "another process turned this resize back, or began another one; to see the ring: \
        ringfence ring show"
    )]
    TurnedBack,
    #[error(transparent)]
    Seeds(#[from] SeedsError),
    #[error(transparent)]
    Address(#[from] ServerAddressError),
    /// A server lacks its tables, and they cannot be made.
    #[error(transparent)]
    Tables(ShardError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("cannot start a runtime")]
    Runtime(#[from] std::io::Error),
    #[error("cannot listen to signals")]
    Signals(#[source] std::io::Error),
    #[error("cannot write to stdout")]
    Unshown(#[source] std::io::Error),
}

impl RingError {
    /// The error of a connection to `servers`.
    fn connecting(error: TopologyError, servers: &Servers) -> Self {
        match error {
            TopologyError::Absent => Self::None(servers.init_command()),
            error => Self::Servers {
                shown: servers.located(&error.to_string()),
                error,
            },
        }
    }

    /// Its retryability and effect.
    pub(super) fn nature(&self) -> Nature {
        match self {
            Self::Servers { error, .. } => Nature::new(error.is_retryable(), Effect::None),
            Self::None(_) | Self::Seeds(_) | Self::Address(_) => Nature::new(false, Effect::None),
            Self::TurnedBack => Nature {
                is_told: true,
                ..Nature::default()
            },
            Self::Topology(error)
            | Self::Newcomer(error)
            | Self::Build(BuildError::Topology(error)) => Nature {
                retryable: Some(error.is_retryable()),
                ..Nature::default()
            },
            Self::Build(BuildError::Coordinators(error)) => {
                Nature::new(error.is_retryable, error.effect)
            }
            _ => Nature::default(),
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Seeds(_) => USAGE,
            Self::Resize(ResizeError::UnderWay { .. } | ResizeError::NoneUnderWay) => FAILED,
            Self::Declare(error) | Self::Namespace(NamespaceError::Declare(error)) => match error {
                DeclareError::UnderWay(_) | DeclareError::Topology(_) => FAILED,
                _ => USAGE,
            },
            Self::Resize(_)
            | Self::TooManyIds { .. }
            | Self::Zones { .. }
            | Self::OtherAttested { .. } => USAGE,
            Self::Decommission(
                DecommissionError::Unknown { .. } | DecommissionError::Last { .. },
            ) => USAGE,
            Self::Newcomer(TopologyError::Seeds(_)) => USAGE,
            Self::Interrupted { signal } => SIGNALLED + *signal as u8,
            _ => FAILED,
        }
    }
}

/// Runs the command, and prints the result.
pub(crate) fn run(command: &Command) -> Result<(), RingError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match command {
        Command::Init(init) => print(&runtime.block_on(init.found())?, init.json),
        Command::Show(show) => runtime.block_on(show.run()),
        Command::Plan(plan) => print(&runtime.block_on(plan.run())?, plan.json),
        Command::Add(add) => runtime.block_on(add.run()),
        Command::Remove(remove) => runtime.block_on(remove.run()),
        Command::Weigh(weigh) => runtime.block_on(weigh.run()),
        Command::Abort(abort) => runtime.block_on(abort.run()),
        Command::Resume(resume) => runtime.block_on(resume.run()),
        Command::Watch(watch) => runtime.block_on(watch.run()),
        Command::Namespace(namespace) => runtime.block_on(namespace.run()),
        Command::Readdress(readdress) => print(&runtime.block_on(readdress.run())?, readdress.json),
        Command::Recover(recover) => print(&runtime.block_on(recover.run())?, recover.json),
    }
}

/// Prints `what` to stdout: for people, or as one JSON object.
pub(super) fn print(what: &(impl Display + Serialize), json: bool) -> Result<(), RingError> {
    super::print(what, json).map_err(RingError::Unshown)
}

/// A client of the existing topology on servers. It founds none.
pub(super) async fn existing(seeds: &Seeds) -> Result<Client, RingError> {
    connected(&Named::Servers(seeds.servers()?)).await
}

/// A client of servers or coordinators. It founds no topology.
pub(super) async fn connected(place: &Named) -> Result<Client, RingError> {
    let client = place.client().connect_within(ASK_WITHIN);
    client.build().await.map_err(|error| match (error, place) {
        (BuildError::Topology(error), Named::Servers(servers)) => {
            RingError::connecting(error, servers)
        }
        (error, _) => error.into(),
    })
}

/// Refuses zones for some of the servers only.
fn check_zones(zones: &[Zone], servers: usize) -> Result<(), RingError> {
    match zones.is_empty() || zones.len() == servers {
        true => Ok(()),
        false => Err(RingError::Zones {
            zones: zones.len(),
            servers,
        }),
    }
}

/// Joins an existing topology; founds none.
fn existing_only() -> Founding {
    Founding {
        allowed: false,
        within: ASK_WITHIN,
        ..Founding::default()
    }
}

async fn join(servers: &Servers, founding: Founding) -> Result<Joined, RingError> {
    let clock = Arc::new(BootClock);
    let random = Arc::new(Random::from_os());
    let me = ClientId(random.id());
    let founding = Founding {
        home: servers.topology(),
        ..founding
    };
    let joined = connect(servers.options(me), founding, clock, random, me).await;
    joined.map_err(|error| RingError::connecting(error, servers))
}
