//! Shards on servers.

use std::sync::Arc;

use ringfence_coordinator::{
    ids::ClientId,
    name::KeyPrefix,
    random::Random,
    shard::{ServerAddress, ServerAddressError, ServerOptions},
    topology::server::{Founding, Joined, connect},
};

use crate::{
    BuildError, Builder, Client,
    builder::{Found, Grounds},
};

pub(crate) async fn build(
    builder: &Builder,
    urls: &[String],
    random: Arc<Random>,
) -> Result<Client, BuildError> {
    let client = ClientId(random.id());
    let prefix = KeyPrefix::new(&builder.prefix)?;
    let options = |url: &String| {
        let options = ServerOptions::new(url.parse()?, client, prefix.clone());
        Ok(options.counters_per_call(builder.counters_per_call))
    };
    let seeds = urls
        .iter()
        .map(options)
        .collect::<Result<Vec<_>, ServerAddressError>>()?;
    let home = builder
        .topology_at
        .as_deref()
        .map(str::parse::<ServerAddress>)
        .transpose()?;
    let mut founding = Founding {
        allowed: !builder.existing_topology,
        members_only: builder.members_only,
        constants: builder.constants,
        namespaces: builder.namespaces()?,
        home,
        ..Founding::default()
    };
    if let Some(within) = builder.connect_within {
        founding.within = within;
    }
    let joined = connect(
        seeds,
        founding,
        builder.clock.clone(),
        random.clone(),
        client,
    )
    .await?;
    let Joined {
        store,
        topology,
        warnings,
        ..
    } = joined;
    let found = Found {
        dial: store.clone(),
        grounds: Grounds::Servers(store.clone()),
        store,
        topology,
        servers_are_new: builder.servers_are_new,
        warnings,
        coordinators: None,
    };
    Ok(builder.start(found, client, random).await)
}
