//! What became of an order, by all that was ever said of it.

use super::{Rule, Violation, timeline::Change};
use crate::counters::{Answer, Attempt, Call, Deed, End, Order};

/// What became of an order.
#[derive(Debug)]
pub(super) struct Fate {
    pub(super) order: Order,
    /// Before it was asked for first.
    pub(super) asked_ns: u64,
    /// The same, of attempts that may have done something.
    sent_ns: Option<u64>,
    /// The same, of attempts to give it back.
    cancelled_ns: Option<u64>,
    /// The first answer, and after it came.
    pub(super) result: Option<(u64, Outcome)>,
    /// Before the last attempt that was told that nothing was done.
    denied_ns: Option<u64>,
    /// Before the account was last asked for it, and had never seen it.
    unseen_ns: Option<u64>,
    /// After it was refused first as too old to be answered any more.
    pub(super) too_old_ns: Option<u64>,
    /// Whether there was no account to send money to.
    is_absent: bool,
    /// How a reservation ended, and after that was said first.
    pub(super) end: Option<(u64, End)>,
    pub(super) memory: Memory,
}

/// Whether the segments remember an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// Its home remembers it: all answers agree.
    Kept,
    /// It may have been decided in two homes, by a forgotten layout and by the present one. So answers may differ, and a
    /// reservation of one home is unknown in the other.
    Twice,
    /// Its home forgot it, or a change of its state. So answers may differ, and the first decision may count as nothing.
    Forgotten,
}

/// The answer to an order, which every repeat gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Insufficient,
    Reserved,
    Returned,
}

impl Fate {
    pub(super) fn new(order: &Order, memory: Memory) -> Self {
        Self {
            order: order.clone(),
            asked_ns: u64::MAX,
            sent_ns: None,
            cancelled_ns: None,
            result: None,
            denied_ns: None,
            unseen_ns: None,
            too_old_ns: None,
            is_absent: false,
            end: None,
            memory,
        }
    }

    /// Takes in one more attempt at it, of any kind.
    pub(super) fn add(&mut self, attempt: &Attempt) -> Result<(), Violation> {
        let asked_ns = attempt.asked_ns;
        let answer = attempt.answered.as_ref().map(|(_, answer)| answer);
        let did_nothing = matches!(answer, Some(Answer::Nothing(_) | Answer::Absent));
        match attempt.call {
            Call::Change(_) => {
                self.asked_ns = self.asked_ns.min(asked_ns);
                if did_nothing {
                    self.denied_ns = self.denied_ns.max(Some(asked_ns));
                } else {
                    self.sent_ns = Some(self.sent_ns.map_or(asked_ns, |sent| sent.min(asked_ns)));
                }
            }
            Call::Cancel(_) if !did_nothing => {
                let first = self
                    .cancelled_ns
                    .map_or(asked_ns, |first| first.min(asked_ns));
                self.cancelled_ns = Some(first);
            }
            _ => {}
        }
        let Some((answered_ns, answer)) = &attempt.answered else {
            return Ok(());
        };
        let outcome = match answer {
            Answer::Done => Outcome::Done,
            Answer::Insufficient => Outcome::Insufficient,
            Answer::Returned => Outcome::Returned,
            Answer::Held => Outcome::Reserved,
            Answer::Ended(end) => {
                self.end = Some(self.agreed(self.end, *answered_ns, *end)?);
                Outcome::Reserved
            }
            Answer::TooOld => {
                let first = self
                    .too_old_ns
                    .map_or(*answered_ns, |ns| ns.min(*answered_ns));
                self.too_old_ns = Some(first);
                return Ok(());
            }
            Answer::Absent => {
                self.is_absent = true;
                return Ok(());
            }
            Answer::Unreserved if self.memory == Memory::Kept => {
                return Err(Violation {
                    rule: Rule::Failure,
                    told: format!("a reservation is not known: {:?}", self.order),
                });
            }
            Answer::Unseen => {
                self.unseen_ns = self.unseen_ns.max(Some(asked_ns));
                return Ok(());
            }
            Answer::Balance(_)
            | Answer::Logged(_)
            | Answer::Left(_)
            | Answer::Gone(_)
            | Answer::Nothing(_)
            | Answer::Unknown(_)
            | Answer::Unreserved
            | Answer::Failed(_) => return Ok(()),
        };
        self.result = Some(self.agreed(self.result, *answered_ns, outcome)?);
        Ok(())
    }

    /// The answer, if it is the same as before, and when it came first. If answers may differ, the last one.
    fn agreed<T: Copy + PartialEq + std::fmt::Debug>(
        &self,
        before: Option<(u64, T)>,
        at_ns: u64,
        now: T,
    ) -> Result<(u64, T), Violation> {
        match before {
            Some((before_ns, before)) if self.memory != Memory::Kept && before_ns > at_ns => {
                Ok((before_ns, before))
            }
            Some(_) if self.memory != Memory::Kept => Ok((at_ns, now)),
            Some((_, before)) if before != now => Err(Violation {
                rule: Rule::Agreement,
                told: format!("{:?} was answered {before:?}, and {now:?}", self.order),
            }),
            Some((before_ns, _)) => Ok((before_ns.min(at_ns), now)),
            None => Ok((at_ns, now)),
        }
    }

