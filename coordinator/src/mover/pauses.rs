//! Pauses between a mover's requests, in which shards serve other requests.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// A pause is at most this many times as long as the requests since the last pause took. Shards in this process answer
/// at once and need none.
const TIMES: u32 = 29;

/// A mover's pauses. They follow one another, even if the mover asks several shards at once: that bounds its share of
/// the time of all shards together.
#[derive(Debug)]
pub(super) struct Pauses {
    /// The longest pause.
    longest: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The end of the last pause that was begun.
    until: Instant,
    /// The time that requests took since then.
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

    /// Notes the time that a request to a shard took.
    pub(super) fn note(&self, work: Duration) {
        self.state.lock().work += work;
    }

    /// Takes a pause, or `1 / part` of one, after the pauses of other tasks.
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
