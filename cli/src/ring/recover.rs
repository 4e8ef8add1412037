//! `ringfence ring recover`: restores the record after an operator attested which members are dead.

use clap::Args;
use ringfence_client::Topology;
use ringfence_coordinator::topology::server::Joined;

use super::{
    RingError, existing_only, join,
    view::{Done, View},
};
use crate::seeds::Seeds;

#[derive(Args, Debug)]
pub(crate) struct Recover {
    #[command(flatten)]
    seeds: Seeds,
    /// I attest that this shard (or home, by its address) is dead: no client can reach it, and it
    /// will be restarted or flushed before one can. If that is wrong, a lock can have two holders.
    /// May be repeated
    #[arg(long, value_name = "ID")]
    attest_dead: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

impl Recover {
    /// Restores the record, if none is in force.
    pub(super) async fn run(&self) -> Result<View, RingError> {
        let servers = self.seeds.servers()?;
        let Joined { store, .. } = join(&servers, existing_only()).await?;
        let before = store.view();
        self.check(&before)?;
        let topology = store.recover(&self.attest_dead).await?;
        let client = servers.client().build().await?;
        let done = if topology.version() > before.version() {
            Done::Recovered
        } else {
            Done::InForce
        };
        Ok(View::of(&client, done).await?)
    }

    /// Checks that every attested shard is a member.
    fn check(&self, topology: &Topology) -> Result<(), RingError> {
        let shards: Vec<_> = topology.shards.keys().map(|name| name.0.as_str()).collect();
        for id in &self.attest_dead {
            if !shards.contains(&id.as_str()) && *id != topology.home.address {
                return Err(RingError::NoShard {
                    id: id.clone(),
                    topology: topology.id.clone(),
                    shards: shards.join(", "),
                });
            }
        }
        Ok(())
    }
}
