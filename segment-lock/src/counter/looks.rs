//! What looks at all segments add up to.

use std::collections::BTreeMap;

use super::{Counter, CounterError, lost::looked};
use crate::{
    Amount, Caller, Head, StorageError,
    limits::FREEZE_MS_MAX,
    segment::{Answer, Collect, Freeze, Loan, Look, Refusal, Request, lands},
};

/// A look at each of some segments, not all at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    pub(super) at: BTreeMap<u32, Look>,
    /// Those that are lost, of an account that goes on without them.
    pub(super) lost: Vec<u32>,
}

impl Looks {
    /// What can be spent: in the segments, and in flight between them.
    pub(super) fn available(&self) -> i128 {
        let values = self.at.values().map(|look| i128::from(look.value));
        values.sum::<i128>() + self.in_flight()
    }

    pub(super) fn held(&self) -> i128 {
        self.at.values().map(|look| i128::from(look.held)).sum()
    }

    pub(super) fn in_flight(&self) -> i128 {
        let to = self.at.keys().flat_map(|&to| self.loans_to(to));
        to.map(|loan| i128::from(loan.amount.get())).sum()
    }

    /// The loans that segment `to` can land: lent, and the next to land by the receiver's count.
    pub(super) fn loans_to(&self, to: u32) -> Vec<Loan> {
        let receiver = self.at.get(&to);
        let loan = |(&from, look): (&u32, &Look)| {
            let last = look.out.get(&to)?;
            let receiver = receiver?;
            let landed = receiver.inn.get(&from).copied().unwrap_or_default();
            let amount = Amount::new(last.amount).ok()?;
            lands(last.seq, landed, receiver.losses).then_some(Loan {
                from,
                seq: last.seq,
                amount,
            })
        };
        self.at.iter().filter_map(loan).collect()
    }

    pub(super) fn losses(&self) -> u64 {
        self.at.values().map(|look| look.losses).sum()
    }

    /// Whether some loan landed that its lender, looked at before, had not yet made: its money
    /// counts twice. A lender that lost changes may have forgotten it.
    pub(super) fn counts_twice(&self) -> bool {
        let landed = self
            .at
            .iter()
            .flat_map(|(to, look)| look.inn.iter().map(move |inn| (to, inn)));
        let mut early = landed.map(|(to, (from, &seq))| {
            let lender = self.at.get(from).filter(|look| look.losses == 0);
            lender.is_some_and(|look| seq > look.out.get(to).map_or(0, |last| last.seq))
        });
        early.any(|early| early)
    }

    /// Whether nothing had changed by the `second` looks, at any segment that they are at. Then these
    /// were all true at one instant: when the last first look was answered, and no second was sent.
    pub(super) fn unchanged(&self, second: &Self) -> bool {
        let version = |index| self.at.get(index).map(|look| look.version);
        let mut seconds = second.at.iter();
        let same = seconds.all(|(index, look)| version(index) == Some(look.version));
        same && self.lost == second.lost
    }

    /// Adds what segment `index` answered.
    fn add(
        &mut self,
        index: u32,
        answer: Result<Answer, StorageError>,
    ) -> Result<(), CounterError> {
        match answer? {
            Err(Refusal::Missing) => self.lost.push(index),
            answer => _ = self.at.insert(index, looked(answer?)?),
        }
        Ok(())
    }

    /// Whether these and the `second` looks, at the same segments, saw the same money: nothing had changed, and nothing
    /// that is held was spent, which changes no version. What is held grows only with a new version, so that equal sums
    /// were equal all the time between the two looks.
    fn same_money(&self, second: &Self) -> bool {
        let held = |looks: &Self| looks.at.values().map(|look| look.held).collect::<Vec<_>>();
        self.unchanged(second) && held(self) == held(second)
    }

    /// The latest of the segments' clocks, in ms since 1970.
    pub(super) fn now_ms(&self) -> u64 {
        self.at
            .values()
            .map(|look| look.now_ms)
            .max()
            .unwrap_or_default()
    }
}

impl Counter {
    /// A look at each of `indices`, all at once.
    pub(super) async fn look_at(
        &self,
        indices: impl Iterator<Item = u32>,
        head: &Head,
    ) -> Result<Looks, CounterError> {
        let indices: Vec<u32> = indices.collect();
        let request = |&index: &u32| (self.at(head, index), collect(head, None));
        let requests = indices.iter().map(request).collect();
        let answers = self.storage.segments.call_all(requests).await;
        let mut looks = Looks::default();
        for (index, answer) in indices.into_iter().zip(answers) {
            looks.add(index, answer).map_err(CounterError::aside)?;
        }
        self.do_without(head, &looks.lost)?;
        Ok(looks)
    }

    /// Looks at every segment that agree with the looks right after them, if among `looks` there are such.
    pub(super) async fn steady_looks(
        &self,
        head: &Head,
        looks: usize,
    ) -> Result<Option<Looks>, CounterError> {
        let mut first = self.look_at(0..head.segments(), head).await?;
        for _ in 1..looks {
            let second = self.look_at(0..head.segments(), head).await?;
            if first.same_money(&second) {
                return Ok(Some(first));
            }
            first = second;
        }
        Ok(None)
    }

    /// A look at every segment, freezing each, the lowest first: so that two who do so wait for
    /// each other in one order.
    pub(super) async fn freeze_all(
        &self,
        head: &Head,
        caller: Caller,
    ) -> Result<Looks, CounterError> {
        let mut looks = Looks::default();
        for index in 0..head.segments() {
            let at = self.at(head, index);
            let answer = self.storage.segments.call(&at, collect(head, Some(caller)));
            let added = looks.add(index, answer.await);
            added.map_err(CounterError::aside)?;
        }
        self.do_without(head, &looks.lost)?;
        Ok(looks)
    }
}

fn collect(head: &Head, caller: Option<Caller>) -> Request {
    Request::Collect(Collect {
        generation: head.generation(),
        freeze: caller.map(|caller| Freeze {
            caller,
            for_ms: FREEZE_MS_MAX,
        }),
    })
}
