//! The data that other members must have before anything is done in a record's name.

use std::{sync::Arc, time::Duration};

use hashbrown::HashSet;
use tokio::time::timeout;

use super::{ServerTopology, answers::Copied, caller::Caller, stored::Pointer};
use crate::{
    ids::{Epoch, Incarnation, Life},
    topology::{ShardEntry, Topology, TopologyError, TopologyStore as _, Version},
};

/// How long to wait for a member without a pointer while it is being told: long enough for a
/// handshake ...
const POINTED_WITHIN: Duration = Duration::from_millis(250);
/// ... and no longer than this part of a view lease: a process that waits for a silent member
/// cannot confirm its view.
const POINTED_WITHIN_PART: u32 = 6;

/// The data that other members are known to have.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// The newest version that another member has a copy of.
    copied: Option<Version>,
    /// The newest version that no other member acknowledged.
    unanswered: Option<Version>,
    /// The record's incarnation: in another one, another server may be the home.
    incarnation: Option<Incarnation>,
    /// Lives with a pointer to the record's home, and the epochs that the record names for them. A
    /// life that lost its state is named with another epoch, and may have lost its pointer too.
    pointed: HashSet<(Life, Epoch)>,
    /// Lives that are being told, and the version.
    telling: HashSet<(Life, Version)>,
    /// The greatest incarnation above the record's that a member has seen, and its address.
    fence: Option<(Incarnation, String)>,
}

impl Published {
    /// Whether `version` needs no further copy: a member has one, or no member answered.
    fn is_copied(&self, version: Version) -> bool {
        self.copied.max(self.unanswered) >= Some(version)
    }

    /// Whether no life in `lives` is being told `version`.
    fn is_told(&self, version: Version, lives: &[Life]) -> bool {
        let mut telling = self.telling.iter();
        !telling.any(|(life, its)| *its == version && lives.contains(life))
    }

    /// The members that have to be told, and are being told from now on: they have no pointer, or
    /// no member has a copy.
    fn begin<'a>(&mut self, topology: &'a Topology) -> Vec<&'a ShardEntry> {
        if self.incarnation < Some(topology.incarnation) {
            self.incarnation = Some(topology.incarnation);
            self.pointed.clear();
        }
        let version = topology.version();
        let copied = self.copied >= Some(version);
        let entries = topology.shards.values();
        let others = entries.filter(|entry| entry.address != topology.home.address);
        let mut missing: Vec<_> = others.collect();
        if missing.is_empty() {
            self.unanswered = self.unanswered.max(Some(version));
        }
        missing.retain(|entry| !(copied && self.is_pointed(entry)));
        missing.retain(|entry| self.telling.insert((entry.life.clone(), version)));
        missing
    }

    fn is_pointed(&self, entry: &ShardEntry) -> bool {
        self.pointed.contains(&(entry.life.clone(), entry.epoch))
    }

    /// Records a member's result.
    fn heard(&mut self, topology: &Topology, told: Told) {
        let Told {
            address,
            life,
            epoch,
            copied,
        } = told;
        let version = topology.version();
        match copied {
            Ok(Copied::Kept) => {
                if self.incarnation == Some(topology.incarnation) {
                    self.pointed.insert((life.clone(), epoch));
                }
                self.copied = self.copied.max(Some(version));
            }
            Ok(Copied::NotMember) => {
                tracing::warn!(%address, id = topology.id, "a member's pointer names another topology, or none");
            }
            Ok(Copied::Stale(fence)) => {
                let fence = fence.parse().ok().map(|fence| (fence, address));
                self.fence = self.fence.take().max(fence);
            }
            Err(error) => {
                tracing::debug!(%address, %error, "a member has no copy of the topology yet");
            }
        }
        self.telling.remove(&(life, version));
        let is_last = !self.telling.iter().any(|(_, its)| *its == version);
        if is_last && !self.is_copied(version) {
            let version = topology.version;
            tracing::warn!(
                version,
                "no other member answers: the topology has no copy of this version"
            );
            self.unanswered = Some(topology.version());
        }
    }
}

