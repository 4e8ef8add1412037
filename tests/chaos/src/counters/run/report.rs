//! What a run says when it is over.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use super::{
    super::{Answer, Attempt, Call, Deed, End, LatchDeed, Rule, Violation},
    CountersArgs,
    shard::Trouble,
};

/// Of many violations, as many are told in full.
const TOLD_MAX: usize = 10;

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// What its choices were made from.
    pub seed: u64,
    /// How many calls it was asked for.
    pub calls: usize,
    /// Whether its shards lost everything, now and then.
    pub loses: bool,
    /// Whether they also went back to older files.
    pub goes_back: bool,
    /// Whether they left their replicas behind.
    pub fails_over: bool,
    /// What must have happened in it.
    pub always: Vec<&'static str>,
    /// How long it took.
    pub took: Duration,
    /// What happened, how often.
    pub counts: BTreeMap<&'static str, usize>,
    /// What was wrong.
    pub violations: Vec<Violation>,
    /// Where the logs are, if they were kept.
    pub kept: Option<PathBuf>,
}

/// What a run must have seen of so many calls to mean something: far less than it does on a slow machine.
const MINIMA: [(&str, usize); 14] = [
    ("calls that were insufficient", 25_000),
    ("calls of a teller that was killed before the answer", 5_000),
    ("exact balances", 200),
    ("reservations confirmed", 100),
    ("reservations captured", 500),
    ("reservations cancelled", 100),
    ("reservations expired", 200),
    ("transfers", 100),
    ("transfers to two accounts", 200),
    ("transfers that came back, or took nothing", 200),
    ("latches found open", 1_000),
    ("counts of latches", 200),
    ("resegmented", 10_000),
    ("shards killed and started again", 20_000),
];

/// A segment with many ids went to another shard.
pub(super) const CROWD_MOVED: &str = "moves of a segment with blocks of ids";

/// Accounts that money was sent to before.
pub(super) const CAME: &str = "accounts created late, or again";

/// What happens in each run, however few its calls are: the nemesis waits for it.
pub(super) fn always(args: &CountersArgs) -> Vec<&'static str> {
    let came = (!args.losses).then_some(CAME);
    let moved = (args.resizes && !args.losses).then_some(CROWD_MOVED);
    let left_behind = Trouble::OF_REPLICAS.map(Trouble::as_str).into_iter();
    let left_behind = left_behind.filter(|_| args.failovers);
    came.into_iter().chain(moved).chain(left_behind).collect()
}

/// The same of a run whose shards lose everything.
const LOSING: [(&str, usize); 5] = [
    (
        "shards restarted with nothing, and the loss accepted",
        25_000,
    ),
    ("calls that were too old", 25_000),
    ("counts of latches", 500),
    ("exact balances", 500),
    ("transfers", 500),
];

impl Outcome {
    pub(super) fn new(
        seed: u64,
        args: &CountersArgs,
        counts: BTreeMap<&'static str, usize>,
        violations: Vec<Violation>,
    ) -> Self {
        Self {
            seed,
            calls: args.calls,
            loses: args.losses,
            goes_back: args.older_files,
            fails_over: args.failovers,
            always: always(args),
            took: Duration::ZERO,
            counts,
            violations,
            kept: None,
        }
    }

    /// Adds what was asked and answered.
    pub(super) fn count(&mut self, attempts: &[Attempt]) {
        for attempt in attempts {
            let answer = attempt.answered.as_ref().map(|(_, answer)| answer);
            let what = said(&attempt.call, answer);
            *self.counts.entry(what).or_default() += 1;
        }
        self.counts.insert("calls", attempts.len());
        let minima = if self.loses { &LOSING[..] } else { &MINIMA[..] };
        let minima = minima.iter();
        let minima = minima.map(|&(what, calls_to_one)| (what, self.calls / calls_to_one));
        for (what, least) in minima.chain(self.always.iter().map(|&what| (what, 1))) {
            let seen = self.counts.get(what).copied().unwrap_or_default();
            if seen < least {
                self.violations.push(Violation {
                    rule: Rule::Minimum,
                    told: format!("{what}: {seen}, should be {least}"),
                });
            }
        }
    }
}

fn said(call: &Call, answer: Option<&Answer>) -> &'static str {
    match (call, answer) {
        (_, None) => "calls of a teller that was killed before the answer",
        (_, Some(Answer::Unknown(_))) => "calls of unknown effect",
        (_, Some(Answer::Nothing(_))) => "calls without effect",
        (_, Some(Answer::TooOld)) => "calls that were too old",
        (_, Some(Answer::Failed(_))) => "calls that failed",
        (_, Some(Answer::Gone(_))) => "calls of latches that were lost, or not set yet",
        (_, Some(Answer::Left(0))) => "latches found open",
        (_, Some(Answer::Left(_))) => "latches found closed",
        (_, Some(Answer::Insufficient)) => "calls that were insufficient",
        (_, Some(Answer::Absent)) => "transfers to accounts that were not there",
        (_, Some(Answer::Unseen)) => "orders looked up that were never seen",
        (Call::Find(_), _) => "orders looked up",
        (_, Some(Answer::Unreserved)) => "ends of reservations that were forgotten",
        (_, Some(Answer::Returned)) => "transfers that came back, or took nothing",
        (Call::Change(order), _) => match order.deed {
            Deed::Deposit => "deposits",
            Deed::Deduct => "deductions",
            Deed::Reserve(_) | Deed::ReserveFor(..) => "reservations",
            Deed::Transfer(_) => "transfers",
            Deed::Legs(_) => "transfers to two accounts",
        },
        (Call::Confirm(order), Some(Answer::Ended(End::Confirmed)))
            if matches!(order.deed, Deed::ReserveFor(..)) =>
        {
            "reservations captured"
        }
        (_, Some(Answer::Ended(End::Confirmed))) => "reservations confirmed",
        (_, Some(Answer::Ended(End::Cancelled))) => "reservations cancelled",
        (_, Some(Answer::Ended(End::Expired))) => "reservations expired",
        (Call::Latch(call), _) => match call.deed {
            LatchDeed::CountDown { .. } => "counts of latches",
            LatchDeed::Set | LatchDeed::Look => "latches set",
        },
        (Call::Exact(_), _) => "exact balances",
        (Call::Fast(_), _) => "fast balances",
        (Call::History(_), _) => "histories",
        (Call::Confirm(_) | Call::Cancel(_), _) => "ends of reservations of another kind",
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.counts {
            writeln!(formatter, "  {count:>7}  {what}")?;
        }
        writeln!(formatter, "  {:>7.1}  seconds", self.took.as_secs_f64())?;
        writeln!(formatter, "  {:>7}  violations", self.violations.len())?;
        for violation in self.violations.iter().take(TOLD_MAX) {
            writeln!(formatter, "\n{violation}")?;
        }
        if let Some(kept) = &self.kept {
            writeln!(formatter, "logs: {}", kept.display())?;
        }
        if !self.violations.is_empty() {
            let Self { seed, calls, .. } = self;
            let losses = if self.loses { " --losses" } else { "" };
            let older_files = if self.goes_back { " --older-files" } else { "" };
            let failovers = if self.fails_over {
                ""
            } else {
                " --failovers false"
            };
            writeln!(
                formatter,
                "again: cargo run -p ringfence-chaos -- counters --seed {seed} --calls {calls}{losses}{older_files}{failovers}"
            )?;
        }
        Ok(())
    }
}
