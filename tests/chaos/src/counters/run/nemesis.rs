//! What is done while tellers work, until they are done: by a seed, in what order and to whom.

use std::{collections::BTreeMap, future::pending, io, ops::Range, time::Duration};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use ringfence_client::{BootClock, Clock as _, counter::segment::SegmentView};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    super::{Desk, ForgottenLayout, Handover, Losses, Rule, Violation, latches},
    ACCOUNTS, LOSING_TERMS, SEGMENTS, SHARDS, TERMS,
    crowd::{Crowd, Packed},
    report::{CAME, CROWD_MOVED},
    resizes::Resizes,
    shard::{LeftBehind, Shard, Trouble},
    tail::{Tail, account_of},
    tellers::Tellers,
    visitors::{STAY, VANISH, Visitors},
};
use crate::run::HOME;

/// How long a shard is left alone, and how long it then suffers.
const ALONE: Range<Duration> = Duration::from_millis(2500)..Duration::from_millis(6000);
const SUFFERS: Range<Duration> = Duration::from_millis(50)..Duration::from_millis(400);
/// How long a shard's replica is left behind: a replica that takes over must have time to be armed.
const LEFT_BEHIND: Range<Duration> = Duration::from_millis(200)..Duration::from_millis(2000);
/// How long nothing happens to the shards of a run that loses.
const LOSSES_APART: Range<Duration> = Duration::from_millis(100)..Duration::from_millis(700);
/// Layouts that an account gets in a short time, and how many accounts do.
const LAYOUTS_AT_ONCE: usize = 3;
const RESEGMENTED_AT_ONCE: usize = 3;
/// A shard goes back to one of its last copies.
const COPIES_MAX: usize = 8;
/// How long tellers are left alone.
const TELLERS_ALONE: Range<Duration> = Duration::from_secs(2)..Duration::from_secs(5);

/// The same before one was killed that had made calls: on a fast machine, the calls of a short run take 2 s.
const FIRST_ALONE: Range<Duration> = Duration::from_millis(300)..Duration::from_millis(900);
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
/// Between two looks at what has become of tellers, and at what has happened.
const DONE_POLL: Duration = Duration::from_millis(50);
/// How soon each segment of a shard that went back counts a loss.
const SAYS_SO_WITHIN: Duration = Duration::from_secs(10);
/// How long the faults go on once all tellers are done, until each that a run must have has happened.
const HAPPENS_WITHIN: Duration = Duration::from_secs(120);

/// Does things, and counts them.
#[derive(Debug)]
pub(super) struct Nemesis<'a> {
    pub(super) desk: &'a Desk,
    pub(super) seed: u64,
    /// Whether shards restart with nothing.
    pub(super) loses: bool,
    /// Whether they restart from older files, too.
    pub(super) goes_back: bool,
    /// What each account lost with that.
    pub(super) lost: Mutex<Vec<Losses>>,
    /// Whether shards leave their replicas behind.
    pub(super) fails_over: bool,
    /// When they did, in a run that loses nothing.
    pub(super) handovers: Mutex<Vec<Handover>>,
    /// The account with many ids, if there is one.
    pub(super) crowd: Option<Crowd<'a>>,
    /// Accounts that come and go, if there are any.
    pub(super) visitors: Option<&'a Visitors<'a>>,
    /// What must happen before it ends.
    pub(super) always: &'a [&'static str],
    pub(super) done: Mutex<BTreeMap<&'static str, usize>>,
    pub(super) violations: Mutex<Vec<Violation>>,
}