    /// Whether a repeat was told that nothing was done after the request had been answered.
    pub(super) fn was_denied(&self) -> bool {
        let answered = self.result.map(|(by_ns, _)| by_ns);
        self.memory == Memory::Kept
            && answered
                .is_some_and(|by_ns| self.denied_ns.is_some_and(|denied_ns| denied_ns > by_ns))
    }

    /// Whether the account had never seen it after the request had been answered. A transfer that took nothing leaves
    /// nothing.
    pub(super) fn was_unseen(&self) -> bool {
        let answered = self
            .result
            .filter(|(_, outcome)| *outcome != Outcome::Returned);
        self.memory == Memory::Kept
            && answered
                .is_some_and(|(by_ns, _)| self.unseen_ns.is_some_and(|unseen_ns| unseen_ns > by_ns))
    }

    /// Whether no answer says what it did.
    pub(super) fn is_unanswered(&self) -> bool {
        self.result.is_none() && self.end.is_none()
    }

    /// Whether nothing more is to become of it.
    pub(super) fn is_over(&self) -> bool {
        match self.result {
            _ if self.too_old_ns.is_some() || self.is_absent => true,
            Some((_, Outcome::Reserved)) => self.end.is_some(),
            result => result.is_some(),
        }
    }

    /// What it did to what can be spent: of each account, one change or two.
    pub(super) fn changes(&self) -> Vec<(usize, Change)> {
        let Order {
            account, amount, ..
        } = self.order;
        // Attempts that say that they did nothing, did nothing.
        let Some(from_ns) = self
            .sent_ns
            .filter(|_| self.memory == Memory::Forgotten || !self.was_refused())
        else {
            return Vec::new();
        };
        let by_ns = self.result.map(|(by_ns, _)| by_ns);
        if self.memory == Memory::Forgotten {
            return self.most_of_forgotten(from_ns);
        }
        let change = |by| Change { from_ns, by_ns, by };
        match self.order.deed {
            Deed::Deposit => vec![(account, change(amount))],
            Deed::Deduct => vec![(account, change(-amount))],
            Deed::Transfer(_) | Deed::Legs(_)
                if matches!(self.result, Some((_, Outcome::Returned))) =>
            {
                vec![(account, change(-amount)), (account, change(amount))]
            }
            Deed::Transfer(to) => vec![(account, change(-amount)), (to, change(amount))],
            Deed::Legs([one, other]) => {
                let half = self.order.amount_of_each();
                vec![
                    (account, change(-amount)),
                    (one, change(half)),
                    (other, change(half)),
                ]
            }
            Deed::Reserve(_) | Deed::ReserveFor(..) => {
                let ended = self.ends(from_ns);
                [(account, change(-amount))]
                    .into_iter()
                    .chain(ended)
                    .collect()
            }
        }
    }

    /// What it may have put into an account, where its home may have taken nothing.
    fn most_of_forgotten(&self, from_ns: u64) -> Vec<(usize, Change)> {
        let account = self.order.account;
        let to = match self.order.deed {
            Deed::Deposit => vec![account],
            Deed::Transfer(to) | Deed::ReserveFor(_, to) => vec![to],
            Deed::Legs(to) => to.to_vec(),
            Deed::Deduct | Deed::Reserve(_) => return Vec::new(),
        };
        let change = Change {
            from_ns,
            by_ns: None,
            by: self.order.amount_of_each(),
        };
        to.into_iter().map(|to| (to, change)).collect()
    }

    /// Where a reservation's money goes, or may go: back, and to another account.
    fn ends(&self, reserved_ns: u64) -> Vec<(usize, Change)> {
        let from_ns = match self.end {
            Some((_, End::Cancelled)) => self.cancelled_ns.unwrap_or(reserved_ns),
            _ => reserved_ns,
        };
        let by_ns = self.end.map(|(by_ns, _)| by_ns);
        let change = |by| Change { from_ns, by_ns, by };
        let (half, back) = (
            self.order.amount_of_each(),
            (self.order.account, change(self.order.amount)),
        );
        match (&self.order.deed, self.end) {
            (Deed::ReserveFor(_, to), Some((_, End::Confirmed))) => {
                vec![(self.order.account, change(half)), (*to, change(half))]
            }
            (Deed::ReserveFor(_, to), None) => vec![back, (*to, change(half))],
            (_, Some((_, End::Confirmed))) => Vec::new(),
            _ => vec![back],
        }
    }

    fn was_refused(&self) -> bool {
        matches!(self.result, Some((_, Outcome::Insufficient)))
    }
}
