//! Lists locks, shows one, takes one from its holder.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Query, State},
};
use ringfence_api::Error;
use ringfence_client::{
    Client, HeldLock, Holder, Inspection, ShardError, ShardId, limits::KEY_BYTES_MAX,
};
use ringfence_coordinator::name::Printed;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout_at},
};

use super::{
    Dashboard, deadline,
    gate::{Refused, Visitor},
};
use crate::{
    access::{Audit, Call},
    admin, errors,
    fields::namespace,
};

/// Locks in a list; the counts are of all.
const LISTED_MAX: usize = 200;

/// Locks in the list of those that most processes wait for.
const HOT_MAX: usize = 8;

/// A scan ends after this many locks, or this time, and says so.
const SCANNED_MAX: usize = 20_000;
const SCAN_FOR: Duration = Duration::from_secs(5);

/// Pages that ask within this time of a scan get its result.
const SCAN_EVERY: Duration = Duration::from_secs(1);

/// Bytes of a search, at most.
const SEARCH_BYTES_MAX: usize = 256;

/// The last scan of all shards. One runs at a time.
#[derive(Default)]
pub(super) struct Scans(Mutex<Option<Arc<Scan>>>);

struct Scan {
    of: Option<String>,
    ended: Instant,
    /// Sorted by namespace and key.
    locks: Vec<Row>,
    /// There may be more.
    cut: bool,
    /// Shards that did not list their locks.
    failed: Vec<FailedShard>,
}

#[derive(Clone, Serialize)]
pub(super) struct FailedShard {
    id: String,
    error: String,
}

impl FailedShard {
    pub(super) fn new(shard: &ShardId, error: &ShardError) -> Self {
        Self {
            id: shard.to_string(),
            error: error.to_string(),
        }
    }
}

/// A lock in a list.
#[derive(Clone, Serialize)]
struct Row {
    key: Key,
    shard: String,
    holder: HolderView,
    /// Other holders of a semaphore or a read-write lock.
    others: u32,
    waiting: u32,
}

/// A key: any bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Key {
    namespace: String,
    /// For people.
    shown: String,
    hex: String,
}

#[derive(Clone, Serialize)]
struct HolderView {
    label: String,
    /// As texts: scripts round such large numbers.
    token: String,
    last_token: String,
    remaining_ms: u64,
    held_for_ms: u64,
    /// Of a semaphore or a read-write lock.
    share: Option<String>,
}

#[derive(Serialize)]
struct WaiterView {
    label: String,
    callers: u32,
    /// Of a semaphore or a read-write lock.
    asks_for: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    /// Empty: all.
    #[serde(default)]
    namespace: String,
    /// A part of the namespace, the key, the holder or the shard, in any case. Empty: all.
    #[serde(default)]
    search: String,
}

#[derive(Serialize)]
pub(super) struct Listed {
    held: usize,
    /// Waiting callers.
    waiting: u64,
    matched: usize,
    cut: bool,
    failed: Vec<FailedShard>,
    hot: Vec<Row>,
    locks: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    namespace: String,
    hex: String,
}

#[derive(Serialize)]
pub(super) struct Shown {
    key: Key,
    holders: Vec<HolderView>,
    /// Waiting processes, in their order.
    waiters: Vec<WaiterView>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    namespace: String,
    hex: String,
    /// For the log.
    reason: String,
}

#[derive(Serialize)]
pub(super) struct Released {
    /// None: the lock was free.
    holders: Vec<HolderView>,
}

/// The held locks.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Visitor(caller): Visitor,
    Query(Filter { namespace, search }): Query<Filter>,
) -> Result<Json<Listed>, Refused> {
    let of = Some(namespace).filter(|of| !of.is_empty());
    caller.admit(Call::List(of.as_deref()))?;
    if search.len() > SEARCH_BYTES_MAX {
        let value = format!("{} bytes long", search.len());
        let limit = format!("at most {SEARCH_BYTES_MAX}");
        return Err(Error::invalid("search", value, limit).into());
    }
    let scan = dashboard.scans.scan(&dashboard.client, of).await?;
    Ok(Json(Listed::of(&scan, &search.to_lowercase())))
}

/// The holders of a lock and its waiters.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Visitor(caller): Visitor,
    Query(Which { namespace: of, hex }): Query<Which>,
) -> Result<Json<Shown>, Refused> {
    let key = key(&hex)?;
    caller.admit(Call::Read(&of, &key))?;
    let lock = dashboard.client.lock(&key).namespace(namespace(&of));
    let found = deadline().run(lock.inspect()).await?;
    let found = found.map_err(|error| errors::lock(&error))?;
    let Inspection {
        holder,
        others,
        waiters,
    } = found;
    let holders = holder.iter().chain(&others);
    let waiters = waiters.iter().map(|waiter| WaiterView {
        label: Printed(waiter.label.as_str().as_bytes()).to_string(),
        callers: waiter.callers,
        asks_for: waiter.part(),
    });
    Ok(Json(Shown {
        key: Key::new(namespace(&of), &key),
        holders: holders.map(HolderView::of).collect(),
        waiters: waiters.collect(),
    }))
}

