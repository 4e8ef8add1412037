//! A clock for a store whose transactions see none: a key, `clock`, in milliseconds.
//!
//! Processes put it forward, on condition that it is still the one they saw, by the time for which they saw it unchanged. So
//! it never runs faster than a process's own clock, and stands still while no process asks for locks. Conditions of commits
//! compare it, as those of SQL compare the server's clock.
//!
//! A process may have seen it unchanged for long when another one grants a lock: the next tick then counts time that has
//! passed before the grant. So ends count from a later time, by [`slack`](Sight::slack_ms): from the latest that the clock
//! may turn out to have been.

use std::time::Duration;

use crate::{
    clock::Instant,
    shard::{docs::SLACK_MAX, rules::millis},
};

/// A process puts the clock forward once it has seen it unchanged for so long.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// One tick is at most so long. No shorter than the time between two requests of a waiter, or the clock would be slow
/// whenever only waiters put it forward.
pub(crate) const TICK_MAX: Duration = SLACK_MAX.saturating_sub(ROUNDING);

/// Lengths are rounded up to whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

/// What a process has seen of the clock. All instants are on its own clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<R> {
    /// The revision of the key, which rises with each change; the default: there is none yet.
    pub(crate) revision: R,
    /// What it shows.
    pub(crate) ms: u64,
    /// When the first answer with this revision came: no later was it put.
    seen: Instant,
    /// When the latest request was sent that found this revision.
    asked: Instant,
    /// It was put after this. `None`: that is not known.
    since: Option<Instant>,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) sent: Instant,
    pub(crate) answered: Instant,
    /// It put the clock forward.
    pub(crate) put: bool,
}

impl<R: Copy + Ord> Sight<R> {
    /// What is known after `request` found the clock at `revision`.
    pub(crate) fn after(known: Option<Self>, request: Asked, revision: R, ms: u64) -> Self {
        let since = match known {
            // An answer that comes late shows nothing new.
            Some(known) if known.revision > revision => return known,
            Some(known) if known.revision == revision => {
                return Self {
                    asked: known.asked.max(request.sent),
                    ..known
                };
            }
            // The request that was sent at `asked` still found an earlier one.
            Some(known) if request.put => Some(known.asked.max(request.sent)),
            Some(known) => Some(known.asked),
            None => request.put.then_some(request.sent),
        };
        Self {
            revision,
            ms,
            seen: request.answered,
            asked: request.sent,
            since,
        }
    }

    /// What the clock may be put forward to by a request sent at `now`, if it is time for that.
    pub(crate) fn tick(&self, now: Instant) -> Option<u64> {
        let unchanged = now.since(self.seen);
        (unchanged >= TICK).then(|| self.ms + millis(unchanged.min(TICK_MAX)))
    }

    /// By how much the next tick may exceed the time since a request that found this revision was served, if it was answered
    /// at `answered`.
    pub(crate) fn slack_ms(&self, answered: Instant) -> u64 {
        let unseen = self.since.map_or(TICK_MAX, |since| answered.since(since));
        millis(unseen.min(TICK_MAX) + ROUNDING)
    }

