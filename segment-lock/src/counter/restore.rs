//! Restores a manifest that went back in time, from the copies that segments keep.
//!
//! A segment gets its copy with the plan that it is prepared for, in one step. So for every generation that a segment
//! is prepared for, the manifest with that plan existed. Whether the plan was committed is unknown, and does not
//! matter: it is finished like any other plan.

use futures_util::future::BoxFuture;

use super::{Counter, CounterError};
use crate::{
    Manifest, VersionedManifest,
    segment::{ReadCopy, Refusal, Reply},
};

impl Counter {
    /// Swaps in the newest copy of the manifest that any segment has. If none is newer than `found`, and `found` is in
    /// doubt, swaps in `found` itself, which ends the doubt. If another caller was faster, does nothing.
    pub(super) fn restore<'a>(
        &'a self,
        found: &'a VersionedManifest,
    ) -> BoxFuture<'a, Result<(), CounterError>> {
        Box::pin(async move {
            let VersionedManifest {
                version, manifest, ..
            } = found;
            let copy = self
                .newest_copy(manifest, manifest.newest_generation())
                .await?;
            let restored = match copy {
                Some(copy) => copy,
                None if found.in_doubt => manifest.clone().restored(manifest, false),
                None => return Ok(()),
            };
            let manifests = &self.storage.manifests;
            manifests.swap(&self.account, *version, restored).await?;
            Ok(())
        })
    }

    /// The newest copy of the manifest, if its plan has a later generation than `known`. If a copy names segments that
    /// `manifest` does not know, this asks these too. Every segment must answer: one that does not may be prepared for
    /// a generation that would be used again.
    pub(super) async fn newest_copy(
        &self,
        manifest: &Manifest,
        known: u64,
    ) -> Result<Option<Manifest>, CounterError> {
        let mut newest: Option<Manifest> = None;
        let mut closed = false;
        loop {
            let among = newest.as_ref().unwrap_or(manifest);
            let indices = 0..among.placed();
            let requests = indices.map(|index| (self.at(among, index), ReadCopy.into()));
            let answers = self.storage.segments.call_all(requests.collect()).await;
            let known = newest.as_ref().map_or(known, Manifest::newest_generation);
            let before = newest.take();
            for answer in answers {
                match answer? {
                    Ok(Reply::Copied {
                        manifest: copy,
                        closed: is_closed,
                    }) => {
                        closed |= is_closed;
                        let copy = Manifest::decode(&copy)?;
                        let newer = copy.newest_generation()
                            > newest.as_ref().map_or(known, Manifest::newest_generation);
                        newest = if newer { Some(copy) } else { newest };
                    }
                    Err(Refusal::Missing) => {}
                    Ok(reply) => return Err(CounterError::unexpected("read_copy", &reply)),
                    Err(refusal) => return Err(refusal.into()),
                }
            }
            if newest.is_none() {
                return Ok(before.map(|copy| copy.restored(manifest, closed)));
            }
        }
    }
}
