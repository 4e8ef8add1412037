//! Somebody who deducts coins.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use rand::{RngExt, rngs::StdRng};
use ringfence_client::{AcquireError, Client, Clock, Instant, ReleaseAnswer, Token};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    bank::{Bank, BankError, Deduction, OpId, Verdict},
    locks::Locks,
    zipf::Zipf,
};

/// Deductions in one run, at most: the journal is kept in memory for the audit.
const DEDUCTIONS_MAX: u64 = 8_000_000;

/// Coins in one deduction, at most.
const AMOUNT_MAX: i64 = 3;

/// Between reading and writing, where no lock is held: what waiting for a server takes, so that
/// somebody else is sure to come in between.
const UNLOCKED_PAUSE: Duration = Duration::from_millis(1);

/// Longer waits and holds are counted as this long.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// What all workers of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) bank: Arc<dyn Bank>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) zipf: Zipf,
    pub(super) locks: Locks,
    /// Whether to take the locks.
    pub(super) locked: bool,
    /// Says stop: whoever holds a lock finishes first.
    pub(super) stop: CancellationToken,
    /// Deductions accepted so far.
    pub(super) deductions: AtomicU64,
}

/// Why a worker gave up, and with it the run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    /// It will never get a lock.
    #[error("cannot lock account {account}")]
    Lock {
        /// Which one it wanted.
        account: u32,
        /// Why.
        source: AcquireError,
    },
    /// The bank does not answer.
    #[error(transparent)]
    Bank(#[from] BankError),
}

/// One worker.
#[derive(Debug)]
pub(super) struct Worker {
    number: u32,
    deductions: u32,
    shared: Arc<Shared>,
    random: StdRng,
    tally: Tally,
}

/// What workers count and measure.
#[derive(Debug)]
pub(super) struct Tally {
    /// Deductions that found no coins.
    pub(super) refused_empty: u64,
    /// Deductions that the bank refused for their token.
    pub(super) fenced: u64,
    /// Locks that were no longer held when they were to be given back.
    pub(super) locks_lost: u64,
    /// Deductions by the shard of their lock.
    pub(super) by_shard: Vec<u64>,
    /// From asking for a lock to its grant, in µs.
    pub(super) wait_us: Histogram<u64>,
    /// From its grant until it was given back, in µs.
    pub(super) hold_us: Histogram<u64>,
}

impl Worker {
    /// A worker that draws its accounts from `random`.
    pub(super) fn new(number: u32, shared: Arc<Shared>, random: StdRng) -> Self {
        let tally = Tally::new(shared.locks.shards().len());
        Self {
            number,
            deductions: 0,
            shared,
            random,
            tally,
        }
    }

    /// Deducts until told to stop. If it cannot go on, everybody is told.
    pub(super) async fn work(mut self) -> Result<Tally, WorkError> {
        while !self.shared.stop.is_cancelled() {
            let account = self.shared.zipf.draw(&mut self.random);
            let amount = self.random.random_range(1..=AMOUNT_MAX);
            let done = if self.shared.locked {
                self.deduct_under_lock(account, amount).await
            } else {
                self.deduct(account, amount, None).await.map_err(Into::into)
            };
            if let Err(error) = done {
                self.shared.stop.cancel();
                return Err(error);
            }
        }
        Ok(self.tally)
    }

    async fn deduct_under_lock(&mut self, account: u32, amount: i64) -> Result<(), WorkError> {
        let Shared {
            client,
            clock,
            locks,
            stop,
            ..
        } = &*self.shared.clone();
        let asked = clock.now();
        let acquired = stop
            .run_until_cancelled(locks.acquire(client, account))
            .await;
        let Some(acquired) = acquired else {
            return Ok(());
        };
        let guard = acquired.map_err(|source| WorkError::Lock { account, source })?;
        let granted = clock.now();
        self.deduct(account, amount, Some(guard.token())).await?;
        if guard.release().await == ReleaseAnswer::Lost {
            self.tally.locks_lost += 1;
        }
        record(&mut self.tally.wait_us, asked, granted);
        record(&mut self.tally.hold_us, granted, clock.now());
        Ok(())
    }

    /// Reads, subtracts, writes: right only if nobody else does so meanwhile.
    async fn deduct(
        &mut self,
        account: u32,
        amount: i64,
        token: Option<Token>,
    ) -> Result<(), BankError> {
        let shared = self.shared.clone();
        let before = shared.bank.read(account).await?;
        if before < amount {
            self.tally.refused_empty += 1;
            return Ok(());
        }
        if token.is_none() {
            sleep(UNLOCKED_PAUSE).await;
        }
        self.deductions += 1;
        let op = OpId {
            worker: self.number,
            number: self.deductions,
        };
        let deduction = Deduction {
            account,
            op,
            token,
            before,
            after: before - amount,
        };
        match shared.bank.write(deduction).await? {
            Verdict::Accepted => self.accepted(account),
            Verdict::Fenced => self.tally.fenced += 1,
        }
        Ok(())
    }

    fn accepted(&mut self, account: u32) {
        self.tally.by_shard[self.shared.locks.shard_of(account)] += 1;
        if self.shared.deductions.fetch_add(1, Relaxed) + 1 == DEDUCTIONS_MAX {
            tracing::warn!(
                "stopping early: {DEDUCTIONS_MAX} deductions are as many as can be audited"
            );
            self.shared.stop.cancel();
        }
    }
}

impl Tally {
    /// Nothing yet.
    pub(super) fn new(shards: usize) -> Self {
        let histogram = || Histogram::new(3).expect("3 digits are within its bounds");
        Self {
            refused_empty: 0,
            fenced: 0,
            locks_lost: 0,
            by_shard: vec![0; shards],
            wait_us: histogram(),
            hold_us: histogram(),
        }
    }

    /// Adds what `other` counted.
    pub(super) fn add(&mut self, other: &Self) {
        self.refused_empty += other.refused_empty;
        self.fenced += other.fenced;
        self.locks_lost += other.locks_lost;
        self.by_shard
            .iter_mut()
            .zip(&other.by_shard)
            .for_each(|(sum, its)| *sum += its);
        self.wait_us += &other.wait_us;
        self.hold_us += &other.hold_us;
    }
}

fn record(histogram: &mut Histogram<u64>, from: Instant, to: Instant) {
    let micros = to.since(from).min(TIME_MAX).as_micros() as u64;
    histogram.record(micros).expect("it grows as it needs to");
}
