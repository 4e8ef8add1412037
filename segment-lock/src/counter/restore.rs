//! A head that went back in time is restored from the copies that segments keep.
//!
//! A segment gets its copy with the plan that it is prepared for, in one step. So for every
//! generation that a segment is prepared for, the head with that plan exists. Whether the plan was
//! committed is unknown, and does not matter: the plan is finished like any other.

use super::{Counter, CounterError};
use crate::{
    Head, VersionedHead,
    segment::{ReadCopy, Refusal, Reply},
};

impl Counter {
    /// Swaps in the newest head that any segment has a copy of; if none is newer than `found`, and that is in doubt, swaps
    /// in `found` itself, which ends the doubt. If others were faster, does nothing.
    pub(super) async fn restore(&self, found: &VersionedHead) -> Result<(), CounterError> {
        let VersionedHead { version, head, .. } = found;
        let copy = self.newest_copy(head, head.newest_generation()).await?;
        let restored = match copy {
            Some(copy) => copy,
            None if found.in_doubt => head.clone().restored(head, false),
            None => return Ok(()),
        };
        let heads = &self.storage.heads;
        heads.swap(&self.account, *version, restored).await?;
        Ok(())
    }

    /// The newest copy of the head, if its plan is of a later generation than `known`. A copy may name segments that
    /// `head` does not know; they are asked, too. Every segment must answer: one that does not may be prepared for a
    /// generation that would be used again.
    pub(super) async fn newest_copy(
        &self,
        head: &Head,
        known: u64,
    ) -> Result<Option<Head>, CounterError> {
        let mut newest: Option<Head> = None;
        let mut closed = false;
        loop {
            let among = newest.as_ref().unwrap_or(head);
            let indices = 0..among.placed();
            let requests = indices.map(|index| (self.at(among, index), ReadCopy.into()));
            let answers = self.storage.segments.call_all(requests.collect()).await;
            let known = newest.as_ref().map_or(known, Head::newest_generation);
            let before = newest.take();
            for answer in answers {
                match answer? {
                    Ok(Reply::Copied {
                        head: copy,
                        closed: is_closed,
                    }) => {
                        closed |= is_closed;
                        let copy = Head::decode(&copy)?;
                        let newer = copy.newest_generation()
                            > newest.as_ref().map_or(known, Head::newest_generation);
                        newest = if newer { Some(copy) } else { newest };
                    }
                    Err(Refusal::Missing) => {}
                    Ok(reply) => return Err(CounterError::unexpected("read_copy", &reply)),
                    Err(refusal) => return Err(refusal.into()),
                }
            }
            if newest.is_none() {
                return Ok(before.map(|copy| copy.restored(head, closed)));
            }
        }
    }
}
