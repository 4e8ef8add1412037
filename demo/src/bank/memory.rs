//! A bank in this process, for embedded shards.

use std::{ops::Range, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use rand::{RngExt, rngs::StdRng};
use ringfence_client::Token;
use tokio::{task::yield_now, time::sleep};

use super::{Bank, BankError, Books, Deduction, Verdict};

/// A bank in this process's memory.
#[derive(Debug)]
pub(crate) struct MemoryBank {
    opening: i64,
    state: Mutex<State>,
    distance: Option<Distance>,
}

#[derive(Debug, Default)]
struct State {
    accounts: Vec<Account>,
    journal: Vec<Deduction>,
}

#[derive(Clone, Debug)]
struct Account {
    balance: i64,
    /// The greatest token seen.
    token: Option<Token>,
}

/// The latency of a simulated bank.
#[derive(Debug)]
struct Distance {
    latency: Range<Duration>,
    random: Mutex<StdRng>,
}

impl MemoryBank {
    /// A bank of `accounts` accounts with `opening` coins each.
    pub(crate) fn open(accounts: u32, opening: i64) -> Self {
        let account = Account {
            balance: opening,
            token: None,
        };
        let accounts = vec![account; accounts as usize];
        let state = State {
            accounts,
            journal: Vec::new(),
        };
        Self {
            opening,
            state: Mutex::new(state),
            distance: None,
        }
    }

    /// The same bank, with a time in `latency` for each request and each answer.
    pub(crate) fn far_away(self, latency: Range<Duration>, random: StdRng) -> Self {
        Self {
            distance: Some(Distance {
                latency,
                random: Mutex::new(random),
            }),
            ..self
        }
    }

    /// The way there, or back: other tasks have their turn meanwhile, as with a bank on a server.
    async fn travel(&self) {
        match &self.distance {
            Some(Distance { latency, random }) => {
                let length = random.lock().random_range(latency.clone());
                sleep(length).await;
            }
            None => yield_now().await,
        }
    }
}

#[async_trait]
impl Bank for MemoryBank {
    async fn read(&self, account: u32) -> Result<i64, BankError> {
        self.travel().await;
        let balance = self.state.lock().accounts[account as usize].balance;
        self.travel().await;
        Ok(balance)
    }

    async fn write(&self, deduction: Deduction) -> Result<Verdict, BankError> {
        self.travel().await;
        let verdict = self.state.lock().write(deduction);
        self.travel().await;
        Ok(verdict)
    }

    async fn close(&self) -> Result<Books, BankError> {
        let State { accounts, journal } = std::mem::take(&mut *self.state.lock());
        Ok(Books {
            opening: self.opening,
            balances: accounts.iter().map(|account| account.balance).collect(),
            journal,
        })
    }
}

impl State {
    fn write(&mut self, deduction: Deduction) -> Verdict {
        let account = &mut self.accounts[deduction.account as usize];
        if let Some(token) = deduction.token {
            if account.token.is_some_and(|seen| token < seen) {
                return Verdict::Fenced;
            }
            account.token = Some(token);
        }
        account.balance = deduction.after;
        self.journal.push(deduction);
        Verdict::Accepted
    }
}
