//! What is done while tellers work, until they are done: by a seed, in what order and to whom.

use std::{collections::BTreeMap, future::pending, io, ops::Range, time::Duration};

use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use ringfence_client::counter::segment::SegmentView;
use tokio::time::{Instant, sleep};

use super::{
    super::{Desk, Rule, Violation},
    LOSING_TERMS, SEGMENTS,
    resizes::Resizes,
    shard::{Shard, Trouble},
    tellers::Tellers,
};

/// How long a shard is left alone, and how long it then suffers.
const ALONE: Range<Duration> = Duration::from_millis(2500)..Duration::from_millis(6000);
const SUFFERS: Range<Duration> = Duration::from_millis(50)..Duration::from_millis(400);
/// How long nothing happens to the shards of a run that loses.
const LOSSES_APART: Range<Duration> = Duration::from_millis(100)..Duration::from_millis(700);
/// How long tellers are left alone.
const TELLERS_ALONE: Range<Duration> = Duration::from_secs(2)..Duration::from_secs(5);
/// How long the ring rests.
const RING_RESTS: Range<Duration> = Duration::from_millis(100)..Duration::from_millis(1000);
/// Between two numbers of segments of one account or another.
const RESEGMENT_EVERY: Duration = Duration::from_millis(500);
/// An account has a few hundred layouts in its life.
const RESEGMENTED_MAX: usize = 200;
/// Most segments that are homes.
const SEGMENTS_MAX: u32 = 6;
/// Between two looks at every segment.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Between two sweeps of all accounts.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Between two looks at what has become of tellers.
const DONE_POLL: Duration = Duration::from_millis(50);

/// Does things, and counts them.
#[derive(Debug)]
pub(super) struct Nemesis<'a> {
    pub(super) desk: &'a Desk,
    pub(super) seed: u64,
    /// Whether shards restart with nothing.
    pub(super) loses: bool,
    /// How much each account lost with that.
    pub(super) lost: Mutex<Vec<i64>>,
    pub(super) done: Mutex<BTreeMap<&'static str, usize>>,
    pub(super) violations: Mutex<Vec<Violation>>,
}

impl Nemesis<'_> {
    /// Goes on until all tellers are done.
    ///
    /// # Errors
    ///
    /// A teller failed, or they are not done by `until`.
    pub(super) async fn strike(
        &self,
        shards: &mut [Shard],
        ring: Option<&mut Resizes>,
        tellers: &mut Tellers,
        until: Instant,
    ) -> io::Result<()> {
        if self.loses {
            return tokio::select! {
                done = self.to_tellers(tellers, until) => done,
                () = self.lose(shards) => unreachable!("it goes on"),
                () = self.sweep() => unreachable!("it goes on"),
            };
        }
        let to_shards = shards.iter_mut().zip(1..).map(|(shard, number)| {
            let random = self.random(number);
            self.to_shard(shard, random)
        });
        let to_all = futures_util::future::join_all(to_shards);
        tokio::select! {
            done = self.to_tellers(tellers, until) => done,
            failed = self.to_ring(ring, until) => failed,
            _ = to_all => unreachable!("it goes on"),
            () = self.resegment() => unreachable!("it goes on"),
            () = self.sweep() => unreachable!("it goes on"),
            () = self.look() => unreachable!("it goes on"),
        }
    }

    /// One shard after the other suffers; some restart with nothing, and that is accepted.
    async fn lose(&self, shards: &mut [Shard]) {
        let mut random = self.random(103);
        loop {
            for trouble in Trouble::ALL {
                sleep(random.random_range(LOSSES_APART)).await;
                let shard = random.random_range(0..shards.len());
                let shard = &mut shards[shard];
                if trouble == Trouble::Rewrite {
                    // These servers keep no log.
                    continue;
                }
                if trouble != Trouble::Kill {
                    shard.suffer(trouble, random.random_range(SUFFERS)).await;
                    self.did(trouble.as_str());
                    continue;
                }
                for (name, value) in shard.forget().await {
                    let account = (0..self.desk.accounts.len())
                        .find(|number| name.contains(&format!("account/{number}#")));
                    if let Some(account) = account {
                        self.lost.lock()[account] += value;
                    }
                }
                self.desk.accept(LOSING_TERMS, SEGMENTS).await;
                self.did("shards restarted with nothing, and the loss accepted");
            }
        }
    }

    fn random(&self, number: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed ^ number << 56)
    }

    fn did(&self, what: &'static str) {
        *self.done.lock().entry(what).or_default() += 1;
    }

    async fn to_shard(&self, shard: &mut Shard, mut random: StdRng) {
        let mut troubles = Trouble::ALL;
        loop {
            troubles.shuffle(&mut random);
            for trouble in troubles {
                sleep(random.random_range(ALONE)).await;
                shard.suffer(trouble, random.random_range(SUFFERS)).await;
                self.did(trouble.as_str());
            }
        }
    }

    /// Ends only if it fails.
    async fn to_ring(&self, ring: Option<&mut Resizes>, until: Instant) -> io::Result<()> {
        let Some(ring) = ring else {
            return pending().await;
        };
        let mut random = self.random(102);
        loop {
            sleep(random.random_range(RING_RESTS)).await;
            if ring.one(&mut random, until).await? {
                self.did("movers killed");
            }
            self.did("resizes of the ring");
        }
    }

    async fn to_tellers(&self, tellers: &mut Tellers, until: Instant) -> io::Result<()> {
        let mut random = self.random(100);
        let mut next = Instant::now() + random.random_range(TELLERS_ALONE);
        while !tellers.are_done().await? {
            if Instant::now() > until {
                return Err(io::Error::other(
                    "the tellers take too long: see their logs",
                ));
            }
            if Instant::now() > next {
                tellers.kill_one(random.random()).await?;
                self.did("tellers killed");
                next = Instant::now() + random.random_range(TELLERS_ALONE);
            }
            sleep(DONE_POLL).await;
        }
        Ok(())
    }

    async fn resegment(&self) {
        let mut random = self.random(101);
        let mut times = vec![0; self.desk.accounts.len()];
        loop {
            let account = random.random_range(0..self.desk.accounts.len());
            let segments = random.random_range(1..=SEGMENTS_MAX);
            sleep(RESEGMENT_EVERY).await;
            if times[account] < RESEGMENTED_MAX
                // Whatever is in its way, the next one finishes the plan it may have left.
                && self.desk.accounts[account].resegment(segments).await.is_ok()
            {
                times[account] += 1;
                self.did("resegmented");
            }
        }
    }

    async fn sweep(&self) {
        loop {
            sleep(SWEEP_EVERY).await;
            for swept in self.desk.sweep().await.into_iter().flatten() {
                let mut done = self.done.lock();
                *done
                    .entry("reservations that a sweep found expired")
                    .or_default() += swept.expired;
                *done.entry("transfers that a sweep finished").or_default() += swept.delivered;
            }
        }
    }

    /// No segment ever has less than nothing, or is in doubt.
    async fn look(&self) {
        loop {
            sleep(LOOK_EVERY).await;
            for account in &self.desk.accounts {
                // Who cannot look now, looks later.
                let views = account.inspect().await.unwrap_or_default().views;
                let wrong = |view: &&SegmentView| {
                    view.value < 0 || view.held < 0 || view.doubtful || view.losses > 0
                };
                let wrong = views.values().filter(wrong).map(|view| Violation {
                    rule: Rule::Sound,
                    told: format!("{}: {view:?}", account.account()),
                });
                self.violations.lock().extend(wrong);
            }
        }
    }
}
