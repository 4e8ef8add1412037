//! The contenders: each takes coins in its own way.

mod counter;
mod database;
mod etcd;
mod locked;
mod script;

pub(crate) use counter::fill;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    servers::Servers,
    setup::{How, Setup},
};
use crate::Failure;

/// What everybody has to begin with.
pub(crate) const PUT_IN: i64 = 1_000_000_000_000;

/// How the servers of a set-up are reached, by any process of the bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reach {
    pub(crate) redis: Vec<String>,
    pub(crate) database: String,
}

/// One of so many tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub(crate) number: usize,
    pub(crate) of: usize,
}

/// Something that coins are taken from.
#[async_trait]
pub(crate) trait Account: Send + Sync {
    /// Takes one.
    async fn deduct(&self, taker: Taker) -> Result<(), Failure>;

    /// What is done all the time beside, by one task, while so many others take.
    async fn keep(&self, takers: usize);

    /// How much is left, when nobody takes any more.
    async fn left(&self) -> Result<i128, Failure>;
}

/// An account, and what became of it.
pub(crate) struct Contender {
    pub(crate) setup: Setup,
    pub(crate) account: Arc<dyn Account>,
    pub(crate) reach: Reach,
    pub(crate) taken: Arc<AtomicU64>,
}

/// One for each set-up. As many tasks as each of `tasks` says will take from it, one crowd after the other.
pub(crate) async fn all(
    setups: &[Setup],
    tasks: &[usize],
    servers: &Servers,
) -> Result<Vec<Contender>, Failure> {
    let mut contenders = Vec::new();
    for setup in setups {
        let reach = servers.reach(setup);
        let account = open(setup, tasks, &reach, true).await;
        let account = account.map_err(|error| format!("{setup}: {error}"))?;
        contenders.push(Contender {
            setup: *setup,
            account,
            reach,
            taken: Default::default(),
        });
    }
    Ok(contenders)
}

/// Opens an account of `setup` for each number of tasks; `is_first`: creates it.
pub(crate) async fn open(
    setup: &Setup,
    tasks: &[usize],
    reach: &Reach,
    is_first: bool,
) -> Result<Arc<dyn Account>, Failure> {
    Ok(match setup.how {
        How::Lock | How::HandedOn | How::Segments => {
            Arc::new(locked::Rows::new(setup, reach, is_first).await?)
        }
        How::Alone | How::Counter | How::CounterAgain | How::Logged => {
            Arc::new(counter::Coins::new(setup, tasks, reach, is_first).await?)
        }
        How::Script => Arc::new(script::Script::new(reach, is_first).await?),
        How::Etcd => Arc::new(etcd::Etcd::new(reach, is_first).await?),
        How::PostgreSql => {
            Arc::new(database::PostgreSql::new(setup, tasks, reach, is_first).await?)
        }
        How::MariaDb => Arc::new(database::MariaDb::new(setup, tasks, reach, is_first).await?),
    })
}

/// Compares the remaining coins with the number taken.
///
/// # Errors
///
/// A coin was lost, or made.
pub(crate) async fn audit(contenders: &[Contender]) -> Result<(), Failure> {
    for Contender {
        setup,
        account,
        taken,
        ..
    } in contenders
    {
        let taken = i128::from(taken.load(Relaxed));
        let (left, expected) = (account.left().await?, i128::from(PUT_IN) - taken);
        if left != expected {
            return Err(format!("{setup}: {left} are left, must be {expected}").into());
        }
    }
    println!("audit: every coin of every account is accounted for\n");
    Ok(())
}
