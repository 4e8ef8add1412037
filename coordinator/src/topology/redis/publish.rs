//! What has to be at other members before anything is done in a record's name.

use futures_util::{StreamExt, stream::FuturesUnordered};
use hashbrown::HashSet;

use super::{RedisTopology, answers::Copied, stored::Pointer};
use crate::{
    ids::{Incarnation, Life},
    topology::{ShardEntry, Topology, TopologyError, TopologyStore as _, Version},
};

/// What is known to be at other members.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// The newest version that another member has a copy of.
    copied: Option<Version>,
    /// The record's incarnation: in another, its home may be another.
    incarnation: Option<Incarnation>,
    /// Lives that have a pointer to the record's home.
    pointed: HashSet<Life>,
}

/// What one member did.
struct Told {
    address: String,
    life: Life,
    copied: Result<Copied, TopologyError>,
}

impl RedisTopology {
    /// Sets the pointer of every member that came back empty and was taken in again, or that knows
    /// another home, and makes sure that one other member, of those that answer, has a copy of
    /// `topology`.
    ///
    /// With no other member there to answer, it is done: no epoch is used twice all the same, as
    /// they follow the clock.
    ///
    /// # Errors
    ///
    /// [`TopologyError::RecoverNeeded`]: a member has seen a later incarnation.
    pub(super) async fn publish(&self, topology: &Topology) -> Result<(), TopologyError> {
        let (copied, others) = {
            let mut published = self.published.lock();
            if published.incarnation < Some(topology.incarnation) {
                published.incarnation = Some(topology.incarnation);
                published.pointed.clear();
            }
            let copied = published.copied >= Some(topology.version());
            let others = topology
                .shards
                .values()
                .filter(|entry| entry.address != topology.home.address);
            let others = others.map(|entry| (entry, published.pointed.contains(&entry.life)));
            let others = others.filter(|(_, pointed)| !(copied && *pointed));
            (copied, others.collect::<Vec<_>>())
        };
        let pointer = Pointer::to(topology);
        let telling = others
            .iter()
            .map(|(entry, pointed)| self.tell(topology, &pointer, entry, *pointed));
        let mut telling: FuturesUnordered<_> = telling.collect();
        let mut unpointed = others.iter().filter(|(_, pointed)| !pointed).count();
        let mut copied = copied || others.is_empty();
        while let Some((was_pointed, told)) = telling.next().await {
            unpointed -= usize::from(!was_pointed);
            copied |= self.heard(topology, told)?;
            if copied && unpointed == 0 {
                return Ok(());
            }
        }
        if !copied {
            let version = topology.version;
            tracing::warn!(
                version,
                "no other member answers: the topology has no copy of this version"
            );
        }
        Ok(())
    }

    /// Gives one member what it is to have.
    async fn tell(
        &self,
        topology: &Topology,
        pointer: &Pointer,
        entry: &ShardEntry,
        pointed: bool,
    ) -> (bool, Told) {
        let told = async {
            let member = self.caller.members.at(&entry.address)?;
            if !pointed {
                member
                    .repeated(|| member.join(pointer, &entry.life))
                    .await?;
            }
            member.repeated(|| member.copy(topology)).await
        };
        let told = Told {
            copied: told.await,
            address: entry.address.clone(),
            life: entry.life.clone(),
        };
        (pointed, told)
    }

    /// Notes what a member did; answers whether it has the copy.
    fn heard(&self, topology: &Topology, told: Told) -> Result<bool, TopologyError> {
        let Told {
            address,
            life,
            copied,
        } = told;
        let mut published = self.published.lock();
        match copied {
            Ok(Copied::Kept) => {
                if published.incarnation == Some(topology.incarnation) {
                    published.pointed.insert(life);
                }
                published.copied = published.copied.max(Some(topology.version()));
                Ok(true)
            }
            Ok(Copied::NotMember) => {
                tracing::warn!(%address, id = topology.id, "a member's pointer names another topology, or none");
                Ok(false)
            }
            Ok(Copied::Stale(fence)) => {
                if let Ok(fence) = fence.parse() {
                    self.outrun(fence);
                }
                Err(self.recover_needed(&format!(
                    "its record has incarnation {}, and the fence of {address} is {fence}",
                    topology.incarnation
                )))
            }
            Err(error) => {
                tracing::debug!(%address, %error, "a member has no copy of the topology yet");
                Ok(false)
            }
        }
    }
}
