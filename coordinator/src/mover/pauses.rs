//! Pauses in which shards serve others.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// A pause is so many times as long as what was asked of shards since the last one took, at most: where that takes no
/// time, as in this process, nobody is to be spared.
const TIMES: u32 = 29;

/// A mover's pauses. They follow on each other, however many of its shards are asked at once: so much it takes of
/// them all, and no more.
#[derive(Debug)]
pub(super) struct Pauses {
    /// The longest.
    longest: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the last of those begun ends.
    until: Instant,
    /// How long what was asked since then took.
    work: Duration,
}

impl Pauses {
    pub(super) fn new(longest: Duration) -> Self {
        let (until, work) = (Instant::now(), Duration::ZERO);
        Self {
            longest,
            state: Mutex::new(State { until, work }),
        }
    }

    /// Notes that a shard took so long for what it was asked.
    pub(super) fn note(&self, work: Duration) {
        self.state.lock().work += work;
    }

    /// Takes one, or one `part` of it, behind those that others take.
    pub(super) async fn take(&self, part: u32) {
        let over = {
            let mut state = self.state.lock();
            let work = std::mem::take(&mut state.work);
            let pause = self.longest.min(work.saturating_mul(TIMES)) / part;
            state.until = state.until.max(Instant::now()) + pause;
            state.until
        };
        sleep_until(over).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::{join, time::sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn concurrent_pauses_follow_one_another() {
        let pauses = Pauses::new(Duration::from_millis(6));
        let begin = Instant::now();
        let paused = async || {
            pauses.note(Duration::from_secs(1));
            pauses.take(1).await;
            begin.elapsed().as_millis()
        };
        assert_eq!(join!(paused(), paused(), paused()), (6, 12, 18));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(paused().await, 1_024);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_as_long_as_the_work_before_it_is_worth() {
        let pauses = Pauses::new(Duration::from_millis(60));
        let took = async |part| {
            let begin = Instant::now();
            pauses.take(part).await;
            begin.elapsed().as_millis()
        };
        assert_eq!(took(1).await, 0);
        pauses.note(Duration::from_millis(1));
        assert_eq!((took(1).await, took(1).await), (29, 0));
        pauses.note(Duration::from_millis(1));
        pauses.note(Duration::from_millis(2));
        assert_eq!(took(3).await, 20);
    }
}
