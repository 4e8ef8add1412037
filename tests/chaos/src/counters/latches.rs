//! Latches of a process, one after the other: set, counted down under ids that are repeated, looked at; and whether what
//! was answered can be true.

use std::collections::{BTreeMap, HashMap};

use rand::{RngExt, rngs::StdRng};
use ringfence_client::{
    Client, LatchError,
    counter::{Durability, Effect, RequestId, segment::Refusal},
};
use serde::{Deserialize, Serialize};

use super::{Answer, Attempt, Call, Rule, Violation, desk::of_a_repeat};

/// The most that a latch is set to.
const COUNT_MAX: u64 = 8;

/// What is done to a latch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatchCall {
    /// Its name.
    pub latch: String,
    /// How many requests open it.
    pub count: u64,
    /// What is done.
    pub deed: LatchDeed,
}

/// What can be done to a latch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatchDeed {
    /// It is set to its count.
    Set,
    /// It is counted down by a request, for the first time or again.
    CountDown {
        /// When the id was created, in ms since 1970.
        time_ms: u64,
        /// Its name.
        name: String,
    },
    /// How many counts are left?
    Look,
}

/// The latch that a process uses at present.
#[derive(Debug)]
pub(crate) struct Latches {
    process: u32,
    number: u64,
    count: u64,
    /// Whether it is set, as far as was answered.
    is_set: Option<bool>,
    /// The ids of its requests.
    ids: Vec<(u64, String)>,
}

impl Latches {
    pub(crate) fn of(process: u32) -> Self {
        Self {
            process,
            number: 0,
            count: 1,
            is_set: None,
            ids: Vec::new(),
        }
    }

    /// The next call; none while it is not known whether the latch is set.
    pub(crate) fn next(&mut self, now_ms: u64, random: &mut StdRng) -> Option<Call> {
        // One request too many, of some.
        if self.ids.len() as u64 > self.count {
            self.begin();
        }
        let deed = match self.is_set {
            None => {
                self.count = random.random_range(1..=COUNT_MAX);
                self.is_set = Some(false);
                LatchDeed::Set
            }
            Some(false) => return None,
            Some(true) => self.choose(now_ms, random),
        };
        Some(Call::Latch(LatchCall {
            latch: self.name(),
            count: self.count,
            deed,
        }))
    }

    fn choose(&mut self, now_ms: u64, random: &mut StdRng) -> LatchDeed {
        let again = random.random_range(0..self.ids.len().max(1));
        match (random.random_range(0..10), self.ids.get(again).cloned()) {
            (0..3, _) => LatchDeed::Look,
            (3..5, Some((time_ms, name))) => LatchDeed::CountDown { time_ms, name },
            _ => {
                let (time_ms, name) = (now_ms, self.ids.len().to_string());
                self.ids.push((time_ms, name.clone()));
                LatchDeed::CountDown { time_ms, name }
            }
        }
    }

    /// Remembers the answer to a call.
    pub(crate) fn keep(&mut self, call: &LatchCall, answer: &Answer) {
        if call.latch != self.name() {
            return;
        }
        match (&call.deed, answer) {
            (LatchDeed::Set, Answer::Done) => self.is_set = Some(true),
            (_, Answer::Gone(_)) => self.begin(),
            _ => {}
        }
    }

    fn begin(&mut self) {
        self.number += 1;
        self.is_set = None;
        self.ids.clear();
    }

    fn name(&self) -> String {
        format!("latch/{}/{}", self.process, self.number)
    }
}

/// Makes a call.
pub(super) async fn make(
    client: &Client,
    call: &LatchCall,
    durability: Durability,
) -> Result<Answer, LatchError> {
    let latch = client.latch(&call.latch)?;
    Ok(match &call.deed {
        LatchDeed::Set => {
            latch.set(call.count, durability).await?;
            Answer::Done
        }
        LatchDeed::CountDown { time_ms, name } => {
            let id = RequestId::new(*time_ms, name).expect("a short name");
            latch.count_down(&id).await?;
            Answer::Done
        }
        LatchDeed::Look => Answer::Left(latch.remaining().await?),
    })
}

