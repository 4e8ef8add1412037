//! Compares a server's wall clock, which ends leases, with the engine's clock, which ends guards
//! (protocol, section 1).
//!
//! Each answer has the server's time. By one answer, the difference between the clocks lies in [now
//! − received, now + 1 ms − sent]. Rates may differ by `rho`, so an earlier interval widens with
//! time. If the interval of a later answer lies away from it by more than the margin, one of the
//! clocks stepped. The clocks of other servers tell which one.

use crate::{
    clock::Instant,
    ids::{Epoch, Life},
    limits::{MARGIN, RHO_PERMILLE},
    shard::ShardTime,
    sync::Mutex,
};

/// The observations from all connections to one shard.
#[derive(Debug, Default)]
pub(super) struct ServerClock(Mutex<Known>);

/// By how much a server's clock has shifted against the engine's, at least and at most: in nanoseconds, negative if it fell
/// behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shift {
    least: i128,
    most: i128,
}

impl Shift {
    /// The least size.
    fn by(self) -> i128 {
        self.least.max(0) + self.most.min(0)
    }

    /// Whether it certainly goes the same way.
    fn goes_with(self, other: Self) -> bool {
        self.by() != 0 && self.by().signum() == other.by().signum()
    }

    /// Whether it may be the same.
    fn may_be(self, other: Self) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

/// What the clock of a shard says about the step of another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// It shifted the same way: the engine's clock is to blame.
    Moved,
    /// It did not: the other one is to blame.
    Stood,
}

/// The times when an exchange began and ended, by the engine's clock; and when the server answered,
/// by its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) sent: Instant,
    pub(super) received: Instant,
    pub(super) now: ShardTime,
}

/// A step of a server's wall clock, or of the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockStep {
    /// The least size of the step, forwards or back.
    pub(crate) by_ms: i64,
    /// The shard's epoch, allotted or armed, when its clock last was as expected.
    pub(crate) epoch: Epoch,
    shift: Shift,
    /// It came after the request of that answer was sent.
    after: Instant,
    /// Before, no answer of the shard showed any shift since.
    clean_since: Instant,
}

#[derive(Debug, Default)]
struct Known {
    reference: Option<Reference>,
    /// An answer to an earlier request may be from before a known step.
    since: Instant,
    last: Option<Last>,
    /// The last step.
    stepped: Option<Shift>,
    /// No answer showed any shift since.
    clean_since: Instant,
}

/// The last answer.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// When its request was sent.
    sent: Instant,
    shift: Shift,
    /// When the request was sent against whose answer it shows the shift.
    against: Instant,
}

/// An interval that contained the difference, in nanoseconds.
#[derive(Debug)]
struct Reference {
    life: Life,
    epoch: Epoch,
    low: i128,
    high: i128,
    at: Instant,
    /// A step that it does not contain came later: a clock that steps during an exchange may not show it.
    sent: Instant,
}

impl ServerClock {
    /// Considers an answer that `life` gave while `epoch` was the shard's. Returns the step that it
    /// shows.
    pub(super) fn observe(
        &self,
        life: &Life,
        epoch: Epoch,
        exchange: Exchange,
    ) -> Option<ClockStep> {
        let Exchange {
            sent,
            received,
            now,
        } = exchange;
        let now = i128::from(now.0) * 1_000_000;
        let low = now - i128::from(received.as_nanos());
        let high = now + 1_000_000 - i128::from(sent.as_nanos());
        let mut known = self.0.lock();
        if sent < known.since {
            return None;
        }
        let Some(former) = known.reference.as_mut().filter(|its| its.life == *life) else {
            known.reference = Some(Reference {
                life: life.clone(),
                epoch,
                low,
                high,
                at: received,
                sent,
            });
            (known.last, known.stepped, known.clean_since) = (None, None, received);
            return None;
        };
        let between = received.since(former.at) + former.at.since(received);
        let drift = (between * RHO_PERMILLE / 1000).as_nanos() as i128;
        let (least, most) = (former.low - drift, former.high + drift);
        let shift = Shift {
            least: low - most,
            most: high - least,
        };
        let (by, against) = (shift.by(), former.sent);
        let its_epoch = std::mem::replace(&mut former.epoch, epoch);
        let stepped = by.unsigned_abs() > MARGIN.as_nanos();
        if stepped {
            (former.low, former.high) = (low, high);
            (former.at, former.sent) = (received, sent);
            known.since = received;
        } else if by == 0 {
            (former.low, former.high) = (low.max(least), high.min(most));
            (former.at, former.sent) = (received.max(former.at), sent.max(former.sent));
        }
        known.last = Some(Last {
            sent,
            shift,
            against,
        });
        let clean_since = known.clean_since;
        if by != 0 {
            known.clean_since = received;
        }
        // A deviation below the margin changes no reference: small steps add up.
        stepped.then(|| {
            known.stepped = Some(shift);
            ClockStep {
                by_ms: (by / 1_000_000) as i64,
                epoch: its_epoch,
                shift,
                after: against,
                clean_since,
            }
        })
    }

