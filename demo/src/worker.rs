//! A worker that deducts coins.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use rand::{RngExt, rngs::StdRng};
use ringfence_client::{AcquireError, Client, Clock, ReleaseAnswer, Token};
use tokio_util::sync::CancellationToken;

use super::{
    bank::{Bank, BankError, Deduction, OpId, Verdict},
    locks::{Key, Locks},
    phases::Phases,
    tally::{Tally, record},
    zipf::Zipf,
};

/// Most deductions in one run: the journal is kept in memory for the audit.
pub(super) const DEDUCTIONS_MAX: u64 = 8_000_000;

/// Most coins in one deduction.
const AMOUNT_MAX: i64 = 3;

/// The state that all workers of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) bank: Arc<dyn Bank>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) zipf: Zipf,
    pub(super) locks: Locks,
    /// Whether workers lock the accounts. Otherwise each locks its own key: the same work, without exclusion.
    pub(super) exclusive: bool,
    /// The signal to stop: a worker that holds a lock finishes first.
    pub(super) stop: CancellationToken,
    /// Receives the counts.
    pub(super) phases: Phases,
    /// Deductions accepted so far.
    pub(super) deductions: AtomicU64,
}

/// The reason why a worker, and with it the run, failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    /// No lock can be granted.
    #[error("cannot lock account {account}")]
    Lock {
        /// The lock.
        account: u32,
        /// The cause.
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
    client: Client,
    deductions: u32,
    shared: Arc<Shared>,
    random: StdRng,
    /// The part of the run in which the present deduction began.
    phase: usize,
    /// Its counts that are not reported yet.
    tally: Tally,
}

impl Worker {
    /// A worker that locks with `client` and draws its accounts from `random`.
    pub(super) fn new(number: u32, client: Client, shared: Arc<Shared>, random: StdRng) -> Self {
        Self {
            number,
            client,
            deductions: 0,
            phase: shared.phases.latest(),
            shared,
            random,
            tally: Tally::new(),
        }
    }

    /// Deducts until told to stop. If it cannot go on, everybody is told.
    pub(super) async fn work(mut self) -> Result<(), WorkError> {
        while !self.shared.stop.is_cancelled() {
            if self.phase != self.shared.phases.latest() {
                self.tell();
            }
            let account = self.shared.zipf.draw(&mut self.random);
            let amount = self.random.random_range(1..=AMOUNT_MAX);
            if let Err(error) = self.deduct_under_lock(account, amount).await {
                self.shared.stop.cancel();
                return Err(error);
            }
        }
        self.tell();
        Ok(())
    }

    /// Tells what it has counted.
    fn tell(&mut self) {
        let phases = &self.shared.phases;
        let counted = std::mem::replace(&mut self.tally, Tally::new());
        phases.add(self.phase, &counted);
        self.phase = phases.latest();
    }

    async fn deduct_under_lock(&mut self, account: u32, amount: i64) -> Result<(), WorkError> {
        let Shared {
            clock,
            locks,
            stop,
            exclusive,
            ..
        } = &*self.shared.clone();
        let key = match exclusive {
            true => Key::Account(account),
            false => Key::Worker(self.number),
        };
        let asked = clock.now();
        let acquired = stop
            .run_until_cancelled(locks.acquire(&self.client, key))
            .await;
        let Some(acquired) = acquired else {
            return Ok(());
        };
        let guard = acquired.map_err(|source| WorkError::Lock { account, source })?;
        let granted = clock.now();
        // The tokens of different locks cannot be compared.
        let token = exclusive.then(|| guard.token());
        if self.deduct(account, amount, token).await? {
            self.accepted(key);
        }
        if guard.release().await == ReleaseAnswer::Lost {
            self.tally.locks_lost += 1;
        }
        record(&mut self.tally.wait_us, asked, granted);
        let given_back = clock.now();
        record(&mut self.tally.hold_us, granted, given_back);
        record(&mut self.tally.whole_us, asked, given_back);
        Ok(())
    }

    /// Reads, subtracts, writes: right only if nobody else does so meanwhile. Answers whether the bank accepted it.
    async fn deduct(
        &mut self,
        account: u32,
        amount: i64,
        token: Option<Token>,
    ) -> Result<bool, BankError> {
        let shared = self.shared.clone();
        let before = shared.bank.read(account).await?;
        if before < amount {
            self.tally.refused_empty += 1;
            return Ok(false);
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
        let verdict = shared.bank.write(deduction).await?;
        self.tally.fenced += u64::from(verdict == Verdict::Fenced);
        Ok(verdict == Verdict::Accepted)
    }

    /// Counts a deduction made under the lock called `key`.
    fn accepted(&mut self, key: Key) {
        let shard = self.shared.locks.shard_of(&self.client, key);
        *self.tally.by_shard.entry(shard).or_default() += 1;
        if self.shared.deductions.fetch_add(1, Relaxed) + 1 == DEDUCTIONS_MAX {
            self.shared.stop.cancel();
        }
    }
}
