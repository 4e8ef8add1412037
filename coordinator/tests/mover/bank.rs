//! A bank whose accounts move with their slots, and its books.
//!
//! Tellers of several processes change accounts, each change once, however often it takes to get an answer. In the end
//! every account has what the books say, at one shard; and what was done is still known.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_coordinator::{
    ids::{Life, MapVersion},
    name::{LockKey, Namespace},
    random::Random,
    shard::{CounterLink, CounterOp, CounterReply, CounterRequest},
};
use ringfence_ring::{ShardId, SlotCount};
use ringfence_segment_lock::{
    Amount, Caller, Change, Durability, HashKey, RequestId, Terms,
    segment::{
        Cancel, Create, Effect, History, Inspect, Op, Prepare, Refusal, Reply, SegmentView, State,
    },
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{lockers::Ring, stage::FOR_EVER};

/// Accounts, each of one segment and one manifest: some slots have several.
const ACCOUNTS: usize = 40;
/// Whoever changes them.
const TELLERS: usize = 4;
/// Before an answer that sends elsewhere is followed.
const AGAIN: Duration = Duration::from_millis(30);
/// The layout that all accounts have.
const LAYOUT: u64 = 1;

/// What is known of an account for certain.
#[derive(Debug, Default)]
struct Account {
    /// What it has, reserved or not.
    total: i64,
    /// Changes that were made, some of them.
    done: Vec<Op>,
    /// The greatest version of its manifest that anybody saw.
    manifest: u64,
    /// How often it was written, at least.
    swaps: u64,
}

type Books = Arc<Mutex<Vec<Account>>>;

/// Tellers at work.
pub(crate) struct Bank {
    ring: Ring,
    books: Books,
    stop: Arc<AtomicBool>,
    tellers: JoinSet<Duration>,
    /// The longest that a teller waited for an answer; told once they are home.
    pub(crate) longest_wait: Duration,
}

impl Bank {
    /// Opens all accounts and begins to work.
    pub(crate) async fn open(ring: &Ring) -> Self {
        Self::with(ring, Durability::Memory).await
    }

    /// As [`open`](Self::open), with accounts that ask for `durability`.
    pub(crate) async fn with(ring: &Ring, durability: Durability) -> Self {
        let books: Books = Arc::default();
        let mut desk = Desk::new(ring, 0);
        for account in 0..ACCOUNTS {
            desk.open(account, durability).await;
            books.lock().push(Account::default());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut tellers = JoinSet::new();
        for number in 1..=TELLERS {
            let teller = Teller {
                desk: Desk::new(ring, number),
                books: books.clone(),
                stop: stop.clone(),
                durability,
            };
            tellers.spawn(teller.run());
        }
        Self {
            ring: ring.clone(),
            books,
            stop,
            tellers,
            longest_wait: Duration::ZERO,
        }
    }

    /// Ends work, and audits the books: nothing was lost, doubled, or went back.
    pub(crate) async fn close(self) {
        let (books, ring) = (self.books.clone(), self.ring.clone());
        let missing = self.audit().await;
        assert_eq!(missing, 0, "accounts were lost");
        let mut desk = Desk::new(&ring, 0);
        for account in 0..ACCOUNTS {
            let version = desk.manifest(account).await;
            let book = &books.lock()[account];
            let back = version < book.manifest || version < book.swaps;
            assert!(!back, "manifest {account} is {version}: {book:?}");
        }
    }

    /// As [`close`](Self::close), where a shard has lost all it had: what it had may be gone, as a whole.
    pub(crate) async fn close_after_loss(self) {
        self.audit().await;
    }

    /// Lets the tellers go home.
    pub(crate) async fn rest(mut self) -> Self {
        self.stop.store(true, Relaxed);
        while let Some(waited) = timeout(FOR_EVER, self.tellers.join_next())
            .await
            .expect("an end")
        {
            self.longest_wait = self.longest_wait.max(waited.unwrap());
        }
        self
    }

    /// How often each account may have lost something.
    pub(crate) async fn losses(&self) -> Vec<u64> {
        let mut desk = Desk::new(&self.ring, 0);
        let mut losses = Vec::new();
        for account in 0..ACCOUNTS {
            losses.push(desk.view(account).await.unwrap().losses);
        }
        losses
    }

    /// Whether each account is at `shard`.
    pub(crate) async fn at(&self, shard: &ShardId) -> Vec<bool> {
        let table = self.ring.store.load().await.unwrap().table.clone();
        let is_there =
            |account: usize| table.owner(account_key(account, table.slots()).slot()) == shard;
        (0..ACCOUNTS).map(is_there).collect()
    }

    /// Answers how many accounts are gone.
    async fn audit(self) -> usize {
        let bank = self.rest().await;
        let mut desk = Desk::new(&bank.ring, 0);
        let mut missing = 0;
        for account in 0..ACCOUNTS {
            let Some(view) = desk.view(account).await else {
                missing += 1;
                continue;
            };
            let (total, done) = {
                let books = bank.books.lock();
                (books[account].total, books[account].done.clone())
            };
            assert_eq!(view.value + view.held, total, "account {account}: {view:?}");
            let effects = desk.effects(account).await;
            adds_up(&effects, (view.value, view.held));
            for op in done {
                let answer = desk.change(account, op.clone()).await;
                let known = matches!(&answer, Some(Reply::Recorded(..)));
                assert!(known, "account {account}: {op:?} is forgotten: {answer:?}");
            }
            let after = desk.view(account).await.unwrap();
            assert_eq!(
                after.value + after.held,
                total,
                "account {account}: a repeat"
            );
        }
        missing
    }
}

/// Whether the log of a segment is its money: each effect begins where the one before it ended.
pub(crate) fn adds_up(effects: &[Effect], money: (i64, i64)) {
    let mut sum = (0, 0);
    for effect in effects {
        let (signs, amount) = (effect.kind.signs(), effect.amount.get());
        sum = (sum.0 + signs.0 * amount, sum.1 + signs.1 * amount);
        assert_eq!((effect.value, effect.held), sum, "{effect:?}");
    }
    assert_eq!(sum, money);
    let mut pairs = effects.windows(2);
    assert!(pairs.all(|pair| pair[0].number < pair[1].number && pair[0].at_ms <= pair[1].at_ms));
}

/// The key of an account.
pub(crate) fn account_key(account: usize, slots: SlotCount) -> LockKey {
    let name = format!("account/{account}");
    LockKey::new(&Namespace::default(), name.as_bytes(), slots).unwrap()
}

/// Where one asks.
pub(crate) struct Desk {
    ring: Ring,
    number: usize,
    /// By the life too: who is taken in later may have the id of one that left.
    links: BTreeMap<(ShardId, Life), Box<dyn CounterLink>>,
    random: Random,
    sequence: u64,
    pub(crate) longest_wait: Duration,
}

impl Desk {
    pub(crate) fn new(ring: &Ring, number: usize) -> Self {
        Self {
            ring: ring.clone(),
            number,
            links: BTreeMap::new(),
            random: Random::seeded(number as u64),
            sequence: 0,
            longest_wait: Duration::ZERO,
        }
    }

    fn now_ms(&self) -> u64 {
        self.ring.clock.unix().as_millis() as u64
    }

    pub(crate) async fn open(&mut self, account: usize, durability: Durability) {
        let terms = Terms::new(durability);
        let prepare = Prepare {
            generation: LAYOUT,
            base: 0,
            from_ms: 0,
            closed: false,
            mark_ms: 0,
            manifest: "layout".into(),
        };
        let create = CounterOp::Segment(
            Create {
                prepare,
                terms,
                credit: 0,
                planned_ms: self.now_ms(),
            }
            .into(),
        );
        let reply = self.ask(&format!("account/{account}"), create).await;
        assert_eq!(reply, CounterReply::Segment(Ok(Reply::Prepared)));
    }

    /// What an account has; `None` if it is gone.
    async fn view(&mut self, account: usize) -> Option<SegmentView> {
        let inspect = CounterOp::Segment(Inspect.into());
        match self.ask(&format!("account/{account}"), inspect).await {
            CounterReply::Segment(Ok(Reply::View(view))) => Some(*view),
            CounterReply::Segment(Err(Refusal::Missing)) => None,
            other => panic!("account {account}: {other:?}"),
        }
    }

    /// All that its log has.
    pub(crate) async fn effects(&mut self, account: usize) -> Vec<Effect> {
        let mut effects: Vec<Effect> = Vec::new();
        loop {
            let history = History {
                after: effects.last().map_or(0, |effect| effect.number),
                since_ms: 0,
                most: 500,
            };
            let history = CounterOp::Segment(history.into());
            match self.ask(&format!("account/{account}"), history).await {
                CounterReply::Segment(Ok(Reply::History(page))) if page.effects.is_empty() => {
                    return effects;
                }
                CounterReply::Segment(Ok(Reply::History(page))) => effects.extend(page.effects),
                other => panic!("account {account}: {other:?}"),
            }
        }
    }

    /// The version of an account's manifest; 0 if there is none.
    async fn manifest(&mut self, account: usize) -> u64 {
        let name = format!("manifest/{account}");
        match self.ask(&name, CounterOp::ReadManifest).await {
            CounterReply::Manifest(None) | CounterReply::NeverMade => 0,
            CounterReply::Manifest(Some((version, text))) => {
                assert_eq!(text, format!("version {version}"));
                version
            }
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Makes a change; `None` if the account is gone.
    pub(crate) async fn change(&mut self, account: usize, op: Op) -> Option<Reply> {
        let op = CounterOp::Segment(op.into());
        match self.ask(&format!("account/{account}"), op).await {
            CounterReply::Segment(Ok(reply)) => Some(reply),
            CounterReply::Segment(Err(Refusal::Missing)) => None,
            other => panic!("account {account}: {other:?}"),
        }
    }

    /// A change that nobody made before.
    fn think_of_one(&mut self) -> Op {
        let time_ms = self.now_ms();
        let amount = Amount::new(i128::from(1 + self.random.below(100))).unwrap();
        let change = match self.random.below(5) {
            0 | 1 => Change::Deposit { amount },
            2 | 3 => Change::Deduct { amount },
            _ => Change::Reserve {
                amount,
                deadline_ms: time_ms + 3_600_000 * 20,
            },
        };
        self.makes(change)
    }

    /// A deposit of 1 that nobody made before.
    pub(crate) fn deposits_one(&mut self) -> Op {
        let amount = Amount::new(1).unwrap();
        self.makes(Change::Deposit { amount })
    }

    /// A reservation of 1 for two hours that nobody made before.
    pub(crate) fn reserves_one(&mut self) -> Op {
        let amount = Amount::new(1).unwrap();
        let deadline_ms = self.now_ms() + 2 * 3_600_000;
        self.makes(Change::Reserve {
            amount,
            deadline_ms,
        })
    }

    /// Gives a reservation back.
    pub(crate) async fn cancel(&mut self, account: usize, reservation: &Op) {
        let Op {
            id,
            generation,
            caller,
            ..
        } = reservation.clone();
        let cancel = CounterOp::Segment(
            Cancel {
                id,
                generation,
                caller,
            }
            .into(),
        );
        let reply = self.ask(&format!("account/{account}"), cancel).await;
        let is_cancelled = matches!(
            reply,
            CounterReply::Segment(Ok(Reply::Recorded(State::Cancelled, _)))
        );
        assert!(is_cancelled, "{reply:?}");
    }

    fn makes(&mut self, change: Change) -> Op {
        self.sequence += 1;
        let (time_ms, number) = (self.now_ms(), self.number);
        Op {
            id: RequestId::new(time_ms, &format!("{number}/{}", self.sequence)).unwrap(),
            change,
            generation: LAYOUT,
            lands: Vec::new(),
            logged: true,
            reference: None,
            caller: Caller {
                process: number as u128,
                call: self.sequence,
            },
        }
    }

    /// Asks until there is an answer: by the record first, and then where it sends one.
    async fn ask(&mut self, name: &str, op: CounterOp) -> CounterReply {
        let asking = async {
            let mut to = None;
            loop {
                match self.ask_once(name, &op, to).await {
                    Some(CounterReply::Moving { .. }) => to = Some(true),
                    Some(CounterReply::Coming { .. }) => to = Some(false),
                    Some(CounterReply::Moved { .. }) | None => to = None,
                    Some(CounterReply::TooFewReplicas { .. } | CounterReply::OutOfMemory) => {}
                    Some(reply) => return reply,
                }
                sleep(AGAIN).await;
            }
        };
        let asked = Instant::now();
        let answer = timeout(FOR_EVER, asking).await.expect("an answer");
        self.longest_wait = self.longest_wait.max(asked.elapsed());
        answer
    }

    /// Asks the shard that has the slot; if it is on its way, the one that it goes `to`, or comes from.
    async fn ask_once(
        &mut self,
        name: &str,
        op: &CounterOp,
        to: Option<bool>,
    ) -> Option<CounterReply> {
        let record = self.ring.store.load().await.ok()?;
        let slots = record.table.slots();
        let key = LockKey::new(&Namespace::default(), name.as_bytes(), slots).unwrap();
        let owner = record.table.owner(key.slot());
        let shard = match (record.migration_of(key.slot()), to) {
            (Some(migration), Some(true)) => &migration.to.0,
            _ => owner,
        };
        let entry = record.shard(shard)?;
        let life = (shard.clone(), entry.life.clone());
        if !self.links.contains_key(&life) {
            let dialled = self.ring.dial.dial(shard, entry).ok()?;
            let link = dialled.connect_counters(None).await.ok()?;
            self.links.insert(life.clone(), link);
        }
        let request = CounterRequest {
            key,
            map: MapVersion::UNKNOWN,
            hash_key: HashKey(7),
            op: op.clone(),
        };
        let link = self.links.get_mut(&life)?;
        match link.call(&[request]).await {
            Ok(mut answers) => answers.replies.pop(),
            Err(_) => {
                self.links.remove(&life);
                None
            }
        }
    }
}

/// Changes accounts, again and again.
struct Teller {
    desk: Desk,
    books: Books,
    stop: Arc<AtomicBool>,
    durability: Durability,
}

impl Teller {
    /// Until it is told to stop, and has made a change; answers how long it waited for an answer at most.
    async fn run(mut self) -> Duration {
        let mut changed = false;
        while !self.stop.load(Relaxed) || !changed {
            let account = self.desk.random.below(ACCOUNTS as u64) as usize;
            changed |= self.change(account).await;
            self.swap_manifest(account).await;
            sleep(Duration::from_millis(self.desk.random.below(600))).await;
        }
        self.desk.longest_wait
    }

    /// Makes a change, some of them twice. Answers whether it was done.
    async fn change(&mut self, account: usize) -> bool {
        let op = self.desk.think_of_one();
        let mut reply = self.desk.change(account, op.clone()).await;
        if self.desk.random.below(4) == 0 && matches!(reply, Some(Reply::Recorded(..))) {
            reply = self.desk.change(account, op.clone()).await;
        }
        let mut books = self.books.lock();
        let book = &mut books[account];
        let amount = op.change.amount().get();
        match (reply, &op.change) {
            (Some(Reply::Recorded(State::Done, _)), Change::Deposit { .. }) => book.total += amount,
            (Some(Reply::Recorded(State::Done, _)), Change::Deduct { .. }) => book.total -= amount,
            (Some(Reply::Recorded(State::Held { .. }, _)), Change::Reserve { .. }) => {}
            (Some(Reply::Short(_)) | None, _) => return false,
            (other, change) => panic!("{change:?}: {other:?}"),
        }
        if book.done.len() < 8 {
            book.done.push(op);
        }
        true
    }

    /// Writes a manifest, which counts its versions.
    async fn swap_manifest(&mut self, account: usize) {
        let name = format!("manifest/{account}");
        let version = self.desk.manifest(account).await;
        let swap = CounterOp::SwapManifest {
            expected: version,
            manifest: format!("version {}", version + 1),
            durability: self.durability,
        };
        let swapped = self.desk.ask(&name, swap).await == CounterReply::Swapped(true);
        let mut books = self.books.lock();
        let book = &mut books[account];
        book.manifest = book.manifest.max(version + u64::from(swapped));
        book.swaps += u64::from(swapped);
    }
}
