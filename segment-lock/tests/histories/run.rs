//! A history, from its plan.

use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use futures_util::future::join_all;
use parking_lot::Mutex;
use ringfence_segment_lock::{
    Account, Amount, At, Counter, CounterError, Effect, HashKey, Leg, Legs, RequestId, Storage,
    Terms,
    memory::Memory,
    segment::{Outcome, Refusal},
};
use tokio::{
    runtime::Builder,
    time::{Duration, Instant, sleep},
};

use super::{
    audit::Whole,
    bank::{Bank, Shortcut},
    plan::{END_MS, Kind, Plan, Step, Wish},
};

/// When histories begin, in ms since 1970.
const BEGIN_MS: u64 = 1_800_000_000_000;

const TERMS: Terms = Terms {
    idempotency_for_ms: 1500,
    idempotency_at_least_ms: 1000,
    skew_ms: 20,
    ids_max: 10_000,
    ..Terms::in_memory()
};

/// The most that the third account may have.
const ROOM: i64 = 12;

/// After this, every request is older than answers are remembered.
const OLD: Duration = Duration::from_millis(2000);

/// What was seen of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) violation: Option<String>,
    pub(crate) reached: BTreeMap<&'static str, usize>,
    pub(crate) requests: usize,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        for (what, count) in &other.reached {
            *self.reached.entry(what).or_default() += count;
        }
    }
}

/// Plays it out.
pub(crate) fn history(plan: &Plan, shortcut: Option<Shortcut>) -> Seen {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = World::new(plan, shortcut).await;
        world.play().await;
        world.end().await;
        let audit = world.bank.audit.lock();
        Seen {
            violation: audit.violation.clone(),
            reached: audit.reached.clone(),
            requests: audit.now(),
        }
    })
}

struct World<'a> {
    plan: &'a Plan,
    bank: Arc<Bank>,
    storage: Storage,
    /// The third only receives legs, and has room for few.
    accounts: [Account; 3],
    begin: Instant,
    /// Created at their first use.
    ids: Mutex<BTreeMap<usize, RequestId>>,
    captures: Mutex<BTreeMap<(usize, bool), RequestId>>,
    /// Whether some attempt at a wish may have taken effect.
    perhaps: Mutex<BTreeMap<usize, bool>>,
}

impl<'a> World<'a> {
    async fn new(plan: &'a Plan, shortcut: Option<Shortcut>) -> Self {
        let begin = Instant::now();
        let now_ms = move || BEGIN_MS + begin.elapsed().as_millis() as u64;
        let memory = Memory::new(Box::new(now_ms));
        let bank = Arc::new(Bank::new(memory, plan.seed, plan.harm, shortcut));
        let storage = Storage::new(Arc::clone(&bank), 1);
        let accounts = ["a", "b", "c"].map(|name| Account::new(name).unwrap());
        Self {
            plan,
            bank,
            storage,
            accounts,
            begin,
            ids: Mutex::default(),
            captures: Mutex::default(),
            perhaps: Mutex::default(),
        }
    }

    fn now_ms(&self) -> u64 {
        BEGIN_MS + self.begin.elapsed().as_millis() as u64
    }

    fn id(&self, wish: usize) -> RequestId {
        let mut ids = self.ids.lock();
        let created = || RequestId::new(self.now_ms(), &format!("wish-{wish}")).unwrap();
        ids.entry(wish).or_insert_with(created).clone()
    }

    fn counters(&self) -> [Counter; 3] {
        let open = |account: &Account| Counter::open(self.storage.clone(), account.clone());
        self.accounts.each_ref().map(open)
    }

    async fn play(&self) {
        for account in &self.accounts {
            while let Err(error) = self.create(account).await {
                assert!(error.is_retryable(), "{error}");
            }
        }
        let clients = self.plan.clients.iter().map(async |steps| {
            let counters = self.counters();
            for &(step, crash) in steps {
                match crash {
                    None => self.step(&counters, step).await,
                    Some(polls) => {
                        if dropped_after(polls, self.step(&counters, step))
                            .await
                            .is_none()
                        {
                            self.bank.audit.lock().reach("dropped");
                            if let Step::Make(wish) = step {
                                self.perhaps.lock().insert(wish, true);
                            }
                        }
                    }
                }
            }
        });
        join_all(clients).await;
    }

    async fn open(&self, account: &Account) -> Result<Counter, CounterError> {
        let storage = self.storage.clone();
        let (terms, segments) = match *account == self.accounts[2] {
            true => {
                let ceiling = Some(ROOM);
                (Terms { ceiling, ..TERMS }, 1)
            }
            false => {
                let floor = -self.plan.credit();
                (Terms { floor, ..TERMS }, self.plan.segments)
            }
        };
        Counter::create(storage, account.clone(), terms, segments).await
    }

