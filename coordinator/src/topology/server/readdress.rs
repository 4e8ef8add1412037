//! A shard's server gets another address.

use ringfence_ring::ShardId;

use super::ServerTopology;
use crate::{
    shard::ServerOptions,
    topology::{ShardName, Swap, Topology, TopologyError, TopologyStore as _},
};

impl ServerTopology {
    /// Has the record name the server at `options` as the address of shard `id`. It is the same server, in the life that
    /// the record names: nothing is armed anew, and locks stay held.
    ///
    /// # Errors
    ///
    /// * [`TopologyError::Seeds`]: there is no such shard, or another server, or another life of it, answers there, or
    ///   another shard has that address. Names them.
    /// * [`TopologyError::Unreachable`]: it does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the former address, or the new one: the call may be repeated.
    pub async fn readdress(
        &self,
        id: &ShardId,
        options: impl Into<ServerOptions>,
    ) -> Result<Topology, TopologyError> {
        let member = self.caller.members.with(options.into());
        let address = member.address();
        let life = member.repeated(|| member.trace()).await?.server.life;
        loop {
            let known = self.load().await?;
            let Some(next) = known.readdressed(id, address) else {
                let shards: Vec<_> = known.shards.keys().map(|name| name.0.as_str()).collect();
                return Err(TopologyError::Seeds(format!(
                    "topology {} has no shard {id}; it has {}",
                    known.id,
                    shards.join(", ")
                )));
            };
            let mut others = known.shards.iter().filter(|(name, _)| name.0 != *id);
            if let Some((ShardName(other), _)) = others.find(|(_, entry)| entry.address == address)
            {
                return Err(TopologyError::Seeds(format!(
                    "{address} is the address of shard {other}"
                )));
            }
            let entry = &next.shards[&ShardName(id.clone())];
            if entry.life != life {
                return Err(TopologyError::Seeds(format!(
                    "{address} lives {life}, and shard {id} lives {}: it is another server, or was restarted. Only a server \
                     in the same life gets another address; another server is a new shard (ringfence ring add)",
                    entry.life
                )));
            }
            match self.swap(known.version(), &next).await? {
                Swap::Done => return Ok(next),
                Swap::Newer(_) => {}
            }
        }
    }
}
