//! Looks up the decision on a request, for callers that got no answer.

use super::{Counter, CounterError};
use crate::{
    Manifest, RequestId,
    segment::{Find, Refusal, Reply, Request, State},
};

/// The decision on a request, as the account remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The request was decided, and this is its present state.
    Decided(State),
    /// The account has never seen the request. It may be on its way: repeat it to have it applied, or
    /// [cancel](Counter::cancel) it, so that it is refused when it arrives.
    NeverSeen,
    /// The id is older than what the account remembers. The request was applied, refused, or never seen.
    Forgotten {
        /// Ids created at this time or before may be forgotten, in ms since 1970.
        mark_ms: u64,
    },
}

impl Counter {
    /// Looks up the decision on the request with that id, of whatever kind. Decides nothing.
    ///
    /// # Errors
    ///
    /// No account, or no answer. [`CounterError::Lost`], or [`Refusal::Doubtful`]: the
    /// segment that knows the request is lost, or does not know whether it does.
    pub async fn find(&self, id: &RequestId) -> Result<Found, CounterError> {
        let find = |manifest: &Manifest| {
            Request::Find(Find {
                id: id.clone(),
                generation: manifest.generation(),
            })
        };
        match self.ask_home(id, find).await {
            Ok(Reply::Recorded(state, _)) => Ok(Found::Decided(state)),
            Ok(Reply::Unknown) => Ok(Found::NeverSeen),
            Err(CounterError::Refused(Refusal::TooOld { mark_ms })) => {
                Ok(Found::Forgotten { mark_ms })
            }
            Ok(reply) => Err(CounterError::unexpected("find", &reply)),
            Err(error) => Err(error.aside()),
        }
    }
}
