//! Whether the record at a home is usable.

use std::sync::Arc;

use super::{ServerTopology, answers::Found};
use crate::{
    ids::{Incarnation, Life},
    topology::{Status, Topology, TopologyError},
};

impl ServerTopology {
    /// Checks `found`: the home lives `life`, and `view` is a record that it must not repeat.
    pub(super) fn usable(
        &self,
        life: &Life,
        found: Found,
        view: Arc<Topology>,
    ) -> Result<Arc<Topology>, TopologyError> {
        let Found::Record { fence, record } = found else {
            return Err(self.recover_needed(&format!(
                "it has no record of topology {}, which was in use",
                self.id
            )));
        };
        let record = record.unwrap_or_else(|| view.clone());
        if record.id != self.id {
            let (address, there, mine) = (self.home(), &record.id, &self.id);
            return Err(TopologyError::Seeds(format!(
                "{address} belongs to topology {there} now, and to {mine} no more"
            )));
        }
        if record.version() < view.version() {
            return Err(self.recover_needed(&format!(
                "version {} of topology {}, although version {} was in use",
                record.version, record.id, view.version
            )));
        }
        self.check_current(&record, life, fence.max(self.fence()))?;
        match record.status {
            Status::Active => Ok(record),
            Status::Creating => Err(TopologyError::Unreachable {
                address: self.home(),
                reason: format!("the founding of topology {} is not finished", self.id),
            }),
        }
    }

    /// Checks that the home lives the life in which the record was written, and has seen no later
    /// incarnation.
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
                "{found} has incarnation {incarnation}, and there is a fence at {fence}"
            )));
        }
        Ok(())
    }

    /// The home has no usable record; `found` describes its present state.
    pub(super) fn recover_needed(&self, found: &str) -> TopologyError {
        TopologyError::RecoverNeeded {
            address: self.home(),
            reason: found.to_owned(),
        }
    }
}
