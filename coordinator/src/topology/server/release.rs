//! Releases a server that left: it keeps nothing that binds it to this topology.

use super::{ServerTopology, answers::Retired};
use crate::topology::{TopologyError, TopologyStore as _};

impl ServerTopology {
    /// Removes from the server at `address`, which is no longer a shard, its pointer to this
    /// topology and its state, so that another topology can be founded on it. Returns whether there
    /// was anything to remove: not at the home, which stays as it is.
    ///
    /// Until then a process with only that server as a seed still finds this topology by it;
    /// afterwards it would found one. This topology accepts the server again after a restart. May
    /// be repeated. Must not run while the server is joining.
    ///
    /// # Errors
    ///
    /// * [`TopologyError::Seeds`]: it is a shard, or its slots are not shut yet.
    /// * [`TopologyError::Unreachable`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it done or not.
    pub async fn release(&self, address: &str) -> Result<bool, TopologyError> {
        let topology = self.load().await?;
        if topology.home.address == address {
            return Ok(false);
        }
        let member = self.caller.members.at(address)?;
        let server = member.repeated(|| member.server()).await?;
        let mut shards = topology.shards.iter();
        let shard = shards.find(|(_, entry)| {
            entry.address == address || entry.life.run_id() == server.life.run_id()
        });
        if let Some((name, _)) = shard {
            let id = &name.0;
            return Err(TopologyError::Seeds(format!(
                "{address} is shard {id}: remove it first"
            )));
        }
        let life = &server.life;
        match member.repeated(|| member.retire(&topology, life)).await? {
            Retired::Done => Ok(true),
            Retired::NotThere => Ok(false),
            Retired::InUse => Err(TopologyError::Seeds(format!(
                "{address} is in use by topology {} still: it keeps the record, or a slot there is not shut",
                topology.id
            ))),
            Retired::Stale(fence) => Err(self.recover_needed(&format!(
                "its record has incarnation {}, and the fence of {address} is {fence}",
                topology.incarnation
            ))),
            Retired::OtherLife => Err(TopologyError::Unreachable {
                address: address.to_owned(),
                reason: "it began another life meanwhile".into(),
            }),
        }
    }
}
