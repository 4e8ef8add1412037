//! `ringfence ring readdress`: the server of a shard is reached by another address.

use std::sync::Arc;

use clap::Args;
use ringfence_client::{BootClock, ShardId};
use ringfence_coordinator::{
    ids::ClientId,
    name::KeyPrefix,
    random::Random,
    shard::{ServerAddress, ServerOptions},
    topology::server::{Joined, connect},
};

use super::{
    RingError, existing_only, join,
    view::{Done, View},
};
use crate::seeds::Seeds;

#[derive(Args, Debug)]
pub(crate) struct Readdress {
    /// The shard
    #[arg(value_name = "ID")]
    shard: ShardId,
    /// The new address of its server
    #[arg(value_name = "URL")]
    address: ServerAddress,
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

impl Readdress {
    /// Changes the record, if the shard answers at the new address.
    pub(super) async fn run(&self) -> Result<View, RingError> {
        let servers = self.seeds.servers()?;
        let random = Arc::new(Random::from_os());
        let me = ClientId(random.id());
        let options = ServerOptions::new(self.address.clone(), me, KeyPrefix::default());
        let changed = async |joined: Joined| {
            let changed = joined.store.readdress(&self.shard, options.clone()).await;
            changed.map_err(RingError::Newcomer)
        };
        match changed(join(&servers, existing_only()).await?).await {
            Err(RingError::Newcomer(error)) if error.is_retryable() => {
                // The server that has moved may be the one that has the record.
                let (seeds, clock) = (vec![options.clone()], Arc::new(BootClock));
                let joined = connect(seeds, existing_only(), clock, random, me).await;
                changed(joined.map_err(|_| RingError::Newcomer(error))?).await?
            }
            changed => changed?,
        };
        let client = servers.client().build().await?;
        Ok(View::of(&client, Done::Readdressed).await?)
    }
}
