//! Pauses in which shards serve others.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// A mover's pauses. They follow on each other, however many of its shards are asked at once: so much it takes of
/// them all, and no more.
#[derive(Debug)]
pub(super) struct Pauses {
    each: Duration,
    /// When the last of those begun ends.
    until: Mutex<Instant>,
}

impl Pauses {
    pub(super) fn new(each: Duration) -> Self {
        Self {
            each,
            until: Mutex::new(Instant::now()),
        }
    }

    /// Takes one, behind those that others take.
    pub(super) async fn take(&self) {
        let over = {
            let mut until = self.until.lock();
            *until = (*until).max(Instant::now()) + self.each;
            *until
        };
        sleep_until(over).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::{join, time::sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_pauses_at_once_pauses_one_after_the_other() {
        let pauses = Pauses::new(Duration::from_millis(6));
        let begin = Instant::now();
        let paused = async || {
            pauses.take().await;
            begin.elapsed().as_millis()
        };
        assert_eq!(join!(paused(), paused(), paused()), (6, 12, 18));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(paused().await, 1_024);
    }
}
