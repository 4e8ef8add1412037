//! The whole is short, or seemed so: a second read decides.

use super::{
    Counter, CounterError,
    balance_reads::BalanceReads,
    change::{Attempt, Round},
};
use crate::segment::{Refuse, Reply, Request};

impl Counter {
    /// Has `insufficient` recorded, if what the first reads saw was true at one instant: no other
    /// segment had changed at a second read, sent after the last first read was answered; and the
    /// home has not changed when it is recorded. Otherwise, once more.
    pub(super) async fn refuse(
        &self,
        attempt: &Attempt<'_>,
        first: &BalanceReads,
    ) -> Result<Round, CounterError> {
        let Attempt { manifest, home, .. } = attempt;
        if !first.lost.is_empty() {
            return Err(self.lost(manifest, &first.lost));
        }
        let others = (0..manifest.segments()).filter(|index| index != home);
        let second = self.read_segments(others, manifest).await?;
        if !first.unchanged(&second) {
            return Ok(Round::Again(Vec::new()));
        }
        let version = first
            .at
            .get(home)
            .map(|view| view.version)
            .unwrap_or_default();
        let refuse = Request::Refuse(Refuse {
            id: attempt.id.clone(),
            change: attempt.change.clone(),
            generation: manifest.generation(),
            version,
            caller: attempt.caller,
        });
        match self
            .ask(manifest, *home, refuse)
            .await
            .map_err(CounterError::aside)?
        {
            Reply::Recorded(state) => Ok(Round::Decided(state)),
            Reply::Changed => Ok(Round::Again(Vec::new())),
            reply => Err(CounterError::unexpected("refuse", &reply)),
        }
    }
}
