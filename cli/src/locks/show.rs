//! `ringfence locks show`: one lock.

use std::{fmt, process::ExitCode};

use ringfence_client::{Inspection, ReplicaInspection, Replicas};
use serde::Serialize;

use super::{
    EXIT_CODES, LocksError,
    output::{HolderOutput, Key},
    which::Which,
};
use crate::{
    place::Place,
    ring::{self, RingError},
    table::Table,
};

/// Show the holder of a lock, and its waiters
///
/// A semaphore, or a read-write lock, may have several holders. Waiters are processes, in the order in which they will get the lock, each with the number of its
/// callers that wait: tasks, or callers of a coordinator. A process may hand the lock on among
/// them; then its first and last token are shown, and one of them is in use.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A lock.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    key: Key,
    namespace: String,
    shard: String,
    /// `None`: the lock is free.
    holder: Option<HolderOutput>,
    /// The other holders of a semaphore, or of a read-write lock.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<HolderOutput>,
    waiters: Vec<Waiter>,
    /// Empty if there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replicas: Vec<Replica>,
}

/// One of the replicas of a lock.
#[derive(Debug, Serialize)]
struct Replica {
    shard: String,
    /// `None`: it is free, or not known.
    holder: Option<HolderOutput>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<&ReplicaInspection> for Replica {
    fn from(replica: &ReplicaInspection) -> Self {
        let found = replica.found.as_ref();
        let holder = found.ok().and_then(|found| found.holder.as_ref());
        Self {
            shard: replica.shard.to_string(),
            holder: holder.map(HolderOutput::from),
            error: found.err().map(ToString::to_string),
        }
    }
}

impl fmt::Display for Replica {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "at shard {}: ", self.shard)?;
        match (&self.error, &self.holder) {
            (Some(error), _) => write!(out, "not known: {error}"),
            (None, None) => write!(out, "free"),
            (None, Some(holder)) => {
                let (label, held_for, left) = (&holder.label, holder.held_for(), holder.left());
                let token = &holder.token;
                write!(
                    out,
                    "held by {label} for {held_for}; the lease ends in {left}; token {token}"
                )
            }
        }
    }
}

/// A process that waits.
#[derive(Debug, Serialize)]
struct Waiter {
    label: String,
    nonce: String,
    /// Its callers that wait.
    callers: u32,
    /// The part of a semaphore, or of a read-write lock, that it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    asks_for: Option<String>,
}

impl Args {
    pub(super) async fn run(&self) -> Result<ExitCode, LocksError> {
        let key = self.which.key()?;
        let namespace = &self.which.namespace;
        let client = ring::connected(&self.place.named().map_err(RingError::from)?).await?;
        let shard = client.shard_of(namespace, &key)?;
        let lock = client.lock(&key).namespace(namespace.as_str());
        let inspection = lock.inspect().await;
        let replicas = match client.topology().namespaces.replicas(namespace) {
            Replicas::One => Vec::new(),
            _ => lock.inspect_replicas().await?,
        };
        client.close().await;
        let Inspection {
            holder,
            others,
            waiters,
        } = inspection?;
        let waiters = waiters.iter().map(|waiter| Waiter {
            label: waiter.label.to_string(),
            nonce: waiter.nonce.to_string(),
            callers: waiter.callers,
            asks_for: waiter.part(),
        });
        let shown = Shown {
            key: Key::new(&key),
            namespace: namespace.to_string(),
            shard: shard.to_string(),
            holder: holder.as_ref().map(HolderOutput::from),
            others: others.iter().map(HolderOutput::from).collect(),
            waiters: waiters.collect(),
            replicas: replicas.iter().map(Replica::from).collect(),
        };
        ring::print(&shown, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            namespace,
            shard,
            holder,
            others,
            waiters,
            replicas,
        } = self;
        writeln!(out, "{key}, namespace {namespace}, shard {shard}")?;
        match holder {
            None => writeln!(out, "free")?,
            Some(holder) => write!(out, "{holder}")?,
        }
        for other in others {
            write!(out, "{other}")?;
        }
        for replica in replicas {
            writeln!(out, "{replica}")?;
        }
        if waiters.is_empty() {
            return writeln!(out, "nobody waits");
        }
        let mut table = Table::new(&["waiting", "who", "callers", "asks for", "nonce"]);
        for (place, waiter) in (1..).zip(waiters) {
            let asks_for = waiter.asks_for.as_deref().unwrap_or("lock");
            table.row([
                format!("{place}"),
                waiter.label.clone(),
                waiter.callers.to_string(),
                asks_for.to_owned(),
                waiter.nonce.clone(),
            ]);
        }
        write!(out, "\n{table}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringfence_client::{Holder, Label, LockKind, Nonce, Token};
    use ringfence_coordinator::ids::ClientId;

    use super::*;

    fn holder(kind: LockKind, shares: u32) -> Holder {
        Holder {
            nonce: Nonce {
                client: ClientId(7),
                sequence: 1,
            },
            label: Label::new("host/1"),
            token: Token::from_number(40),
            tokens: 1,
            kind,
            shares,
            remaining: Duration::from_millis(2_349),
            held_for: Duration::from_secs(200),
        }
    }

    #[test]
    fn a_lock_that_is_handed_on_is_shown_with_all_of_its_tokens() {
        let holder = holder(LockKind::Mutex, 1);
        let shown = |holder| Shown {
            key: Key::new(b"key"),
            namespace: "default".into(),
            shard: "a".into(),
            holder: Some(HolderOutput::from(&holder)),
            others: Vec::new(),
            waiters: Vec::new(),
            replicas: Vec::new(),
        };
        let text = shown(Holder {
            tokens: 8,
            ..holder.clone()
        });
        let text = text.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "key, namespace default, shard a",
                "held by host/1 for 3m 20s; the lease ends in 2.3 s unless renewed",
                "a token from 40 to 47",
                "nobody waits"
            ]
        );
        let text = shown(holder);
        assert!(text.to_string().contains("\ntoken 40\n"), "{text}");
    }

    #[test]
    fn holders_are_shown_with_their_shares() {
        let shown = |kind, shares| {
            let text = HolderOutput::from(&holder(kind, shares)).to_string();
            text.lines().next().unwrap().to_owned()
        };
        let held = |share| {
            format!("held by host/1 ({share}) for 3m 20s; the lease ends in 2.3 s unless renewed")
        };
        assert_eq!(shown(LockKind::Semaphore, 1), held("1 permit"));
        assert_eq!(shown(LockKind::Semaphore, 4), held("4 permits"));
        assert_eq!(shown(LockKind::ReadWrite, 1), held("reader"));
        assert_eq!(shown(LockKind::ReadWrite, 1 << 30), held("writer"));
    }
}
