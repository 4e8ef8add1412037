//! Locks that an operator takes from their holders.

use ringfence_client::Client;
use tokio::time::{Duration, timeout};

use super::plan::Step;
use crate::{
    election,
    history::{Deed, Kind, Phase, Recorder},
    ledger,
};

/// An operator who reaches no shard for so long gives up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The locks, and an operator.
#[derive(Debug)]
pub(super) struct Locks {
    operator: Client,
    keys: Vec<String>,
    with_replicas: Vec<String>,
}

impl Locks {
    /// All of `keys` but elections: a leader is to be told of its end before another leads.
    pub(super) fn of(keys: &[String], operator: Client) -> Self {
        let keys = keys.iter().filter(|key| !election::has(key));
        let (with_replicas, keys) = keys.cloned().partition(|key| ledger::has(key));
        Self {
            operator,
            keys,
            with_replicas,
        }
    }

    /// Takes one of them from its holders, and records that. It may fail, and may have been taken all the same.
    pub(super) async fn suffer(&self, step: &Step, recorder: &Recorder) {
        // There are few with replicas, and more can go wrong with them.
        let [kind, place] = [step.dice % 2, step.dice / 2];
        let keys = [&self.keys, &self.with_replicas][kind as usize];
        let key = &keys[place as usize % keys.len()];
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