    /// Compares this clock with another shard's that made `step`, by an answer to a request that was sent at `asked` or
    /// later. `None`: it says nothing.
    pub(super) fn compare(&self, step: &ClockStep, asked: Instant) -> Option<Comparison> {
        let known = self.0.lock();
        let stepped = known.stepped.filter(|_| known.since >= step.after);
        let last = known.last.filter(|last| last.sent >= asked);
        let mut shifts = stepped.into_iter().chain(last.map(|last| last.shift));
        if shifts.any(|shift| shift.goes_with(step.shift)) {
            return Some(Comparison::Moved);
        }
        let Last { shift, against, .. } = last?;
        // Else it may have seen the same step before; or, seldom asked, an earlier one that this one takes back.
        let is_about_the_same_time = known.clean_since <= step.after && step.clean_since <= against;
        (is_about_the_same_time && !shift.may_be(step.shift)).then_some(Comparison::Stood)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    /// A server's wall clock when the engine's shows 0.
    const AHEAD: u64 = 1_790_000_000_000 * MS;

    fn life() -> Life {
        Life::new("life")
    }

    /// An exchange that begins at `sent` and takes `there` and `back`, with a server clock that
    /// shows `shift` more than expected.
    fn exchange(sent: u64, there: u64, back: u64, shift: i64) -> Exchange {
        let now = (AHEAD + sent + there).wrapping_add_signed(shift);
        Exchange {
            sent: Instant::from_nanos(sent),
            received: Instant::from_nanos(sent + there + back),
            now: ShardTime(now / MS),
        }
    }

    fn observe(clock: &ServerClock, exchange: Exchange) -> Option<i64> {
        let step = clock.observe(&life(), Epoch(7), exchange);
        step.map(|step| step.by_ms)
    }

    fn watched() -> ServerClock {
        let clock = ServerClock::default();
        assert_eq!(observe(&clock, exchange(0, MS, MS, 0)), None);
        clock
    }

    #[test]
    fn a_step_is_seen_once_in_either_direction() {
        for by_ms in [-3_600_000, -2_000, -700, 700, 2_000, 3_600_000] {
            let clock = watched();
            let by = by_ms * MS as i64;
            let seen = observe(&clock, exchange(1_000 * MS, MS, MS, by)).unwrap();
            assert!((seen - by_ms).abs() <= 13, "{by_ms}: {seen}");
            assert_eq!(observe(&clock, exchange(2_000 * MS, MS, MS, by)), None);
        }
    }

    #[test]
    fn the_epoch_is_the_one_of_the_last_answer_that_was_as_expected() {
        let clock = watched();
        let step = clock.observe(&life(), Epoch(8), exchange(MS, MS, MS, -700 * MS as i64));
        assert_eq!(step.unwrap().epoch, Epoch(7));
    }

    #[test]
    fn an_answer_from_before_a_known_step_is_no_step_back() {
        let clock = watched();
        let by = 700 * MS as i64;
        assert!(observe(&clock, exchange(1_000 * MS, MS, MS, by)).is_some());
        assert_eq!(observe(&clock, exchange(999 * MS, MS, 50 * MS, 0)), None);
    }

    /// Two shards, at which the engine looks in turn. The clock of the first one shifts, or the engine's own.
    #[test]
    fn another_clock_tells_whose_step_it_was() {
        let by = 700 * MS as i64;
        for (own, expected) in [(false, Comparison::Stood), (true, Comparison::Moved)] {
            let [one, other] = [watched(), watched()];
            for at in 1..10 {
                assert_eq!(observe(&one, exchange(at * 100 * MS, MS, MS, 0)), None);
                let later = exchange(at * 100 * MS + 50 * MS, MS, MS, 0);
                assert_eq!(observe(&other, later), None);
            }
            let step = one.observe(&life(), Epoch(7), exchange(1_000 * MS, MS, MS, by));
            let (step, asked) = (step.unwrap(), Instant::from_nanos(1_002 * MS));
            assert_eq!(other.compare(&step, asked), None, "it was not asked");
            let its = if own { by } else { 0 };
            observe(&other, exchange(1_003 * MS, MS, MS, its));
            assert_eq!(other.compare(&step, asked), Some(expected));
            // Once its step is known, it is as expected.
            observe(&other, exchange(1_010 * MS, MS, MS, its));
            assert_eq!(other.compare(&step, asked), Some(expected));
        }
    }

    /// The engine's clock steps forwards, which the other shard shows at once. The first one is asked before, and answers
    /// after.
    #[test]
    fn of_a_step_during_its_request_no_server_is_accused() {
        let [one, other] = [watched(), watched()];
        let by = -700 * MS as i64;
        let step = observe(&other, exchange(1_705 * MS, MS, MS, by));
        assert!(step.is_some());
        // Its clock shows the time of before the step, or of after it.
        assert_eq!(observe(&one, exchange(1_000 * MS, MS, 710 * MS, 0)), None);
        let step = one.observe(&life(), Epoch(7), exchange(1_720 * MS, MS, MS, by));
        let (step, asked) = (step.unwrap(), Instant::from_nanos(1_722 * MS));
        observe(&other, exchange(1_723 * MS, MS, MS, by));
        assert_eq!(other.compare(&step, asked), Some(Comparison::Moved));
    }

    /// The other shard was not asked between two steps of the engine's clock, of which the second takes back the first.
    #[test]
    fn of_a_step_that_takes_another_back_no_server_is_accused() {
        let [one, other] = [watched(), watched()];
        let there = exchange(1_000 * MS, MS, MS, 700 * MS as i64);
        assert!(observe(&one, there).is_some());
        let step = one.observe(&life(), Epoch(7), exchange(2_000 * MS, MS, MS, 0));
        let (step, asked) = (step.unwrap(), Instant::from_nanos(2_002 * MS));
        observe(&other, exchange(2_003 * MS, MS, MS, 0));
        assert_eq!(other.compare(&step, asked), None);
    }

    /// The engine's clock loses 2 % of the time: 20 ms per second. The servers are asked at different times.
    #[test]
    fn of_a_slow_clock_no_server_is_accused() {
        let [one, other] = [watched(), watched()];
        let slow = |at: u64| exchange(at * MS, MS, MS, (at * MS / 50) as i64);
        let mut steps = 0;
        for at in (1_000..60_000).step_by(700) {
            observe(&other, slow(at));
            let step = one.observe(&life(), Epoch(7), slow(at + 300));
            if let Some(step) = step {
                observe(&other, slow(at + 310));
                let asked = Instant::from_nanos((at + 305) * MS);
                assert_ne!(other.compare(&step, asked), Some(Comparison::Stood), "{at}");
                steps += 1;
            }
        }
        assert!(steps > 5, "{steps}");
    }

    #[test]
    fn another_life_has_a_clock_of_its_own() {
        let clock = watched();
        let other = exchange(MS, MS, MS, 700 * MS as i64);
        assert_eq!(clock.observe(&Life::new("other"), Epoch(7), other), None);
    }

    #[test]
    fn small_steps_add_up() {
        let clock = watched();
        let seen = (1..=10).find_map(|step| {
            observe(
                &clock,
                exchange(step * 10 * MS, MS, MS, 15 * MS as i64 * step as i64),
            )
        });
        assert!(seen.is_some());
    }

    proptest! {
        /// Exchanges of any length, after any pauses, with a clock that is slewed by up to 1 % either way.
        #[test]
        fn neither_slow_answers_nor_slewing_are_steps(
            exchanges in prop::collection::vec(
                (0..60_000 * MS, 0..5_000 * MS, 0..5_000 * MS, -10_i64..=10), 1..50,
            ),
        ) {
            let (clock, mut at, mut shift) = (ServerClock::default(), 0, 0);
            for (pause, there, back, permille) in exchanges {
                // The engine's clock goes on by so much until the server looks at its own.
                shift += (pause + there) as i64 / 1_000 * permille;
                prop_assert_eq!(observe(&clock, exchange(at + pause, there, back, shift)), None);
                shift += back as i64 / 1_000 * permille;
                at += pause + there + back;
            }
        }

        /// The next answer shows a step beyond the uncertainty.
        #[test]
        fn a_step_beyond_the_bound_is_seen(
            pause in 0..60_000 * MS,
            (there, back) in (0..100 * MS, 0..100 * MS),
            beyond in 0..60_000 * MS,
            forwards: bool,
        ) {
            let clock = watched();
            let drift = Duration::from_nanos(pause + there + back) * RHO_PERMILLE / 1000;
            let least = drift + MARGIN + Duration::from_nanos(2 * MS + there + back + 4 * MS);
            let by = (least.as_nanos() as u64 + beyond) as i64;
            let by = if forwards { by } else { -by };
            prop_assert!(observe(&clock, exchange(2 * MS + pause, there, back, by)).is_some());
        }
    }
}
