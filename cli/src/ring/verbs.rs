//! `ringfence ring add | remove | weigh | abort | resume`: what can be asked for.

use clap::Args;
use ringfence_client::ShardId;

use super::{
    RingError,
    change::{Newcomer, RequestedChange, Weighed},
    remove_failed,
    run::{Begin, MoveOptions, turn_back},
};

const AFTER: &str = "\
Moving:
  Locks stay held while their slots move, and whoever waits for one keeps its
  place: holders renew at the next shard. Migrating slots cost whoever asks for
  a lock there one more round trip at most. This process moves them, and tells
  how far it is on stderr. It may be stopped, or die, at any moment: the topology
  knows what was done. `ringfence ring resume` goes on, and `ringfence ring
  abort` turns back, on any machine; `ringfence ring watch` looks on.

Exit codes:
    0  every slot is where it is to be
    1  it is not: the message says why, and what to do
    2  the command line, or what it names, cannot be used; nothing was changed
  128 + signal  interrupted by it; the resize stays as it is

JSON:
  One object a line: while it goes on \"state\" is \"moving\"; the last one is
  \"done\".";

/// Add servers as shards, and move their slots to them
///
/// New shards are called by the next free letters unless --id says otherwise. A server that belongs to
/// another topology is refused. All that are named come by one resize: one at a time they would move more
/// slots than are needed.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Add {
    /// Servers, each with the weight 1 unless another is said
    #[arg(value_name = "URL[=WEIGHT]", required = true)]
    servers: Vec<Newcomer>,
    /// What they will be called, in their order. Repeat it, or separate them by commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    id: Vec<ShardId>,
    /// They were started for this and have never held a lock: no grace is needed. Wrong, it can make
    /// two holders
    #[arg(long)]
    servers_are_new: bool,
    #[command(flatten)]
    how: Begin,
}

/// Move all slots away from shards, then let them go
///
/// Their servers keep a pointer to this topology: whoever is given one of them as a seed finds the others
/// by it. A shard that will never answer again is removed by force, with --gone, in two steps.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Remove {
    /// Shards, which answer
    #[arg(value_name = "ID", required_unless_present = "gone")]
    shards: Vec<ShardId>,
    /// This shard will never answer again: show what doing without it means, and change nothing
    #[arg(long, value_name = "ID", conflicts_with_all = ["shards", "dry_run"])]
    gone: Option<ShardId>,
    /// I attest what was shown: do it
    #[arg(long, value_name = "ID", requires = "gone")]
    attest_dead: Option<ShardId>,
    #[command(flatten)]
    how: Begin,
}

/// Give shards other weights, and move slots accordingly
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Weigh {
    /// Shards and their weights, 1 to 10000: one of 2 is due twice the slots of one of 1
    #[arg(value_name = "ID=WEIGHT", required = true)]
    weights: Vec<Weighed>,
    #[command(flatten)]
    how: Begin,
}

/// Turn the resize under way back
///
/// What has moved moves back, what is migrating turns round. Aborted again, it goes on after all.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Abort {
    #[command(flatten)]
    how: MoveOptions,
}

/// Go on with the resize under way, whoever began it
///
/// Where none is, nothing is done. Two that move at a time do each other no harm.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Resume {
    #[command(flatten)]
    how: MoveOptions,
}

impl Add {
    pub(super) async fn run(&self) -> Result<(), RingError> {
        if self.id.len() > self.servers.len() {
            let (ids, servers) = (self.id.len(), self.servers.len());
            return Err(RingError::TooManyIds { ids, servers });
        }
        let ids = self
            .id
            .iter()
            .cloned()
            .map(Some)
            .chain([None].into_iter().cycle());
        let named = |(server, id): (&Newcomer, Option<ShardId>)| Newcomer {
            id,
            ..server.clone()
        };
        let requested = RequestedChange {
            add: self.servers.iter().zip(ids).map(named).collect(),
            ..RequestedChange::default()
        };
        self.how.run(&requested, self.servers_are_new).await
    }
}

impl Remove {
    pub(super) async fn run(&self) -> Result<(), RingError> {
        if let Some(gone) = &self.gone {
            let attested = self.attest_dead.as_ref();
            if let Some(other) = attested.filter(|attested| *attested != gone) {
                let (gone, other) = (gone.clone(), other.clone());
                return Err(RingError::OtherAttested { gone, other });
            }
            return remove_failed::remove(gone, attested.is_some(), self.how.how()).await;
        }
        let requested = RequestedChange {
            remove: self.shards.clone(),
            ..RequestedChange::default()
        };
        self.how.run(&requested, false).await
    }
}

impl Weigh {
    pub(super) async fn run(&self) -> Result<(), RingError> {
        let requested = RequestedChange {
            weigh: self.weights.clone(),
            ..RequestedChange::default()
        };
        self.how.run(&requested, false).await
    }
}

impl Abort {
    pub(super) async fn run(&self) -> Result<(), RingError> {
        let store = self.how.store().await?;
        let aim = turn_back(&store).await?;
        self.how.move_slots(store, false, aim).await
    }
}

impl Resume {
    pub(super) async fn run(&self) -> Result<(), RingError> {
        self.how
            .move_slots(self.how.store().await?, false, None)
            .await
    }
}
