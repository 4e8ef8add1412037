//! Warnings for a person about the topology that was found.

use std::collections::BTreeMap;

use super::{
    ServerTopology,
    first_use::FirstUse,
    survey::{Seen, Survey},
};
use crate::topology::{Constants, Topology, TopologyError};

impl FirstUse {
    /// The warnings about `topology`, found by `survey`.
    pub(super) async fn warnings(
        &self,
        store: &ServerTopology,
        topology: &Topology,
        survey: &Survey,
    ) -> Vec<String> {
        let mut warnings = seed_warnings(topology, survey);
        warnings.extend(self.founding_warnings(topology));
        warnings.extend(shared_server(topology));
        warnings.extend(match survey.at(&store.home()) {
            Some(seen) => seen.trace.server.forgets.clone(),
            None if survey.silence_of(&store.home()).is_some() => None,
            None => {
                let server = store.home_member().server().await;
                server.ok().and_then(|server| server.forgets)
            }
        });
        warnings
    }

    /// Checks that each seed that answers is or was a member of `topology`.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Seeds`] names the first seed that is not.
    pub(super) async fn check_members(
        &self,
        topology: &Topology,
        survey: &Survey,
    ) -> Result<(), TopologyError> {
        for Seen { member, trace, .. } in survey.seen.iter().filter(|seen| seen.place.is_some()) {
            let (address, run_id) = (member.address(), trace.server.life.run_id());
            let points_here = (trace.belongs_to()).is_some_and(|pointer| pointer.id == topology.id);
            if !points_here
                && address != topology.home.address
                && !is_member(topology, run_id, address)
                && !self.is_alias(topology, run_id).await
            {
                let members = topology.shards.values();
                let members: Vec<_> = members.map(|entry| entry.address.as_str()).collect();
                return Err(TopologyError::Seeds(format!(
                    "{address} is not a member of topology {}, whose members are {}: name members \
                     only, or add the server: ringfence ring add {address}",
                    topology.id,
                    members.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Whether a member is the server `run_id` under another address: a server that restarted has
    /// no trace yet, and a `run_id` that the record does not know.
    async fn is_alias(&self, topology: &Topology, run_id: &str) -> bool {
        for entry in topology.shards.values() {
            if let Ok(member) = self.caller.members.at(&entry.address)
                && let Ok(server) = member.repeated(|| member.server()).await
                && server.life.run_id() == run_id
            {
                return true;
            }
        }
        false
    }

    /// The requested terms that differ from the topology's.
    fn founding_warnings(&self, topology: &Topology) -> Vec<String> {
        let mut warnings = Vec::new();
        let asked = self.founding.constants;
        if ![topology.constants, Constants::default()].contains(&asked) {
            let there = topology.constants;
            let (max_lease, rho, lag) =
                (there.max_lease(), there.rho_permille, there.replica_lag());
            let removal = match there.view_lease() {
                Some(length) => format!("{} by a view_lease of {length:?}", there.removal),
                None => there.removal.to_string(),
            };
            warnings.push(format!(
                "the topology was founded with max_lease {max_lease:?}, rho {rho} permille, \
                 replica_lag {lag:?} and removal {removal}: they stay"
            ));
        }
        if topology.table.slots().get() != self.founding.slots.get() {
            let slots = topology.table.slots();
            warnings.push(format!(
                "the topology was founded with {slots} slots: they stay"
            ));
        }
        let (asked, there) = (&self.founding.namespaces, &topology.namespaces);
        if !asked.is_empty() && asked != there {
            let there = match there.is_empty() {
                true => "none".to_owned(),
                false => there.to_string(),
            };
            warnings.push(format!(
                "the topology's namespaces with replicas are {there}, not {asked}: they stay"
            ));
        }
        if let Some(home) = &self.founding.home
            && home.as_str() != topology.home.address
        {
            let there = &topology.home.address;
            warnings.push(format!(
                "the topology's home is {there}, not {home}: it stays there"
            ));
        }
        warnings
    }
}

/// Shards that fail together, if locks have replicas: databases, or paths, of one server.
fn shared_server(topology: &Topology) -> Option<String> {
    if topology.namespaces.is_empty() {
        return None;
    }
    let mut of_server: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, entry) in &topology.shards {
        let (_, rest) = entry.address.split_once("://")?;
        let server = rest.split('/').next()?;
        of_server
            .entry(server)
            .or_default()
            .push(name.0.to_string());
    }
    let (server, shards) = of_server.into_iter().find(|(_, shards)| shards.len() > 1)?;
    let shards = shards.join(" and ");
    Some(format!(
        "shards {shards} are on one server, {server}: they fail together, so the replicas of a lock there are as good as one"
    ))
}

/// Whether the server is a shard.
fn is_member(topology: &Topology, run_id: &str, address: &str) -> bool {
    let mut shards = topology.shards.values();
    shards.any(|entry| entry.address == address || entry.life.run_id() == run_id)
}

/// Seeds that are silent, or not members.
fn seed_warnings(topology: &Topology, survey: &Survey) -> Vec<String> {
    let mut warnings = Vec::new();
    for seen in survey.seen.iter().filter(|seen| seen.place.is_some()) {
        let (address, run_id) = (seen.member.address(), seen.trace.server.life.run_id());
        if !is_member(topology, run_id, address) && address != topology.home.address {
            warnings.push(format!(
                "{address} is no member of topology {}: not used",
                topology.id
            ));
        }
    }
    for (member, error) in &survey.silent {
        let address = member.address();
        let part = if is_member(topology, "", address) {
            "its locks wait"
        } else {
            "it is no member"
        };
        warnings.push(match error {
            TopologyError::Unreachable { reason, .. } => {
                format!("{address} does not answer, {part}: {reason}")
            }
            error => format!("{error} ({part})"),
        });
    }
    warnings
}
