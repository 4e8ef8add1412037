//! The audit log: who changed what is everybody's, and who was refused. Lines of the log's target `ringfence::audit`.

use std::{net::IpAddr, time::Duration};

use parking_lot::Mutex;
use ringfence_api::Error;
use tokio::time::Instant;
use tonic::Request;

use super::{Caller, caller_of};
use crate::connections::Places;

/// Refusals that are logged within a second; more are counted.
const REFUSALS_PER_SECOND: u32 = 10;

/// A call to be logged with its outcome, if that is only that its caller did not wait for it.
pub(crate) struct Audit {
    principal: Option<String>,
    address: Option<IpAddr>,
    call: &'static str,
    of: String,
    is_told: bool,
}

impl Audit {
    /// The call of `request`, for `of`: a key, or a shard.
    pub(crate) fn of<T>(
        request: &Request<T>,
        call: &'static str,
        of: impl Into<String>,
    ) -> Result<Self, Error> {
        let mut audit = Self::by(caller_of(request)?, call, of);
        audit.address = address_of(request.extensions().get());
        Ok(audit)
    }

    /// The same, of a caller whose address is not known.
    pub(crate) fn by(caller: &Caller, call: &'static str, of: impl Into<String>) -> Self {
        Self {
            principal: caller.name().map(str::to_owned),
            address: None,
            call,
            of: of.into(),
            is_told: false,
        }
    }

    /// Does `work`, and logs its outcome.
    pub(crate) async fn run<T>(
        mut self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let done = work.await;
        self.tell(match &done {
            Ok(_) => "done",
            Err(error) => &error.message,
        });
        done
    }

    fn tell(&mut self, outcome: &str) {
        self.is_told = true;
        let Self {
            principal,
            address,
            call,
            of,
            ..
        } = self;
        let address = address.map(tracing::field::display);
        tracing::info!(target: TARGET, principal, address, call, of, outcome);
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if !self.is_told {
            self.tell("not known: the caller did not wait");
        }
    }
}

/// The log's target.
const TARGET: &str = "ringfence::audit";

/// Logs that a call was refused.
pub(super) fn refused(principal: Option<&str>, places: Option<&Places>, error: &Error) {
    static LOGGED: Mutex<Option<Logged>> = Mutex::new(None);
    let Some(more) = Logged::count(&mut LOGGED.lock(), Instant::now()) else {
        return;
    };
    let address = address_of(places).map(tracing::field::display);
    let (outcome, more) = (&*error.message, (more > 0).then_some(more));
    tracing::info!(target: TARGET, principal, address, outcome, more_not_logged = more);
}

fn address_of(places: Option<&Places>) -> Option<IpAddr> {
    places?.address
}

/// The refusals of a second.
#[derive(Debug)]
struct Logged {
    since: Instant,
    refusals: u32,
}

impl Logged {
    /// Counts a refusal at `now`. `None`: it is one too many; else how many were, since the last one that was not.
    fn count(logged: &mut Option<Self>, now: Instant) -> Option<u32> {
        let second = Duration::from_secs(1);
        let present = logged.take_if(|logged| now - logged.since >= second);
        let more = present.map_or(0, |past| past.refusals.saturating_sub(REFUSALS_PER_SECOND));
        let present = logged.get_or_insert(Self {
            since: now,
            refusals: 0,
        });
        present.refusals = present.refusals.saturating_add(1);
        (present.refusals <= REFUSALS_PER_SECOND).then_some(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_counted() {
        let (mut logged, start) = (None, Instant::now());
        let told: Vec<_> = (0..25).map(|_| Logged::count(&mut logged, start)).collect();
        assert_eq!(told, [[Some(0); 10].as_slice(), &[None; 15]].concat());
        let next = Logged::count(&mut logged, start + Duration::from_secs(1));
        assert_eq!(next, Some(15));
    }
}