    /// By how much the clock may exceed what it showed here, and the time from `now` on. Others may have put it forward
    /// since, more than once: so no bound of one tick will do.
    pub(crate) fn late_ms(&self, now: Instant) -> Option<u64> {
        let unseen = now.since(self.since?);
        (unseen <= TICK_MAX).then(|| millis(unseen + ROUNDING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A step of the simulation, in microseconds: no whole milliseconds.
    const STEP: u64 = 700;
    const STEPS: u64 = 60_000_000 / STEP;

    /// Processes, and requests of one that may be under way together.
    const PROCESSES: usize = 3;
    const LANES: usize = 2;

    /// A request: times in microseconds.
    struct Flight {
        process: usize,
        sent: u64,
        arrives: u64,
        answered: u64,
        /// The revision on which it depends, and what it puts.
        tick: Option<(i64, u64)>,
        /// What it found: revision, time, and whether it put that.
        found: Option<(i64, u64, bool)>,
        served: u64,
    }

    struct World {
        random: Random,
        sights: [Option<Sight<i64>>; PROCESSES],
        flights: Vec<Flight>,
        clock: (i64, u64),
        /// The clock must not pass this plus the time: the least of all answers so far.
        bound: i64,
    }

    fn instant(micros: u64) -> Instant {
        Instant::default() + Duration::from_micros(micros)
    }

    impl World {
        fn new(seed: u64) -> Self {
            Self {
                random: Random::seeded(seed),
                sights: [None; PROCESSES],
                flights: Vec::new(),
                clock: (1, 1_000_000),
                bound: i64::MAX,
            }
        }

        fn send(&mut self, process: usize, now: u64) {
            let way = |random: &Random| match random.below(20) {
                0 => random.below(3_000_000),
                _ => random.below(20_000),
            };
            let arrives = now + way(&self.random);
            let tick = self.sights[process]
                .and_then(|sight| Some((sight.revision, sight.tick(instant(now))?)));
            self.flights.push(Flight {
                process,
                sent: now,
                arrives,
                answered: arrives + way(&self.random),
                tick,
                found: None,
                served: 0,
            });
        }

        fn serve(&mut self, now: u64) {
            for flight in &mut self.flights {
                if flight.found.is_some() || flight.arrives > now {
                    continue;
                }
                let due = flight
                    .tick
                    .filter(|(revision, _)| *revision == self.clock.0);
                if let Some((revision, ms)) = due {
                    self.clock = (revision + 1, ms);
                    let micros = ms as i64 * 1_000;
                    assert!(micros <= self.bound.saturating_add(now as i64), "{now}");
                }
                let (revision, ms) = self.clock;
                (flight.found, flight.served) = (Some((revision, ms, due.is_some())), now);
            }
        }

        fn answer(&mut self, now: u64) {
            let (answered, rest) = std::mem::take(&mut self.flights)
                .into_iter()
                .partition(|flight| flight.found.is_some() && flight.answered <= now);
            self.flights = rest;
            let answered: Vec<Flight> = answered;
            for flight in answered {
                let (revision, ms, put) = flight.found.expect("it was served");
                let asked = Asked {
                    sent: instant(flight.sent),
                    answered: instant(now),
                    put,
                };
                let known = &mut self.sights[flight.process];
                let sight = Sight::after(*known, asked, revision, ms);
                *known = Some(sight);
                if sight.revision == revision {
                    let from_ms = ms + sight.slack_ms(asked.answered);
                    let bound = from_ms as i64 * 1_000 - flight.served as i64;
                    self.bound = self.bound.min(bound);
                }
            }
        }

        /// What each process could do without a request holds, too.
        fn recall(&mut self, now: u64) {
            for sight in self.sights.iter().flatten() {
                if let Some(late_ms) = sight.late_ms(instant(now)) {
                    let bound = (sight.ms + late_ms) as i64 * 1_000 - now as i64;
                    self.bound = self.bound.min(bound);
                }
            }
        }

        /// Runs a minute, in which a process sends a request about every `pauses` microseconds. Returns by how many
        /// milliseconds the clock went forward.
        fn run(mut self, pauses: [u64; PROCESSES]) -> u64 {
            let mut next = [0; PROCESSES];
            for now in (0..STEPS).map(|step| step * STEP) {
                for process in 0..PROCESSES {
                    let its = |flight: &&Flight| flight.process == process;
                    let lanes = self.flights.iter().filter(its).count();
                    if now >= next[process] && lanes < LANES {
                        self.send(process, now);
                        next[process] =
                            now + pauses[process] / 2 + self.random.below(pauses[process]);
                    }
                }
                self.serve(now);
                self.answer(now);
                self.recall(now);
            }
            self.clock.1 - 1_000_000
        }
    }

    #[test]
    fn the_clock_runs_no_faster_than_time_for_any_process() {
        for seed in 0..40 {
            World::new(seed).run([5_000, 90_000, 1_500_000]);
            World::new(seed).run([400_000, 1_000_000, 20_000_000]);
        }
    }

    /// Waiters ask once a second, and no faster process may be there.
    #[test]
    fn the_clock_goes_on_while_waiters_ask() {
        for pauses in [[1_000_000; 3], [90_000; 3], [5_000, 1_000_000, 1_000_000]] {
            let forward = World::new(7).run(pauses);
            assert!(
                (30_000..=60_000).contains(&forward),
                "{pauses:?}: {forward}"
            );
        }
    }
}