/// The result of one member.
struct Told {
    address: String,
    life: Life,
    epoch: Epoch,
    copied: Result<Copied, TopologyError>,
}

impl ServerTopology {
    /// Sets the pointer of every member that came back empty and joined again, or that knows
    /// another home. Ensures that one other member that answers has a copy of `topology`.
    ///
    /// A silent member is told in the background, so it delays the others only briefly. If no other
    /// member answers, the call is done: no epoch is used twice all the same, because epochs follow
    /// the clock.
    ///
    /// # Errors
    ///
    /// [`TopologyError::RecoverNeeded`]: a member has seen a later incarnation.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the tasks that tell members.
    pub(super) async fn publish(&self, topology: &Topology) -> Result<(), TopologyError> {
        let version = topology.version();
        let unpointed = self.tell_others(topology);
        let mut published = self.published.subscribe();
        let copied =
            published.wait_for(|known| known.is_copied(version) || is_outrun(known, topology));
        drop(copied.await);
        let view_lease = topology.constants.view_lease();
        let within = view_lease.map_or(POINTED_WITHIN, |length| {
            POINTED_WITHIN.min(length / POINTED_WITHIN_PART)
        });
        let pointed = published
            .wait_for(|known| known.is_told(version, &unpointed) || is_outrun(known, topology));
        let _ = timeout(within, pointed).await;
        self.check_fences(topology)
    }

    /// Begins to tell the members that have to be told. Returns those without a pointer.
    fn tell_others(&self, topology: &Topology) -> Vec<Life> {
        let mut unpointed = Vec::new();
        self.published.send_if_modified(|published| {
            let entries = published.begin(topology);
            if entries.is_empty() {
                return false;
            }
            let topology = Arc::new(topology.clone());
            for entry in entries {
                let is_pointed = published.is_pointed(entry);
                if !is_pointed {
                    unpointed.push(entry.life.clone());
                }
                self.tell_in_background(&topology, entry, is_pointed);
            }
            false
        });
        unpointed
    }

    fn tell_in_background(&self, topology: &Arc<Topology>, entry: &ShardEntry, is_pointed: bool) {
        let (caller, published) = (self.caller.clone(), self.published.clone());
        let (topology, entry) = (topology.clone(), entry.clone());
        let telling = async move {
            let told = Told {
                copied: tell(&caller, &topology, &entry, is_pointed).await,
                address: entry.address,
                life: entry.life,
                epoch: entry.epoch,
            };
            published.send_modify(|published| published.heard(&topology, told));
        };
        let stopped = self.stop.clone();
        self.tasks
            .spawn(async move { stopped.run_until_cancelled_owned(telling).await });
    }

    /// Checks that no member has seen a later incarnation.
    fn check_fences(&self, topology: &Topology) -> Result<(), TopologyError> {
        let fence = self.published.borrow().fence.clone();
        match fence.filter(|(fence, _)| *fence > topology.incarnation) {
            None => Ok(()),
            Some((fence, address)) => {
                self.outrun(fence);
                Err(self.recover_needed(&format!(
                    "its record has incarnation {}, and the fence of {address} is {fence}",
                    topology.incarnation
                )))
            }
        }
    }
}

/// Whether a member has seen a later incarnation than that of `topology`.
fn is_outrun(known: &Published, topology: &Topology) -> bool {
    let mut fence = known.fence.iter();
    fence.any(|(fence, _)| *fence > topology.incarnation)
}

/// Gives one member its pointer and copy.
async fn tell(
    caller: &Caller,
    topology: &Topology,
    entry: &ShardEntry,
    is_pointed: bool,
) -> Result<Copied, TopologyError> {
    let member = caller.members.at(&entry.address)?;
    if !is_pointed {
        let pointer = Pointer::to(topology);
        member
            .repeated(|| member.join(&pointer, &entry.life))
            .await?;
    }
    member.repeated(|| member.copy(topology)).await
}