    /// Empties the account, closes it, and deletes it.
    async fn delete(&self, counter: &Counter) {
        let id = |name| RequestId::new(self.now_ms(), name).unwrap();
        if let Ok(balance) = counter.exact_balance().await {
            let amount = i64::try_from(balance.ledger.abs()).map(Amount::new);
            match (amount, balance.ledger > 0) {
                (Ok(Ok(amount)), true) => drop(counter.deduct(&id("emptied"), amount).await),
                (Ok(Ok(amount)), false) => drop(counter.deposit(&id("filled"), amount).await),
                _ => {}
            }
        }
        drop(counter.close().await);
        match counter.delete().await {
            Ok(()) => self.bank.audit.lock().reach("deleted"),
            Err(CounterError::NotEmpty { .. }) => self.bank.audit.lock().reach("not empty"),
            Err(error) => self.check(&error),
        }
    }

    async fn create(&self, account: &Account) -> Result<(), CounterError> {
        let counter = self.open(account).await?;
        if self.plan.credit() > 0 || *account == self.accounts[2] {
            return Ok(());
        }
        let Ok(funds) = Amount::new(self.plan.funds) else {
            return Ok(());
        };
        let id = RequestId::new(BEGIN_MS, "funds").unwrap();
        counter.deposit(&id, funds).await.map(drop)
    }

    async fn step(&self, counters: &[Counter; 3], step: Step) {
        match step {
            Step::Make(wish) => {
                let _ = self.make(counters, wish).await;
            }
            Step::Confirm(wish) => drop(self.counter(counters, wish).confirm(&self.id(wish)).await),
            Step::Cancel(wish) => drop(self.counter(counters, wish).cancel(&self.id(wish)).await),
            Step::Capture(wish, both) => self.capture(counters, wish, both).await,
            Step::Exact(account) => self.exact(&counters[account]).await,
            Step::Resegment(account, segments) => {
                match counters[account].resegment(segments).await {
                    Ok(()) => self.bank.audit.lock().reach("resegmented"),
                    Err(error) => self.check(&error),
                }
            }
            Step::Sweep(account) => drop(counters[account].sweep().await),
            Step::Close(account) => drop(counters[account].close().await),
            Step::Delete(account) => self.delete(&counters[account]).await,
            Step::Create(account) => match self.open(&self.accounts[account]).await {
                Ok(_) => self.bank.audit.lock().reach("created again"),
                Err(error) => self.check(&error),
            },
            Step::Lose(account, index) => self.bank.lose(&At {
                account: self.accounts[account].clone(),
                index,
                place: 0,
                is_replicated: false,
                hash_key: HashKey::default(),
            }),
            Step::Accept(account) => {
                if counters[account].accept().await.is_ok() {
                    self.bank.audit.lock().reach("accepted");
                }
            }
            Step::Wait(ms) => sleep(Duration::from_millis(ms)).await,
        }
    }