/// What the failure of a call is in a log.
pub(super) fn failed(error: &LatchError) -> Answer {
    match error {
        LatchError::NotSet(_) | LatchError::Lost(_) => Answer::Gone(error.to_string()),
        LatchError::Counter(error) if of_a_repeat(error) == Some(&Refusal::Missing) => {
            Answer::Unknown(error.to_string())
        }
        error if !error.is_retryable() => Answer::Failed(error.to_string()),
        error => match error.effect() {
            Effect::None => Answer::Nothing(error.to_string()),
            Effect::Unknown => Answer::Unknown(error.to_string()),
        },
    }
}

/// The requests of a latch, by their names: when each was first asked for, and when first answered that it is done.
type Counts<'a> = BTreeMap<&'a str, (u64, u64)>;

/// Checks what was answered of latches. `keeps`: nothing that was acknowledged may be lost. No latch opens early in
/// any case: no more counts are missing than distinct requests were made.
pub fn audit_latches(attempts: &[Attempt], keeps: bool) -> Vec<Violation> {
    let (mut counts, mut set): (HashMap<&str, Counts<'_>>, HashMap<&str, u64>) = Default::default();
    for (call, attempt) in of_latches(attempts) {
        let done_ns = match attempt.answered {
            Some((at_ns, Answer::Done)) => at_ns,
            _ => u64::MAX,
        };
        match &call.deed {
            LatchDeed::Set => {
                let first = set.entry(&call.latch).or_insert(u64::MAX);
                *first = done_ns.min(*first);
            }
            LatchDeed::CountDown { name, .. } => {
                let of_latch = counts.entry(&call.latch).or_default();
                let first = of_latch.entry(name).or_insert((u64::MAX, u64::MAX));
                *first = (attempt.asked_ns.min(first.0), done_ns.min(first.1));
            }
            LatchDeed::Look => {}
        }
    }
    let none = Counts::new();
    let mut violations = Vec::new();
    for (call, attempt) in of_latches(attempts) {
        let Some((at_ns, answer)) = &attempt.answered else {
            continue;
        };
        let of_latch = counts.get(call.latch.as_str()).unwrap_or(&none).values();
        let most = of_latch.clone().filter(|(asked, _)| asked < at_ns).count() as u64;
        let least = of_latch
            .filter(|(_, done)| *done < attempt.asked_ns)
            .count() as u64;
        let least = if keeps { least } else { 0 };
        let left = call.count.saturating_sub(most)..=call.count.saturating_sub(least);
        let was_set = set
            .get(call.latch.as_str())
            .is_some_and(|done| *done < attempt.asked_ns);
        let wrong = match answer {
            Answer::Left(found) => !left.contains(found),
            Answer::Gone(_) => keeps && was_set,
            Answer::Failed(_) => true,
            _ => false,
        };
        if wrong {
            let told = format!("{left:?} should be left: {attempt:?}");
            violations.push(Violation {
                rule: Rule::Latch,
                told,
            });
        }
    }
    violations
}

fn of_latches(attempts: &[Attempt]) -> impl Iterator<Item = (&LatchCall, &Attempt)> {
    attempts.iter().filter_map(|attempt| match &attempt.call {
        Call::Latch(call) => Some((call, attempt)),
        _ => None,
    })
}

/// Whether a segment, by its key at a server, is a latch: nobody accepts what that loses.
pub(super) fn owns(segment: &str) -> bool {
    segment.contains(":latch:latch/")
}

/// A look at each latch of the log that was set.
pub(super) fn looks(attempts: &[Attempt]) -> Vec<Call> {
    let is_set = |call: &LatchCall, attempt: &Attempt| {
        call.deed == LatchDeed::Set && matches!(attempt.answered, Some((_, Answer::Done)))
    };
    let set = of_latches(attempts).filter(|(call, attempt)| is_set(call, attempt));
    let looks = set.map(|(call, _)| {
        let deed = LatchDeed::Look;
        Call::Latch(LatchCall {
            deed,
            ..call.clone()
        })
    });
    looks.collect()
}