/// Takes a lock from its holders.
pub(super) async fn release(
    State(dashboard): State<Arc<Dashboard>>,
    Visitor(caller): Visitor,
    Json(Release {
        namespace: of,
        hex,
        reason,
    }): Json<Release>,
) -> Result<Json<Released>, Refused> {
    let key = key(&hex)?;
    caller.admit(Call::ForceRelease(&of, &key))?;
    let lock = (namespace(&of), &*key);
    let what = format!("{}/{}", lock.0, Printed(&key));
    let audit = Audit::by(&caller, "ForceRelease", what);
    let holders = admin::force_release(&dashboard.client, lock, &reason, deadline());
    let holders = audit.run(holders).await?;
    Ok(Json(Released {
        holders: holders.iter().map(HolderView::of).collect(),
    }))
}

impl Scans {
    /// The locks of the namespace `of`, or of all.
    async fn scan(&self, client: &Client, of: Option<String>) -> Result<Arc<Scan>, Error> {
        let mut last = self.0.lock().await;
        let fresh = last
            .as_ref()
            .filter(|scan| scan.of == of && scan.ended.elapsed() < SCAN_EVERY);
        if let Some(scan) = fresh {
            return Ok(scan.clone());
        }
        let scan = Arc::new(Scan::run(client, of).await?);
        *last = Some(scan.clone());
        Ok(scan)
    }
}

impl Scan {
    async fn run(client: &Client, of: Option<String>) -> Result<Self, Error> {
        let mut walk = client
            .locks(of.as_deref())
            .map_err(|error| errors::name(&error))?;
        let (mut locks, mut failed) = (Vec::new(), Vec::new());
        let deadline = Instant::now() + SCAN_FOR;
        let cut = loop {
            let Ok(page) = timeout_at(deadline, walk.next()).await else {
                break true;
            };
            let Some(page) = page else {
                break false;
            };
            match page.locks {
                Ok(held) => locks.extend(held.iter().map(|lock| Row::of(&page.shard, lock))),
                Err(error) => failed.push(FailedShard::new(&page.shard, &error)),
            }
            if locks.len() >= SCANNED_MAX {
                break true;
            }
        };
        // A walk may meet a lock twice.
        locks.sort_by(|one: &Row, other| one.key.cmp(&other.key));
        locks.dedup_by(|one, other| one.key == other.key);
        Ok(Self {
            of,
            ended: Instant::now(),
            locks,
            cut,
            failed,
        })
    }
}

impl Listed {
    fn of(scan: &Scan, search: &str) -> Self {
        let matching = || scan.locks.iter().filter(|lock| lock.matches(search));
        let mut hot: Vec<_> = scan.locks.iter().filter(|lock| lock.waiting > 0).collect();
        hot.sort_by_key(|lock| std::cmp::Reverse(lock.waiting));
        Self {
            held: scan.locks.len(),
            waiting: scan.locks.iter().map(|lock| u64::from(lock.waiting)).sum(),
            matched: matching().count(),
            cut: scan.cut,
            failed: scan.failed.clone(),
            hot: hot.into_iter().take(HOT_MAX).cloned().collect(),
            locks: matching().take(LISTED_MAX).cloned().collect(),
        }
    }
}

impl Row {
    fn of(shard: &ShardId, lock: &HeldLock) -> Self {
        Self {
            key: Key::new(lock.key.namespace(), lock.key.key()),
            shard: shard.to_string(),
            holder: HolderView::of(&lock.holder),
            others: lock.others,
            waiting: lock.waiting,
        }
    }

    fn matches(&self, search: &str) -> bool {
        let Key {
            namespace, shown, ..
        } = &self.key;
        let texts = [namespace, shown, &self.holder.label, &self.shard];
        let mut texts = texts.into_iter();
        search.is_empty() || texts.any(|text| text.to_lowercase().contains(search))
    }
}

impl Key {
    fn new(namespace: &str, key: &[u8]) -> Self {
        Self {
            namespace: namespace.to_owned(),
            shown: Printed(key).to_string(),
            hex: key.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

impl HolderView {
    fn of(holder: &Holder) -> Self {
        Self {
            label: Printed(holder.label.as_str().as_bytes()).to_string(),
            token: holder.token.to_string(),
            last_token: holder.last_token().to_string(),
            remaining_ms: millis(holder.remaining),
            held_for_ms: millis(holder.held_for),
            share: holder.part(),
        }
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The key with the digits `hex`.
fn key(hex: &str) -> Result<Vec<u8>, Error> {
    let limit = || format!("2 hex digits per byte of the key, 1 to {KEY_BYTES_MAX} bytes");
    let invalid = || Error::invalid("hex", format!("{} bytes long", hex.len()), limit());
    let digits = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || !(2..=2 * KEY_BYTES_MAX).contains(&hex.len()) || hex.len() % 2 == 1 {
        return Err(invalid());
    }
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| invalid());
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_digits_and_misleads_nobody() {
        for bytes in [&b"order/42"[..], b"\0\xff", "\u{202e}txt".as_bytes()] {
            let view = Key::new("default", bytes);
            assert_eq!(key(&view.hex).unwrap(), bytes);
            assert!(!view.shown.contains(char::is_control) && !view.shown.contains('\u{202e}'));
        }
        assert_eq!(Printed("größe".as_bytes()).to_string(), "größe");
        for refused in ["", "0", "zz", "+1", "é0"] {
            assert_eq!(key(refused).unwrap_err().input.unwrap().field, "hex");
        }
    }
}