    fn counter<'c>(&self, counters: &'c [Counter; 3], wish: usize) -> &'c Counter {
        &counters[self.plan.wishes[wish].account]
    }

    /// What the other accounts get of a wish, or only the third one.
    fn legs(&self, wish: usize, both: bool) -> Legs {
        let Wish {
            account, amount, ..
        } = self.plan.wishes[wish];
        let leg = |to: usize, amount| Leg {
            to: self.accounts[to].clone(),
            amount: Amount::new(amount).unwrap(),
        };
        let third = leg(2, amount / 2 + 1);
        match both {
            true => Legs::new(vec![leg(1 - account, 1), third]).unwrap(),
            false => Legs::new(vec![third]).unwrap(),
        }
    }

    async fn capture(&self, counters: &[Counter; 3], wish: usize, both: bool) {
        let created = || RequestId::new(self.now_ms(), &format!("capture-{wish}-{both}")).unwrap();
        let capture = {
            let mut captures = self.captures.lock();
            captures.entry((wish, both)).or_insert_with(created).clone()
        };
        let (id, legs) = (self.id(wish), self.legs(wish, both));
        let counter = self.counter(counters, wish);
        if let Err(error) = counter.capture(&id, &capture, &legs).await {
            self.check(&error);
        }
    }

    async fn make(&self, counters: &[Counter; 3], wish: usize) -> Result<(), CounterError> {
        let Wish {
            account,
            kind,
            amount,
        } = self.plan.wishes[wish];
        let (id, amount) = (self.id(wish), Amount::new(amount).unwrap());
        let (counter, other) = (&counters[account], &counters[1 - account]);
        let made = match kind {
            Kind::Deposit => counter.deposit(&id, amount).await.map(drop),
            Kind::Deduct => counter.deduct(&id, amount).await.map(drop),
            Kind::Reserve(for_ms) => {
                let reserved = counter.reserve(&id, amount, id.time_ms() + for_ms).await;
                reserved.map(drop)
            }
            Kind::Transfer => {
                let made = counter.transfer(&id, amount, other).await;
                let outcome = match made {
                    Ok(_) => Some(Outcome::Credited),
                    Err(CounterError::TransferRefused { .. }) => Some(Outcome::Refused),
                    _ => None,
                };
                if let Some(outcome) = outcome {
                    self.bank
                        .audit
                        .lock()
                        .outcome(counter.account(), &id, outcome);
                }
                made.map(drop)
            }
            Kind::Legs => {
                let made = counter.transfer_legs(&id, &self.legs(wish, true)).await;
                made.map(drop)
            }
        };
        let nothing = |error: &CounterError| match error {
            // It was sent, and came back.
            CounterError::TransferRefused { .. } => false,
            error => error.effect() == Effect::None,
        };
        let unknown = !made.as_ref().is_err_and(nothing);
        *self.perhaps.lock().entry(wish).or_default() |= unknown;
        if let Err(error) = &made {
            self.check(error);
        }
        made
    }

    async fn exact(&self, counter: &Counter) {
        let begun = self.bank.audit.lock().now();
        match counter.exact_balance().await {
            Ok(balance) => {
                let mut audit = self.bank.audit.lock();
                let credit = match *counter.account() == self.accounts[2] {
                    true => 0,
                    false => self.plan.credit(),
                };
                let ledger = balance.available + balance.held - i128::from(credit);
                if balance.ledger != ledger {
                    audit.violated(|| format!("{balance:?} has not the ledger balance {ledger}"));
                }
                let answered = Whole {
                    available: balance.available,
                    held: balance.held,
                };
                audit.exact(counter.account(), begun, answered);
            }
            Err(error) => self.check(&error),
        }
    }

    /// Only what can happen is answered.
    fn check(&self, error: &CounterError) {
        let expected = matches!(
            error,
            CounterError::Insufficient
                | CounterError::Cancelled
                | CounterError::UnknownReservation
                | CounterError::TransferRefused { .. }
                | CounterError::TransferUnfinished { .. }
                | CounterError::Storage(_)
                | CounterError::Contended { .. }
                | CounterError::NoAccount { .. }
                | CounterError::NoDestination { .. }
                | CounterError::Lost { .. }
                | CounterError::Manifest(_)
                | CounterError::Refused(
                    // A replacement is in doubt until it is accepted.
                    Refusal::Doubtful
                        | Refusal::TooOld { .. }
                        | Refusal::IdExpired { .. }
                        // The segments of an account that is deleted remain for a while.
                        | Refusal::Busy { .. }
                        | Refusal::Closed
                        | Refusal::AboveReserved { .. }
                        | Refusal::Conflict
                )
        );
        if !expected {
            self.bank.audit.lock().violated(|| format!("{error:?}"));
        }
    }

    /// Once nothing disturbs it any more, everything begun can be finished, and is.
    async fn end(&self) {
        self.bank.heal();
        if self.bank.audit.lock().violation.is_some() {
            return;
        }
        let counters = self.counters();
        for account in &self.accounts {
            while let Err(error) = self.open(account).await {
                match error {
                    CounterError::Lost { .. } | CounterError::Refused(Refusal::Doubtful) => break,
                    CounterError::Refused(Refusal::Busy { .. }) => {
                        sleep(Duration::from_millis(END_MS)).await;
                    }
                    error => panic!("{error:?}"),
                }
            }
        }
        for counter in &counters {
            drop(counter.accept().await.unwrap());
        }
        if self.plan.ages {
            sleep(OLD).await;
            self.bank.purge().await;
        }
        let begun: Vec<usize> = self.ids.lock().keys().copied().collect();
        for wish in begun {
            let never = self.perhaps.lock().get(&wish) == Some(&false);
            let account = &self.accounts[self.plan.wishes[wish].account];
            let id = self.id(wish);
            let took = self.bank.audit.lock().took_effect(account, &id);
            if never && took && self.plan.harm.2 == 0 {
                self.bank
                    .audit
                    .lock()
                    .violated(|| format!("wish {wish} took effect after all"));
            }
            self.finish(&counters, wish).await;
        }
        // Promises on which nobody decided are taken back after a minute.
        sleep(Duration::from_millis(END_MS)).await;
        for counter in &counters {
            let swept = counter.sweep().await.unwrap();
            if let Some(error) = swept.errors.first() {
                self.bank
                    .audit
                    .lock()
                    .violated(|| format!("a sweep: {error:?}"));
            }
        }
        for counter in &counters {
            drop(counter.sweep().await);
            self.exact(counter).await;
        }
        self.bank.finished();
    }

    async fn finish(&self, counters: &[Counter; 3], wish: usize) {
        let answered = match self.make(counters, wish).await {
            Ok(()) => true,
            Err(error) => !error.is_retryable(),
        };
        if !answered {
            self.bank
                .audit
                .lock()
                .violated(|| format!("wish {wish} is never answered"));
        }
    }
}

async fn dropped_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}
