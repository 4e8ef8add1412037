//! Locks that an operator takes from their holders.

use ringfence_client::Client;
use tokio::time::{Duration, timeout};

use super::plan::Step;
use crate::{
    history::{Deed, Kind, Phase, Recorder},
    ledger,
};

/// An operator who reaches no shard for so long gives up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The locks, and an operator.
#[derive(Debug)]
pub(super) struct Locks {
    pub(super) operator: Client,
    pub(super) keys: Vec<String>,
}

impl Locks {
    /// Takes one of them from its holders, and records that. It may fail, and may have been taken all the same.
    pub(super) async fn suffer(&self, step: &Step, recorder: &Recorder) {
        let key = &self.keys[step.dice as usize % self.keys.len()];
        let deed = Deed {
            fault: Some(step.fault),
            key: Some(key.clone()),
            ..Deed::invoke(recorder.next_op(), Kind::Nemesis)
        };
        recorder.record(deed.clone());
        let lock = self.operator.lock(key);
        let lock = lock.namespace(ledger::namespace_of(key).as_str());
        let released = timeout(PATIENCE, lock.force_release("chaos")).await;
        let reason = match released {
            Ok(Ok(holders)) => format!("{} holders", holders.len()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        recorder.record(Deed {
            phase: Phase::Ok,
            reason: Some(reason),
            ..deed
        });
    }
}
