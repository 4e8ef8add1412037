//! Confirm: one token for a grant of several shards, at each of them.

use std::time::Duration;

use super::{Context, MUTEX};
use crate::{
    ids::Token,
    shard::{Mode, Record, Reply, SlotState},
};

impl Context<'_> {
    /// Extends the record of the nonce to a full lease. A lower token becomes that of `claim`, and every later token
    /// of the shard is above the block of `claim`. With `install`, a key without a live record gets `claim` as its
    /// record. A share of the nonce is extended as it is: shares have no replicas that agree on a token.
    ///
    /// Only in an open slot: a sealed one has told the mover its last token already, and an arriving one does not
    /// know the last token of the former shard yet.
    pub(super) fn confirm(&mut self, claim: Record, lease: Duration, install: bool) -> Reply {
        if let Some(refusal) = self.refusal() {
            return refusal;
        }
        let SlotState { mode, epoch } = self.slot();
        if mode != Mode::Open {
            return Reply::Moving { epoch, left: None };
        }
        let Some(entry) = self.live() else {
            if self.held().is_some() {
                return match self.extend(claim.nonce, u32::MAX, lease) {
                    true => self.renewed(false),
                    false => Reply::Lost,
                };
            }
            if !install {
                return Reply::Lost;
            }
            self.raise_above(&claim);
            self.install(claim, MUTEX, lease);
            return self.renewed(true);
        };
        let Record {
            nonce, token, told, ..
        } = entry.record;
        if nonce != claim.nonce {
            return Reply::Lost;
        }
        if token < claim.token {
            self.raise_above(&claim);
            self.write(Record { told, ..claim }, MUTEX, lease);
        } else {
            self.extend(nonce, 1, lease);
        }
        self.renewed(false)
    }

    /// Makes every later token greater than those of `claim`.
    pub(super) fn raise_above(&mut self, claim: &Record) {
        let (epoch, first) = (claim.token.epoch(), claim.token.counter());
        let last = first + u64::from(claim.tokens) - 1;
        self.armed.tokens.raise(Token::new(epoch, last));
    }
}
