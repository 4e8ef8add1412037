//! What looks at all segments add up to.

use std::collections::BTreeMap;

use super::{Counter, CounterError};
use crate::{
    Amount, Caller, Head,
    limits::FREEZE_MS_MAX,
    segment::{Collect, Freeze, Loan, Look, Reply, Request, lands},
};

/// A look at each of some segments, not all at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks(pub(super) BTreeMap<u32, Look>);

impl Looks {
    /// What can be spent: in the segments, and in flight between them.
    pub(super) fn available(&self) -> i128 {
        let values = self.0.values().map(|look| i128::from(look.value));
        values.sum::<i128>() + self.in_flight()
    }

    pub(super) fn held(&self) -> i128 {
        self.0.values().map(|look| i128::from(look.held)).sum()
    }

    pub(super) fn in_flight(&self) -> i128 {
        let to = self.0.keys().flat_map(|&to| self.loans_to(to));
        to.map(|loan| i128::from(loan.amount.get())).sum()
    }

    /// The loans that segment `to` can land: lent, and the next to land by the receiver's count.
    pub(super) fn loans_to(&self, to: u32) -> Vec<Loan> {
        let receiver = self.0.get(&to);
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
        self.0.iter().filter_map(loan).collect()
    }

    pub(super) fn losses(&self) -> u64 {
        self.0.values().map(|look| look.losses).sum()
    }

    /// Whether some loan landed that its lender, looked at before, had not yet made: its money
    /// counts twice. A lender that lost changes may have forgotten it.
    pub(super) fn counts_twice(&self) -> bool {
        let landed = self
            .0
            .iter()
            .flat_map(|(to, look)| look.inn.iter().map(move |inn| (to, inn)));
        let mut early = landed.map(|(to, (from, &seq))| {
            let lender = self.0.get(from).filter(|look| look.losses == 0);
            lender.is_some_and(|look| seq > look.out.get(to).map_or(0, |last| last.seq))
        });
        early.any(|early| early)
    }

    /// Whether nothing had changed by the `second` looks, at any segment that they are at. Then these
    /// were all true at one instant: when the last first look was answered, and no second was sent.
    pub(super) fn unchanged(&self, second: &Self) -> bool {
        let version = |index| self.0.get(index).map(|look| look.version);
        let mut seconds = second.0.iter();
        seconds.all(|(index, look)| version(index) == Some(look.version))
    }

    /// Whether these and the `second` looks, at the same segments, saw the same money: nothing had changed, and nothing
    /// that is held was spent, which changes no version. What is held grows only with a new version, so that equal sums
    /// were equal all the time between the two looks.
    fn same_money(&self, second: &Self) -> bool {
        let held = |looks: &Self| looks.0.values().map(|look| look.held).collect::<Vec<_>>();
        self.unchanged(second) && held(self) == held(second)
    }

    /// The latest of the segments' clocks, in ms since 1970.
    pub(super) fn now_ms(&self) -> u64 {
        self.0
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
        let requests = indices.iter().map(|&index| (index, collect(head, None)));
        let replies = self
            .ask_all(head, requests)
            .await
            .map_err(CounterError::aside)?;
        let looks = indices.iter().copied().zip(replies);
        looks
            .map(|(index, reply)| Ok((index, looked(reply)?)))
            .collect::<Result<_, _>>()
            .map(Looks)
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
            let reply = self.ask(head, index, collect(head, Some(caller))).await;
            looks
                .0
                .insert(index, looked(reply.map_err(CounterError::aside)?)?);
        }
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

fn looked(reply: Reply) -> Result<Look, CounterError> {
    match reply {
        Reply::Looked(look) => Ok(look),
        reply => Err(CounterError::unexpected("collect", &reply)),
    }
}
