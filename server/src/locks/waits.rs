//! The reasons to wait, as callers are told of them.

use futures_util::{Stream, future::BoxFuture, stream};
use ringfence_api::{
    Error,
    v1::{
        AcquireAndWatchResponse, AcquireResponse, HeldBy, WaitNotice, WaitReason,
        acquire_and_watch_response::Kind,
    },
};
use ringfence_client::Waiting;
use tokio::sync::watch;
use tonic::Status;

use crate::{access::Admitted, fields::to_length};

/// The reason that a caller was told last.
#[derive(Default)]
pub(crate) struct Told(Option<Waiting>);

impl Told {
    /// A notice of `waiting`; none: the caller knows it.
    pub(crate) fn news(&mut self, waiting: Waiting) -> Option<WaitNotice> {
        let is_told = |told: &Waiting| told.is_same_as(&waiting) && ahead(told) == ahead(&waiting);
        if self.0.as_ref().is_some_and(is_told) {
            return None;
        }
        let reason = match &waiting {
            Waiting::Held { .. } => WaitReason::Held,
            Waiting::Grace { .. } => WaitReason::Recovering,
            Waiting::Trouble { .. } => WaitReason::ShardUnavailable,
            _ => WaitReason::Unspecified,
        };
        let notice = WaitNotice {
            reason: reason.into(),
            message: waiting.to_string(),
            held_by: held_by(&waiting),
        };
        self.0 = Some(waiting);
        Some(notice)
    }
}

/// How many requests come first.
fn ahead(waiting: &Waiting) -> Option<u32> {
    match waiting {
        Waiting::Held { ahead, .. } => *ahead,
        _ => None,
    }
}

fn held_by(waiting: &Waiting) -> Option<HeldBy> {
    match waiting {
        Waiting::Held {
            holder,
            remaining,
            ahead,
        } => Some(HeldBy {
            label: holder.to_string(),
            remaining: Some(to_length(*remaining)),
            ahead: *ahead,
        }),
        _ => None,
    }
}

/// The reasons to wait, then the outcome of `acquisition`. It runs while the caller reads them: of the reasons that came
/// meanwhile, the latest is kept.
pub(super) fn until_granted(
    acquisition: BoxFuture<'static, Result<AcquireResponse, Error>>,
    reasons: watch::Receiver<Option<Waiting>>,
    admitted: Admitted,
) -> impl Stream<Item = Result<AcquireAndWatchResponse, Status>> {
    let event = |kind| AcquireAndWatchResponse { kind: Some(kind) };
    let open = Some((acquisition, reasons, Told::default(), admitted));
    stream::unfold(open, move |open| async move {
        let (mut acquisition, mut reasons, mut told, admitted) = open?;
        loop {
            tokio::select! {
                biased;
                outcome = &mut acquisition => {
                    let granted = outcome.map(|granted| event(Kind::Granted(granted)));
                    return Some((granted.map_err(Status::from), None));
                }
                Ok(()) = reasons.changed() => {
                    let waiting = reasons.borrow_and_update().clone();
                    if let Some(notice) = waiting.and_then(|waiting| told.news(waiting)) {
                        let open = (acquisition, reasons, told, admitted);
                        return Some((Ok(event(Kind::Wait(notice))), Some(open)));
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringfence_client::Label;

    use super::*;

    #[test]
    fn a_reason_is_told_once_and_again_when_it_or_the_place_changes() {
        let held = |by: &str, seconds, ahead| Waiting::Held {
            holder: Label::new(by),
            remaining: Duration::from_secs(seconds),
            ahead,
        };
        let mut told = Told::default();
        for (waiting, is_new) in [
            (held("one", 9, None), true),
            (held("one", 8, None), false),
            (held("one", 8, Some(2)), true),
            (held("one", 7, Some(1)), true),
            (held("one", 6, Some(1)), false),
            (held("two", 9, Some(1)), true),
        ] {
            assert_eq!(told.news(waiting.clone()).is_some(), is_new, "{waiting:?}");
        }
    }
}
