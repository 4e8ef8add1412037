//! Accounts that are created late, vanish, or vanish and are created again by others, while money is sent to them.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_client::{BootClock, Clock as _, counter::Terms};
use tokio::time::{sleep, timeout};

use super::super::{Desk, audit::Visitor};

/// How many there are: one is created late, one vanishes, one vanishes and is created again.
pub(super) const VISITORS: usize = 3;
/// Those that vanish.
pub(super) const VANISH: [usize; 2] = [1, 2];
/// Those that are there in the end.
pub(super) const STAY: [usize; 2] = [0, 2];
/// Before some vanish, and before some are created.
const THERE: Duration = Duration::from_millis(1500);
const AWAY: Duration = Duration::from_millis(2000);
/// Before a server that gives no answer is asked again, and how long it has for that.
const AGAIN: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(2);

/// The accounts.
#[derive(Debug)]
pub(super) struct Visitors<'a> {
    pub(super) desk: &'a Desk,
    pub(super) terms: Terms,
    pub(super) urls: Vec<String>,
    /// What became of them.
    pub(super) found: Mutex<[Visitor; VISITORS]>,
    /// How many steps are done.
    pub(super) steps: AtomicUsize,
}

impl Visitors<'_> {
    /// Creates those that are there at first.
    pub(super) async fn begin(&self) {
        for place in VANISH {
            self.create(place).await;
        }
    }

    /// Some vanish. No slot is moving: a copy of an account would remain.
    pub(super) async fn vanish(&self) {
        sleep(THERE).await;
        for place in VANISH {
            self.found.lock()[place].created_ns = None;
            let number = self.desk.accounts.len() + place;
            // An account without its manifest is found again by its segments.
            for part in [format!("account/{number}#"), format!("account/{number}:")] {
                for url in &self.urls {
                    while !matches!(timeout(PATIENCE, erase(url, &part)).await, Ok(Ok(()))) {
                        sleep(AGAIN).await;
                    }
                }
            }
            self.found.lock()[place].gone_ns = Some(now_ns());
        }
        self.steps.store(1, Relaxed);
    }

    /// Some are created.
    pub(super) async fn come(&self) {
        sleep(AWAY).await;
        for place in STAY {
            self.create(place).await;
        }
        self.steps.store(2, Relaxed);
    }

    /// Does what was not done. Nothing else happens any more.
    pub(super) async fn finish(&self) {
        if self.steps.load(Relaxed) < 1 {
            self.vanish().await;
        }
        if self.steps.load(Relaxed) < 2 {
            self.come().await;
        }
    }

    /// The numbers of those that are there in the end.
    pub(super) fn there(&self) -> impl Iterator<Item = usize> {
        STAY.into_iter()
            .map(|place| self.desk.accounts.len() + place)
    }

    async fn create(&self, place: usize) {
        let before_ns = now_ns();
        let number = self.desk.accounts.len() + place;
        while self.desk.create_one(number, self.terms, 1).await.is_err() {
            sleep(AGAIN).await;
        }
        let known = self.found.lock()[place].created_ns;
        let before_ns = known.map_or(before_ns, |(before_ns, _)| before_ns);
        self.found.lock()[place].created_ns = Some((before_ns, now_ns()));
    }
}

fn now_ns() -> u64 {
    BootClock.now().as_nanos()
}

/// Erases what a server has under names with that part, and from the indices of its slots.
async fn erase(url: &str, part: &str) -> redis::RedisResult<()> {
    let client = redis::Client::open(url)?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let mut keys = redis::cmd("KEYS");
    let keys: Vec<String> = keys
        .arg(format!("*{part}*"))
        .query_async(&mut connection)
        .await?;
    let mut erase = redis::pipe();
    erase.atomic();
    for key in keys {
        // "prefix:#{slot}:namespace:name:part", in an index "prefix:#{slot}" as "{slot}:namespace:name".
        let at = key.find(":#{").expect("a group is under its slot");
        let end = at + key[at..].find('}').expect("a slot ends") + 1;
        let name_end = key.rfind(':').expect("a part is behind its group");
        erase.cmd("DEL").arg(&key).ignore();
        let field = &key[at + 2..name_end];
        erase.cmd("HDEL").arg(&key[..end]).arg(field).ignore();
    }
    if erase.is_empty() {
        return Ok(());
    }
    erase.query_async(&mut connection).await
}
