//! A process's copy of the record. An old copy does no harm: see the module's documentation.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::{Locks, SegmentedLock, SegmentedLockError, Split};
use crate::{StorageError, VersionedManifest};

/// The record is read again after this long, for a new number in use.
const FRESH: Duration = Duration::from_secs(1);

/// A process with an old record waits at most this long for the new one: the record's shard may be unreachable while a
/// sub-lock's shard is reachable.
const REFRESH_MAX: Duration = Duration::from_millis(100);

/// The record, and the time of its last read.
#[derive(Debug)]
pub(super) struct Record {
    read: Arc<VersionedManifest<Split>>,
    /// The time of the last read or attempt.
    at: Instant,
}

impl Record {
    pub(super) fn made(&self) -> u32 {
        self.read.manifest.made()
    }
}

impl<L: Locks> SegmentedLock<L> {
    /// Reads the record now.
    pub(super) async fn newest(&self) -> Result<Arc<VersionedManifest<Split>>, SegmentedLockError> {
        let read = self.0.manifests.read(&self.0.name).await;
        let read = read.map_err(StorageError::aside)?;
        let read = read.ok_or_else(|| SegmentedLockError::NoLock {
            name: self.0.name.clone(),
        })?;
        let read = Arc::new(read);
        *self.0.record.lock() = Some(Record {
            read: Arc::clone(&read),
            at: Instant::now(),
        });
        Ok(read)
    }

    /// The record, at most a second old; an older one if it cannot be read.
    pub(super) async fn known(&self) -> Result<Arc<VersionedManifest<Split>>, SegmentedLockError> {
        let Some((old, is_due)) = self.last_read() else {
            return self.newest().await;
        };
        if !is_due {
            return Ok(old);
        }
        match timeout(REFRESH_MAX, self.newest()).await {
            Ok(Err(SegmentedLockError::Storage(_))) | Err(_) => Ok(old),
            Ok(read) => read,
        }
    }

    /// The last record read, if any, and whether it is due to be read again. The caller that gets `true` reads it for
    /// all.
    fn last_read(&self) -> Option<(Arc<VersionedManifest<Split>>, bool)> {
        let mut record = self.0.record.lock();
        let Record { read, at } = record.as_mut()?;
        let is_due = at.elapsed() >= FRESH;
        if is_due {
            *at = Instant::now();
        }
        Some((Arc::clone(read), is_due))
    }

    /// Writes `split` iff the record is still the one `read`.
    pub(super) async fn swap(
        &self,
        read: &VersionedManifest<Split>,
        split: Split,
    ) -> Result<bool, SegmentedLockError> {
        let Self(inner) = self;
        Ok(inner
            .manifests
            .swap(&inner.name, read.version, split)
            .await?)
    }
}
