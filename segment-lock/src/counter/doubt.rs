//! Segments that may have lost their last changes, and the person who decides about them.

use super::{Counter, CounterError};
use crate::segment::{Accept, Inspect, Look, Refusal, Reply, Request};

impl Counter {
    /// What every segment has, in order, doubtful or not. Not at one instant.
    ///
    /// # Errors
    ///
    /// A storage that gave no answer.
    pub async fn inspect(&self) -> Result<Vec<Look>, CounterError> {
        self.look_of_each(Inspect.into()).await
    }

    /// Takes every doubtful segment for what it is: a person has compared it with books of their own, or can live
    /// with the difference. The account is marked, and goes on.
    ///
    /// # Errors
    ///
    /// A storage that gave no answer: some segments may be accepted, and others not. Repeat it.
    pub async fn accept(&self) -> Result<(), CounterError> {
        self.look_of_each(Accept.into()).await.map(drop)
    }

    /// What every segment has, as it answers `request`.
    async fn look_of_each(&self, request: Request) -> Result<Vec<Look>, CounterError> {
        let head = self.certain_head().await?.head;
        let requests = (0..head.placed()).map(|index| (self.at(&head, index), request.clone()));
        let answers = self.storage.segments.call_all(requests.collect()).await;
        let mut looks = Vec::new();
        for (index, answer) in (0..).zip(answers) {
            match answer? {
                // Planned, and not made yet.
                Err(Refusal::Missing) if index >= head.segments() => {}
                answer => looks.push(looked(answer?)?),
            }
        }
        Ok(looks)
    }
}

fn looked(reply: Reply) -> Result<Look, CounterError> {
    match reply {
        Reply::Looked(look) => Ok(look),
        reply => Err(CounterError::unexpected("inspect or accept", &reply)),
    }
}
