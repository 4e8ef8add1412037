//! What a person had better know of the topology that was found.

use super::{RedisTopology, first_use::FirstUse, survey::Survey};
use crate::topology::{Constants, Topology};

impl FirstUse {
    /// What is worth telling of `topology`, found by `survey`.
    pub(super) async fn warnings(
        &self,
        store: &RedisTopology,
        topology: &Topology,
        survey: &Survey,
    ) -> Vec<String> {
        let mut warnings = seed_warnings(topology, survey);
        warnings.extend(self.founding_warnings(topology));
        let forgets = match survey.at(&store.home()) {
            Some(seen) => !seen.trace.server.appendonly,
            None if survey.silence_of(&store.home()).is_some() => false,
            None => {
                let server = store.home_member().server().await;
                server.is_ok_and(|server| !server.appendonly)
            }
        };
        if forgets {
            warnings.push(format!(
                "{0}, home of the topology, has no append-only file: after a restart it comes back \
                 without the latest record; run: redis-cli -u {0} CONFIG SET appendonly yes (and \
                 appendfsync always)",
                store.home()
            ));
        }
        warnings
    }

    /// What was asked for, and is otherwise.
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

/// Seeds that are silent, or no members.
fn seed_warnings(topology: &Topology, survey: &Survey) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_member = |run_id: &str, address: &str| {
        let mut members = topology.shards.values();
        members.any(|entry| entry.address == address || entry.life.run_id() == run_id)
    };
    for seen in survey.seen.iter().filter(|seen| seen.place.is_some()) {
        let (address, run_id) = (seen.member.address(), &seen.trace.server.run_id);
        if !is_member(run_id, address) && address != topology.home.address {
            warnings.push(format!(
                "{address} is no member of topology {}: not used",
                topology.id
            ));
        }
    }
    for (member, error) in &survey.silent {
        let address = member.address();
        let part = if is_member("", address) {
            "its locks wait"
        } else {
            "it is no member"
        };
        warnings.push(format!("{address} does not answer, {part}: {error}"));
    }
    warnings
}
