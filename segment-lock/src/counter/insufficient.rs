//! Refuses a request for which the whole account has too little, or seems to: a second read decides.

use super::{
    Counter, CounterError,
    balance_reads::BalanceReads,
    change::{Attempt, Round},
};
use crate::segment::{Refuse, Reply, Request};

impl Counter {
    /// Has `insufficient` recorded, if the views of the first reads were true at one instant: the second read of each
    /// other segment, sent after the last answer to the first reads, shows no change; and the home has not changed when
    /// the refusal is recorded. Otherwise the next round tries again.
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
            id: attempt.request.id.clone(),
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
            Reply::Recorded(state, money) => Ok(Round::Decided(state, money)),
            Reply::Changed => Ok(Round::Again(Vec::new())),
            reply => Err(CounterError::unexpected("refuse", &reply)),
        }
    }
}
