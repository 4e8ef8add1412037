//! `ringfence locks list`: every lock that is held.

use std::{collections::BTreeMap, fmt, process::ExitCode};

use ringfence_client::{AcquireError, HeldLock, Locks, LocksPage, Namespace};
use serde::Serialize;

use super::{
    EXIT_CODES, LocksError,
    output::{HolderOutput, Key},
};
use crate::{
    FAILED,
    place::Place,
    ring::{self, RingError},
    say,
    table::{Table, grouped},
};

/// List the held locks, by namespace and key
///
/// Prints one line per lock: namespace, key, shard, label of the holder, fencing token, how long it has been
/// held, time left of the lease, and the number of waiting callers. Each shard is read page by page and serves
/// other clients in between, so the list is no snapshot: a lock that is held throughout is listed;
/// a lock that is acquired or released meanwhile may be missing.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Only the locks of this namespace
    #[arg(long, value_name = "NS", value_parser = Namespace::new)]
    namespace: Option<Namespace>,
    /// List at most N locks; the others are counted
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The first of the locks that are held.
#[derive(Debug, Serialize)]
struct Listed {
    locks: Vec<Lock>,
    /// Held locks that are not listed.
    left_off: u64,
    /// Shards with some or all locks missing from the list.
    unreachable: Vec<Unreachable>,
}

#[derive(Debug, Serialize)]
struct Lock {
    namespace: String,
    #[serde(flatten)]
    key: Key,
    shard: String,
    /// Of a semaphore, or of a read-write lock: the one with the least token.
    holder: HolderOutput,
    /// The other holders.
    others: u32,
    /// Waiting callers, including some that died recently; of more than 128 processes, the processes.
    waiting: u32,
}

#[derive(Debug, Serialize)]
struct Unreachable {
    shard: String,
    error: String,
}

impl Args {
    pub(super) async fn run(&self) -> Result<ExitCode, LocksError> {
        let client = ring::connected(&self.place.named().map_err(RingError::from)?).await?;
        let namespace = self.namespace.as_ref().map(Namespace::as_str);
        let locks = client.locks(namespace).map_err(AcquireError::from)?;
        let listed = Listed::of(locks, self.limit as usize).await;
        client.close().await;
        ring::print(&listed, self.json)?;
        for Unreachable { shard, error } in &listed.unreachable {
            say(&format!("locks of shard {shard} are missing: {error}"));
        }
        if listed.unreachable.is_empty() {
            Ok(ExitCode::SUCCESS)
        } else {
            Ok(ExitCode::from(FAILED))
        }
    }
}

impl Listed {
    /// Visits all locks, and keeps the first `limit`. A lock that a shard lists twice, and that is not kept, is counted
    /// twice.
    async fn of(mut locks: Locks, limit: usize) -> Self {
        let (mut first, mut left_off, mut unreachable) = (BTreeMap::new(), 0, Vec::new());
        while let Some(LocksPage { shard, locks }) = locks.next().await {
            let shard = shard.to_string();
            match locks {
                Ok(locks) => {
                    for lock in locks {
                        let place = (lock.key.namespace().to_owned(), lock.key.key().to_vec());
                        first.insert(place, Lock::new(lock, &shard));
                        if first.len() > limit {
                            first.pop_last();
                            left_off += 1;
                        }
                    }
                }
                Err(error) => unreachable.push(Unreachable {
                    shard,
                    error: error.to_string(),
                }),
            }
        }
        Self {
            locks: first.into_values().collect(),
            left_off,
            unreachable,
        }
    }
}

impl Lock {
    fn new(lock: HeldLock, shard: &str) -> Self {
        Self {
            namespace: lock.key.namespace().to_owned(),
            key: Key::new(lock.key.key()),
            shard: shard.to_owned(),
            holder: HolderOutput::from(&lock.holder),
            others: lock.others,
            waiting: lock.waiting,
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.locks.is_empty() {
            let where_known = if self.unreachable.is_empty() {
                ""
            } else {
                ", as far as is known"
            };
            return writeln!(out, "no lock is held{where_known}");
        }
        let headings = [
            "namespace",
            "key",
            "shard",
            "holder",
            "token",
            "held",
            "left",
            "waiting",
        ];
        let mut table = Table::new(&headings);
        for lock in &self.locks {
            let holder = &lock.holder;
            table.row([
                lock.namespace.clone(),
                lock.key.to_string(),
                lock.shard.clone(),
                match lock.others {
                    0 => holder.label.clone(),
                    others => format!("{} and {others} more", holder.label),
                },
                holder.token.clone(),
                holder.held_for(),
                holder.left(),
                lock.waiting.to_string(),
            ]);
        }
        write!(out, "{table}")?;
        if self.left_off > 0 {
            let left_off = grouped(self.left_off);
            writeln!(out, "\nand {left_off} more, which --limit left off")?;
        }
        Ok(())
    }
}
