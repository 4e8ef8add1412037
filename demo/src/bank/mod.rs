//! The resource's side: the coins, and the requests about them.

mod memory;
mod redis;

use std::fmt;

use async_trait::async_trait;
use ringfence_client::Token;
use serde::Serialize;

pub(super) use memory::MemoryBank;
pub(super) use redis::RedisBank;

/// Names one deduction: a worker, and a number that it never uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OpId {
    /// The worker that deducts.
    pub(super) worker: u32,
    /// The number of its deduction.
    pub(super) number: u32,
}

impl fmt::Display for OpId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.worker, self.number)
    }
}

impl Serialize for OpId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One deduction: the request, and, once accepted, a line of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deduction {
    /// The account.
    pub(super) account: u32,
    /// The id of the deduction.
    pub(super) op: OpId,
    /// The fencing token of the lock; `None` without a lock.
    pub(super) token: Option<Token>,
    /// The balance that was read.
    pub(super) before: i64,
    /// The balance that is written.
    pub(super) after: i64,
}

/// The bank's answer to a deduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Written, and in the journal.
    Accepted,
    /// Refused: the account has seen a greater token.
    Fenced,
}

/// All of a bank's records, at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Books {
    /// Coins in each account at the beginning.
    pub(super) opening: i64,
    /// Coins in each account at last.
    pub(super) balances: Vec<i64>,
    /// The deductions, each account's in the order they were accepted. They name no other accounts.
    pub(super) journal: Vec<Deduction>,
}

/// Why a bank gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BankError {
    /// The server did not answer, or refused.
    #[error("bank at {address}: {source}")]
    Server {
        /// Where it is, without credentials.
        address: String,
        /// What happened.
        source: ::redis::RedisError,
    },
    /// The server has not what it was given: it came back without, or was flushed.
    #[error(
        "bank at {0}: the balances are lost. Locks survive the empty restart of a server; \
         balances need persistence"
    )]
    Gone(String),
    /// The server has what nobody gave it.
    #[error("bank at {address}: {what} differs from the written value")]
    Malformed {
        /// Where it is, without credentials.
        address: String,
        /// What was read.
        what: String,
    },
}

/// Keeps accounts of coins.
///
/// # Contract
///
/// `write` checks the token, writes the balance and appends to the journal in one step. It writes
/// what it is told: that nobody wrote since `before` was read is for the lock to ensure. Both
/// implementations pass the same tests.
#[async_trait]
pub(super) trait Bank: fmt::Debug + Send + Sync + 'static {
    /// Coins in `account`.
    async fn read(&self, account: u32) -> Result<i64, BankError>;

    /// Writes `deduction`, unless the account has seen a greater token.
    async fn write(&self, deduction: Deduction) -> Result<Verdict, BankError>;

    /// Hands over balances and journal, and keeps nothing, even where it cannot.
    async fn close(&self) -> Result<Books, BankError>;
}

// Keeps it usable as a trait object.
const _: Option<&dyn Bank> = None;

#[cfg(test)]
mod tests;
