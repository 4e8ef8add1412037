//! Whether the record at a home is usable.

use std::sync::Arc;

use super::{RedisTopology, answers::Found};
use crate::{
    ids::{Incarnation, Life},
    topology::{Status, Topology, TopologyError},
};

/// Said wherever a topology is there and has no usable record.
const RECOVER: &str = "the topology has to be rebuilt from its members' copies: the command for it \
                       will be `ringfence ring recover`, which this version does not have yet";

/// No usable record at `address`; `found` says what is there instead.
pub(super) fn recover_needed(address: &str, found: &str) -> TopologyError {
    TopologyError::RecoverNeeded {
        address: address.to_owned(),
        reason: format!("{found}; {RECOVER}"),
    }
}

impl RedisTopology {
    /// `found`, where the home lives `life` and `known` is the record it may not have repeated.
    pub(super) fn usable(
        &self,
        life: &Life,
        found: Found,
        known: Option<Arc<Topology>>,
    ) -> Result<Arc<Topology>, TopologyError> {
        let Found::Record { fence, record } = found else {
            return Err(self.recover_needed(&format!(
                "it has no record of topology {}, which was in use",
                self.id
            )));
        };
        let record = record.or(known).ok_or_else(|| {
            TopologyError::Malformed(format!("{}: no record in its answer", self.home()))
        })?;
        if record.id != self.id {
            let (address, there, mine) = (self.home(), &record.id, &self.id);
            return Err(TopologyError::Seeds(format!(
                "{address} belongs to topology {there} now, and to {mine} no more"
            )));
        }
        self.check_current(&record, life, fence)?;
        match record.status {
            Status::Active => Ok(record),
            Status::Creating => Err(TopologyError::Unreachable {
                address: self.home().to_owned(),
                reason: format!("the founding of topology {} is not finished", self.id),
            }),
        }
    }

    /// That the home lives the life the record was written in, and has seen no later incarnation.
    fn check_current(
        &self,
        record: &Topology,
        life: &Life,
        fence: Option<Incarnation>,
    ) -> Result<(), TopologyError> {
        let Topology {
            id,
            incarnation,
            version,
            home,
            ..
        } = record;
        let found = format!("version {version} of topology {id}");
        if home.life != *life {
            return Err(self.recover_needed(&format!(
                "{found} was written in life {} of this server, which now lives {life}: \
                 it may be an old version",
                home.life
            )));
        }
        if let Some(fence) = fence.filter(|fence| fence > incarnation) {
            return Err(self.recover_needed(&format!(
                "{found} has incarnation {incarnation}, and its server's fence is {fence}"
            )));
        }
        Ok(())
    }

    pub(super) fn recover_needed(&self, found: &str) -> TopologyError {
        recover_needed(self.home(), found)
    }
}
