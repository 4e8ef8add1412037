//! `ringfence ring add | remove | weigh | abort | resume`: their arguments.

use clap::Args;
use ringfence_client::ShardId;
use ringfence_ring::Zone;

use super::{
    RingError,
    change::{Newcomer, RequestedChange, Weighed},
    check_zones, remove_failed,
    run::{Begin, MoveOptions, turn_back},
};

const AFTER: &str = "\
Moving:
  Locks stay held while their slots move: holders renew at the next shard.
  Waiters queue again there. Acquiring a lock in a migrating slot costs at most
  one extra round trip. This process moves the slots, and prints its progress on
  stderr. It can be stopped, or killed, at any time: the topology records what is
  done. `ringfence ring resume` continues on any machine, `ringfence ring abort`
  turns back, and `ringfence ring watch` shows the progress.

Exit codes:
    0  every slot is at its shard
    1  failed: the message gives the reason, and the next step
    2  invalid command line or argument; nothing was changed
  128 + signal  interrupted; the resize stays as it is

JSON:
  One object per line: \"state\" is \"moving\" during the resize, and \"done\" in
  the last line.";

/// Add servers as shards, and move their slots to them
///
/// By default, new shards get the next free letters as ids. A server that belongs to another
/// topology is refused. All named servers are added by one resize: adding them one at a time moves
/// more slots.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Add {
    /// The servers, each with its weight [default weight: 1]
    #[arg(value_name = "URL[=WEIGHT]", required = true)]
    servers: Vec<Newcomer>,
    /// The ids of the new shards, in their order. Repeat it, or separate ids by commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    id: Vec<ShardId>,
    /// The zones of the new shards, such as data centers, in their order: one for each server, or
    /// none. Repeat it, or separate zones by commas. A shard keeps its zone
    #[arg(long, value_name = "ZONE", value_delimiter = ',')]
    zone: Vec<Zone>,
    /// The servers have never held a lock, so no recovery period is needed. If that is wrong, a
    /// lock can have two holders
    #[arg(long)]
    servers_are_new: bool,
    #[command(flatten)]
    how: Begin,
}

/// Move all slots away from shards, then remove the shards
///
/// Their servers keep a pointer to this topology, so they still work as seeds. A shard that will
/// never answer again is removed by force, with --gone, in two steps.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Remove {
    /// The shards to remove; they must be reachable
    #[arg(value_name = "ID", required_unless_present = "gone")]
    shards: Vec<ShardId>,
    /// Remove this shard by force, because it will never answer again. Without --attest-dead: show
    /// the consequences, and change nothing
    #[arg(long, value_name = "ID", conflicts_with_all = ["shards", "dry_run"])]
    gone: Option<ShardId>,
    /// I attest that this shard is dead: remove it. The same id as --gone
    #[arg(long, value_name = "ID", requires = "gone")]
    attest_dead: Option<ShardId>,
    #[command(flatten)]
    how: Begin,
}

/// Change the weights of shards, and move slots accordingly
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Weigh {
    /// The shards and their weights, 1 to 10000: a shard of weight 2 gets twice the slots of one of
    /// weight 1
    #[arg(value_name = "ID=WEIGHT", required = true)]
    weights: Vec<Weighed>,
    #[command(flatten)]
    how: Begin,
}

/// Turn the resize under way back
///
/// Slots that have moved move back; migrating slots turn round. A second abort continues the
/// resize.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Abort {
    #[command(flatten)]
    how: MoveOptions,
}

/// Continue the resize under way
///
/// Any process may have begun it. Does nothing if no resize is under way. Two processes may move
/// slots at the same time.
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
        check_zones(&self.zone, self.servers.len())?;
        let ids = self
            .id
            .iter()
            .cloned()
            .map(Some)
            .chain([None].into_iter().cycle());
        let zones = self.zone.iter().cloned().map(Some);
        let zones = zones.chain([None].into_iter().cycle());
        let named = |((server, id), zone): ((&Newcomer, _), _)| Newcomer {
            id,
            zone,
            ..server.clone()
        };
        let requested = RequestedChange {
            add: self.servers.iter().zip(ids).zip(zones).map(named).collect(),
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