impl Nemesis<'_> {
    /// Goes on until all tellers are done, and what must happen has happened or is late.
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
        let (tell_over, over) = watch::channel(false);
        let tellers = async {
            let done = self.to_tellers(tellers, until).await;
            tell_over.send_replace(true);
            done
        };
        if self.loses {
            // A loss that has begun is written down.
            let both = async { tokio::join!(tellers, self.lose(shards, over)).0 };
            return tokio::select! {
                done = both => done,
                () = self.sweep() => unreachable!("it goes on"),
            };
        }
        let to_shards = shards.iter_mut().enumerate();
        let to_shards = to_shards.map(|(number, shard)| self.to_shard(number, shard, over.clone()));
        let to_shards = futures_util::future::join_all(to_shards);
        // A handover that has begun is written down.
        let both = async { tokio::join!(tellers, to_shards).0 };
        let vanished = async {
            if let Some(visitors) = self.visitors {
                visitors.vanish().await;
                self.did_often("accounts that vanished", VANISH.len());
            }
        }
        .shared();
        let come = async {
            vanished.clone().await;
            if let Some(visitors) = self.visitors {
                visitors.come().await;
                self.did_often(CAME, STAY.len());
            }
            pending::<()>().await;
        };
        let to_ring = async {
            // No slot moves before.
            vanished.clone().await;
            self.to_ring(ring, until).await
        };
        tokio::select! {
            done = both => done,
            failed = to_ring => failed,
            () = come => unreachable!("it goes on"),
            () = self.resegment() => unreachable!("it goes on"),
            () = self.sweep() => unreachable!("it goes on"),
            () = self.look() => unreachable!("it goes on"),
            () = self.crowd() => unreachable!("it goes on"),
        }
    }

    /// One shard after the other suffers; some restart with nothing, or from older files, and that is accepted. Until
    /// it is over.
    async fn lose(&self, shards: &mut [Shard], mut over: watch::Receiver<bool>) {
        let mut random = self.random(103);
        let shards = &mut shards[..SHARDS];
        loop {
            for trouble in Trouble::ALL {
                self.copy(shards);
                if is_over(&mut over, random.random_range(LOSSES_APART)).await {
                    return;
                }
                let chosen = random.random_range(0..shards.len());
                let lasts = random.random_range(SUFFERS);
                match trouble {
                    trouble if trouble.is_of_replicas() => {
                        if self.may_leave_behind(trouble, chosen) {
                            let lasts = random.random_range(LEFT_BEHIND);
                            let left = shards[chosen].leave_behind(trouble, lasts).await;
                            self.went_back(left, &shards[chosen]).await;
                            self.did(trouble.as_str());
                        }
                        continue;
                    }
                    Trouble::Kill => {
                        self.forget(&mut shards[chosen]).await;
                        continue;
                    }
                    // Their older files are other ones then.
                    Trouble::Rewrite => self.resegment_often(shards, &mut random).await,
                    trouble => {
                        shards[chosen].suffer(trouble, lasts).await;
                        self.did(trouble.as_str());
                    }
                }
                if self.goes_back {
                    self.go_back(&mut shards[chosen], &mut random).await;
                }
            }
        }
    }

    async fn forget(&self, shard: &mut Shard) {
        for (name, value) in shard.forget().await {
            if let Some(account) = account_of(name.as_bytes(), self.desk.accounts.len()) {
                self.lost.lock()[account].gone += value;
            }
        }
        self.desk.accept(LOSING_TERMS, SEGMENTS).await;
        self.did("shards restarted with nothing, and the loss accepted");
    }

    /// Some accounts get several layouts in a short time, between copies of the shards' files.
    async fn resegment_often(&self, shards: &mut [Shard], random: &mut StdRng) {
        let mut accounts: Vec<_> = self.desk.accounts.iter().collect();
        accounts.shuffle(random);
        for _ in 0..LAYOUTS_AT_ONCE {
            for account in &accounts[..RESEGMENTED_AT_ONCE] {
                let segments = random.random_range(1..=SEGMENTS_MAX);
                // An account that lost something gets no layout.
                if account.resegment(segments).await.is_ok() {
                    self.did("resegmented");
                }
            }
            self.copy(shards);
        }
    }

    /// Keeps copies of the shards' files, if they are to go back.
    fn copy(&self, shards: &mut [Shard]) {
        if self.goes_back {
            shards.iter_mut().for_each(Shard::copy);
        }
    }

    async fn go_back(&self, shard: &mut Shard, random: &mut StdRng) {
        if let Some(left) = shard.go_back(COPIES_MAX, random.random()).await {
            self.went_back(left, shard).await;
            self.did("shards restarted from older files");
        }
    }

    /// Writes down what a shard forgot, and accepts that.
    async fn went_back(&self, left: LeftBehind, shard: &Shard) {
        let tails = Tail::of(&left.commands, self.desk.accounts.len());
        for (account, tail) in &tails {
            let mut lost = self.lost.lock();
            let lost = &mut lost[*account];
            lost.went_back = true;
            lost.lent += tail.lent;
            lost.forgotten.extend(&tail.times);
            self.did_often("records that were forgotten", tail.times.len());
            self.did_often("loans that were forgotten", tail.loans);
            self.did_often("channels that forgot two loans or more", tail.long_channels);
        }
        self.desk.accept(LOSING_TERMS, SEGMENTS).await;
        // An address may lead to a replica for so short a time that no client finds it: nothing is lost.
        if !left.commands.is_empty() {
            self.must_say_so(&left.losses, shard).await;
        }
        let until_ns = BootClock.now().as_nanos();
        for (account, tail) in tails {
            if let Some(from_ms) = tail.layout_from_ms {
                let layout = ForgottenLayout { from_ms, until_ns };
                self.lost.lock()[account].layouts.push(layout);
                self.did("accounts with segments that forgot a layout");
            }
        }
    }

    /// Each segment that went back counts a loss since it was asked for the first time. This process may be the last to
    /// learn that the shard changed its life and is armed anew, so it accepts until then.
    async fn must_say_so(&self, before: &[(String, u64)], shard: &Shard) {
        let until = Instant::now() + SAYS_SO_WITHIN;
        let silent = loop {
            let after = shard.in_segments("losses").await;
            let accepted = before.iter().filter(|(name, _)| !latches::owns(name));
            let silent = accepted.filter(|segment| after.contains(segment));
            let silent: Vec<_> = silent.collect();
            if silent.is_empty() || Instant::now() > until {
                break silent;
            }
            sleep(DONE_POLL).await;
            self.desk.accept(LOSING_TERMS, SEGMENTS).await;
        };
        let silent = silent.into_iter().map(|(name, losses)| Violation {
            rule: Rule::Sound,
            told: format!("{name} went back, and says that it lost something {losses} times"),
        });
        self.violations.lock().extend(silent);
    }

    fn random(&self, number: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed ^ number << 56)
    }

    fn did(&self, what: &'static str) {
        self.did_often(what, 1);
    }

    fn did_often(&self, what: &'static str, times: usize) {
        *self.done.lock().entry(what).or_default() += times;
    }

    fn has_done(&self, what: &str) -> bool {
        self.done.lock().contains_key(what)
    }

    /// Until it is over.
    async fn to_shard(&self, number: usize, shard: &mut Shard, mut over: watch::Receiver<bool>) {
        let mut random = self.random(1 + number as u64);
        let mut troubles = Trouble::ALL;
        // So that each kind happens in a short run.
        let mut first = Some(Trouble::OF_REPLICAS[number]);
        loop {
            troubles.shuffle(&mut random);
            for trouble in troubles {
                if is_over(&mut over, random.random_range(ALONE)).await {
                    return;
                }
                let due = first.take_if(|first| self.may_leave_behind(*first, number));
                let trouble = due.unwrap_or(trouble);
                if !trouble.is_of_replicas() {
                    let lasts = random.random_range(SUFFERS);
                    shard.suffer(trouble, lasts).await;
                } else if self.may_leave_behind(trouble, number) {
                    let lasts = random.random_range(LEFT_BEHIND);
                    self.hand_over(shard, trouble, lasts).await;
                } else {
                    continue;
                }
                self.did(trouble.as_str());
            }
        }
    }

    /// Whether a shard may leave its replica behind now. First accounts vanish, which must not be accepted as a loss; and a
    /// segment moves with its blocks of ids, which it drops once its doubt is accepted.
    fn may_leave_behind(&self, trouble: Trouble, shard: usize) -> bool {
        let before = [CAME, CROWD_MOVED];
        let mut before = before.iter().filter(|what| self.always.contains(what));
        // Nothing tells that the record of the topology is an older one, where its home comes back.
        let may_come_back = trouble != Trouble::Retarget || shard != HOME;
        self.fails_over && may_come_back && before.all(|what| self.has_done(what))
    }

    async fn hand_over(&self, shard: &mut Shard, trouble: Trouble, lasts: Duration) {
        let from_ns = BootClock.now().as_nanos();
        shard.leave_behind(trouble, lasts).await;
        let over_ns = BootClock.now().as_nanos();
        self.desk.accept_doubt().await;
        let mark_ms = BootClock.unix().as_millis() as u64 + TERMS.skew_ms;
        self.handovers.lock().push(Handover {
            from_ns,
            over_ns,
            mark_ms,
        });
    }

    /// Ends only if it fails.
    async fn to_ring(&self, ring: Option<&mut Resizes>, until: Instant) -> io::Result<()> {
        let Some(ring) = ring else {
            return pending().await;
        };
        let mut random = self.random(102);
        let mut packed: Option<Packed> = None;
        loop {
            sleep(random.random_range(RING_RESTS)).await;
            // Chosen resizes may never move it.
            let moves = packed.filter(|_| !self.has_done(CROWD_MOVED));
            let slot = moves.map(|packed| packed.slot);
            if ring.one(&mut random, slot, until).await? {
                self.did("movers killed");
            }
            self.did("resizes of the ring");
            let Some(crowd) = &self.crowd else { continue };
            let found = crowd.packed_at(ring.urls()).await.or(packed);
            if packed.is_some() && found != packed {
                self.did(CROWD_MOVED);
            }
            packed = found;
        }
    }

    /// Many ids come into one segment, and some of them again.
    async fn crowd(&self) {
        let Some(crowd) = &self.crowd else {
            return pending().await;
        };
        let orders = crowd.fill().await;
        self.did_often("ids that one segment remembers", orders.len());
        crowd.repeat(&orders, self.random(104)).await;
    }

    async fn to_tellers(&self, tellers: &mut Tellers, until: Instant) -> io::Result<()> {
        let mut random = self.random(100);
        let mut next = Instant::now() + random.random_range(FIRST_ALONE);
        while !tellers.are_done().await? {
            if Instant::now() > until {
                return Err(io::Error::other(
                    "the tellers take too long: see their logs",
                ));
            }
            if Instant::now() > next {
                let alone = match tellers.kill_one(random.random()).await? {
                    true => TELLERS_ALONE,
                    false => FIRST_ALONE,
                };
                self.did("tellers killed");
                next = Instant::now() + random.random_range(alone);
            }
            sleep(DONE_POLL).await;
        }
        let happens = async {
            while !self.always.iter().all(|what| self.has_done(what)) {
                sleep(DONE_POLL).await;
            }
        };
        // The report tells what has not happened.
        let _ = timeout(HAPPENS_WITHIN, happens).await;
        Ok(())
    }

    async fn resegment(&self) {
        let mut random = self.random(101);
        let mut times = [0; ACCOUNTS];
        loop {
            let account = random.random_range(0..times.len());
            sleep(RESEGMENT_EVERY).await;
            for _ in 0..random.random_range(1..=LAYOUTS_AT_ONCE) {
                let segments = random.random_range(1..=SEGMENTS_MAX);
                if times[account] < RESEGMENTED_MAX
                    // Whatever is in its way, the next one finishes the plan it may have left.
                    && self.desk.accounts[account].resegment(segments).await.is_ok()
                {
                    times[account] += 1;
                    self.did("resegmented");
                }
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
                    let is_marked = view.doubtful || view.losses > 0;
                    view.value < 0 || view.held < 0 || (is_marked && !self.fails_over)
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

/// Waits for so long; whether all is over meanwhile.
async fn is_over(over: &mut watch::Receiver<bool>, at_most: Duration) -> bool {
    timeout(at_most, over.wait_for(|over| *over)).await.is_ok()
}
