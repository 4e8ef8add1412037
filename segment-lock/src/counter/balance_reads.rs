//! Reads of all segments, and their sums.

use std::collections::BTreeMap;

use super::{Counter, CounterError, lost::viewed};
use crate::{
    Amount, Caller, Manifest, StorageError,
    limits::FREEZE_MS_MAX,
    segment::{Answer, Collect, Freeze, Loan, Refusal, Request, SegmentView},
};

/// Views of some segments, read at different times.
#[derive(Clone, Debug, Default)]
pub(super) struct BalanceReads {
    pub(super) at: BTreeMap<u32, SegmentView>,
    /// The lost segments of an account that continues without them.
    pub(super) lost: Vec<u32>,
}

impl BalanceReads {
    /// The money that can be spent: in the segments, and in flight between them.
    pub(super) fn available(&self) -> i128 {
        let values = self.at.values().map(|view| i128::from(view.value));
        values.sum::<i128>() + self.in_flight()
    }

    pub(super) fn held(&self) -> i128 {
        self.at.values().map(|view| i128::from(view.held)).sum()
    }

    pub(super) fn in_flight(&self) -> i128 {
        let to = self.at.keys().flat_map(|&to| self.loans_to(to));
        to.map(|loan| i128::from(loan.amount.get())).sum()
    }

    /// The loans that segment `to` can land: each has a greater number than the last that landed.
    pub(super) fn loans_to(&self, to: u32) -> Vec<Loan> {
        let receiver = self.at.get(&to);
        let loan = |(&from, view): (&u32, &SegmentView)| {
            let last = view.out.get(&to)?;
            let landed = receiver?.inn.get(&from).copied().unwrap_or_default();
            let amount = Amount::new(last.amount).ok()?;
            (last.seq > landed).then_some(Loan {
                from,
                seq: last.seq,
                amount,
            })
        };
        self.at.iter().filter_map(loan).collect()
    }

    pub(super) fn losses(&self) -> u64 {
        self.at.values().map(|view| view.losses).sum()
    }

    /// Whether a loan had landed that its lender, read before, had not made yet: its money counts twice.
    pub(super) fn counts_twice(&self) -> bool {
        let landed = self.at.values().flat_map(|view| &view.inn);
        let mut lenders = landed.filter_map(|(from, seq)| Some((self.at.get(from)?, seq)));
        lenders.any(|(lender, &seq)| seq > lender.version)
    }

    /// Whether no segment had changed between these reads and the `second` ones. Then all these views were true at one
    /// instant: after the last answer to these reads, and before the second reads were sent.
    pub(super) fn unchanged(&self, second: &Self) -> bool {
        let version = |index| self.at.get(index).map(|view| view.version);
        let mut seconds = second.at.iter();
        let same = seconds.all(|(index, view)| version(index) == Some(view.version));
        same && self.lost == second.lost
    }

    /// Adds the answer of segment `index`.
    fn add(
        &mut self,
        index: u32,
        answer: Result<Answer, StorageError>,
    ) -> Result<(), CounterError> {
        match answer? {
            Err(Refusal::Missing) => self.lost.push(index),
            answer => _ = self.at.insert(index, viewed(answer?)?),
        }
        Ok(())
    }

    /// Whether these and the `second` reads, of the same segments, saw the same money: no version changed, and no held
    /// money was spent (which changes no version). Held money grows only with a new version, so equal sums were equal
    /// all the time between the two reads.
    fn same_money(&self, second: &Self) -> bool {
        let held = |reads: &Self| reads.at.values().map(|view| view.held).collect::<Vec<_>>();
        self.unchanged(second) && held(self) == held(second)
    }
}

impl Counter {
    /// Reads the segments of `indices`, all at once.
    pub(super) async fn read_segments(
        &self,
        indices: impl Iterator<Item = u32>,
        manifest: &Manifest,
    ) -> Result<BalanceReads, CounterError> {
        let indices: Vec<u32> = indices.collect();
        let request = |&index: &u32| (self.at(manifest, index), collect(manifest, None));
        let requests = indices.iter().map(request).collect();
        let answers = self.storage.segments.call_all(requests).await;
        let mut views = BalanceReads::default();
        for (index, answer) in indices.into_iter().zip(answers) {
            views.add(index, answer).map_err(CounterError::aside)?;
        }
        self.do_without(manifest, &views.lost).await?;
        Ok(views)
    }

    /// The views of every segment, if two consecutive reads of at most `rounds` agree.
    pub(super) async fn steady_reads(
        &self,
        manifest: &Manifest,
        rounds: usize,
    ) -> Result<Option<BalanceReads>, CounterError> {
        let mut first = self.read_segments(0..manifest.segments(), manifest).await?;
        for _ in 1..rounds {
            let second = self.read_segments(0..manifest.segments(), manifest).await?;
            if first.same_money(&second) {
                return Ok(Some(first));
            }
            first = second;
        }
        Ok(None)
    }

    /// Reads and freezes every segment in ascending order, so that two callers cannot block each other.
    pub(super) async fn freeze_all(
        &self,
        manifest: &Manifest,
        caller: Caller,
    ) -> Result<BalanceReads, CounterError> {
        let mut views = BalanceReads::default();
        for index in 0..manifest.segments() {
            let at = self.at(manifest, index);
            let answer = self
                .storage
                .segments
                .call(&at, collect(manifest, Some(caller)));
            let added = views.add(index, answer.await);
            added.map_err(CounterError::aside)?;
        }
        self.do_without(manifest, &views.lost).await?;
        Ok(views)
    }
}

fn collect(manifest: &Manifest, caller: Option<Caller>) -> Request {
    Request::Collect(Collect {
        generation: manifest.generation(),
        freeze: caller.map(|caller| Freeze {
            caller,
            for_ms: FREEZE_MS_MAX,
        }),
    })
}
