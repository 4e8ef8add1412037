//! The checks of every request, in this order: is the id recorded, is the segment's money certain, does the caller know
//! the layout, is the id too old, is the segment frozen. Only then the request is applied.
//!
//! The order matters. A recorded answer goes before every refusal: a caller that repeats a request must not be told
//! that nothing was done. The layout goes before every answer that means "not recorded", because the id may have
//! another home by now.

use super::{Answer, Entry, Final, Frozen, Money, Refusal, Reply, Segment, SegmentView, State};
use crate::{Caller, RequestId, limits::CLOCKS_APART_MS_MAX};

/// Whether a segment's clock, `now_ms`, may be right, by that of a caller who accepts a loss or plans a layout.
pub(crate) fn clocks_agree(at_ms: u64, now_ms: u64, skew_ms: u64) -> Result<(), Refusal> {
    let max_ms = skew_ms + CLOCKS_APART_MS_MAX;
    match now_ms.abs_diff(at_ms) <= max_ms {
        true => Ok(()),
        false => Err(Refusal::ClocksDiffer {
            now_ms,
            at_ms,
            max_ms,
        }),
    }
}

/// For how long a segment may still be made for a plan of that time, in ms. 0: no longer. The counterpart of
/// [`clocks_agree`], which lets it be made.
pub(crate) fn makes_for_ms(planned_ms: u64, now_ms: u64, skew_ms: u64) -> u64 {
    let last_ms = planned_ms.saturating_add(skew_ms + CLOCKS_APART_MS_MAX);
    last_ms.saturating_add(1).saturating_sub(now_ms)
}

impl Segment {
    /// The answer with a recorded state, and the money of now.
    pub(super) fn answer(&self, state: State) -> Reply {
        let Self { value, held, .. } = *self;
        Reply::Recorded(state, Money { value, held })
    }

    /// The recorded answer, for a repeat of the same content.
    pub(super) fn first_answer(&self, entry: &Entry, content: u64) -> Answer {
        match entry.content {
            Some(first) if first != content => Err(Refusal::Conflict),
            _ => Ok(self.answer(entry.state.clone())),
        }
    }

    /// The record of `id`. In doubt only a final state counts: the end of any other may be lost.
    pub(super) fn recorded(&self, id: &RequestId) -> Result<Option<&Entry>, Refusal> {
        match self.ids.get(id) {
            Some(entry) if !entry.state.is_final() => self.certain().map(|()| Some(entry)),
            found => Ok(found),
        }
    }

    /// Refuses a request that moves money if some of it may be lost.
    pub(super) fn certain(&self) -> Result<(), Refusal> {
        match self.doubtful {
            true => Err(Refusal::Doubtful),
            false => Ok(()),
        }
    }

    /// Whether `id` has its home here by the caller's layout: by one as new as the segment's, or by the one before the
    /// segment's plan, if `id` is older than the plan.
    pub(super) fn known(&self, generation: u64, id: &RequestId) -> Result<(), Refusal> {
        let shared = generation >= self.base && id.time_ms() < self.cut_ms;
        match shared {
            true => Ok(()),
            false => self.newest_known(generation),
        }
    }

    /// Whether the caller knows every segment that may have money.
    pub(super) fn newest_known(&self, generation: u64) -> Result<(), Refusal> {
        match generation >= self.generation {
            true => Ok(()),
            false => Err(Refusal::Layout {
                generation: self.generation,
            }),
        }
    }

    /// Whether `id`, which is not recorded, was never decided: at or below the mark it may have been.
    pub(super) fn remembered(&self, id: &RequestId) -> Result<(), Refusal> {
        match id.time_ms() > self.mark_ms {
            true => Ok(()),
            false => Err(Refusal::TooOld {
                mark_ms: self.mark_ms,
            }),
        }
    }

    /// Whether the time of `id` allows to record it now.
    pub(super) fn timely(&self, id: &RequestId, now_ms: u64) -> Result<(), Refusal> {
        self.remembered(id)?;
        let ahead_ms = id.time_ms().saturating_sub(now_ms);
        let skew_ms = self.terms.skew_ms;
        match ahead_ms <= skew_ms {
            true => Ok(()),
            false => Err(Refusal::IdInFuture { ahead_ms, skew_ms }),
        }
    }

    /// Whether the answer to `id`, which was never decided, would be remembered: not only until the next request.
    pub(super) fn outlives(&self, id: &RequestId, now_ms: u64) -> Result<(), Refusal> {
        let since_ms = now_ms.saturating_sub(self.terms.idempotency_for_ms);
        match id.time_ms() > since_ms {
            true => Ok(()),
            false => Err(Refusal::IdExpired { since_ms }),
        }
    }

    /// Whether `caller` may move money here.
    pub(super) fn not_frozen(&self, caller: Caller, now_ms: u64) -> Result<(), Refusal> {
        match self.frozen {
            Some(Frozen {
                caller: by,
                until_ms,
            }) if by != caller && now_ms < until_ms => {
                let retry_after_ms = until_ms - now_ms;
                Err(Refusal::Busy { retry_after_ms })
            }
            _ => Ok(()),
        }
    }

    /// `amount` more than `value`, if the sum fits together with the held and the promised money: so held money can always
    /// come back, promises can be kept, and no account passes its ceiling.
    pub(super) fn sum(&self, amount: i128) -> Result<i64, Refusal> {
        let owned = self.value + self.held + self.promised;
        let max = self.terms.owned_max();
        if i128::from(owned) + amount <= i128::from(max) {
            return Ok(i64::try_from(i128::from(self.value) + amount)
                .expect("the sum is at most what is owned and comes, which fits"));
        }
        // Of an account with a ceiling, in terms of its ledger balance.
        let credit = self.terms.credit_above_ceiling();
        Err(Refusal::Full {
            owned: owned - credit,
            amount,
            max: max - credit,
        })
    }

    /// Changes the value.
    pub(super) fn set_value(&mut self, value: i64) {
        debug_assert!(value >= 0);
        self.value = value;
        self.version += 1;
    }

    /// Gives held money back.
    pub(super) fn take_back(&mut self, amount: i64) {
        self.held -= amount;
        self.set_value(self.value + amount);
    }

    /// Records a new answer.
    pub(super) fn record(&mut self, id: &RequestId, entry: Entry) {
        self.newest_ms = self.newest_ms.max(id.time_ms());
        if entry.state.is_final() {
            self.order.push_back(Final::Request(id.clone()));
        }
        self.ids.insert(id.clone(), entry);
    }

    /// The segment's money, now.
    pub(super) fn view(&self, now_ms: u64) -> SegmentView {
        SegmentView {
            value: self.value,
            held: self.held,
            version: self.version,
            out: self.out.clone(),
            inn: self.inn.clone(),
            doubtful: self.doubtful,
            losses: self.losses,
            now_ms,
            unfinished: self.sent.len() + self.pinned.len(),
            mark_ms: self.mark_ms,
        }
    }
}
