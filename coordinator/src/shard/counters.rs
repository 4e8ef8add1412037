//! What a shard does for counters: it keeps their segments, and the manifests of their accounts.
//!
//! Balances are data, not leases. Nothing of them ends with time, and no grace concerns them: what was acknowledged is
//! there when the shard is, or the segment [says](ringfence_segment_lock::segment::Segment::came_back) that it may not
//! be.

use ringfence_segment_lock::{
    Durability, HashKey,
    segment::{Answer, Request as SegmentRequest},
};

use crate::{
    ids::{Epoch, MapVersion},
    name::LockKey,
};

/// One request about a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRequest {
    /// The key of the segment, or of the manifest: separate from locks with the same name.
    pub key: LockKey,
    /// When the shard's slots last changed, by the sender's map, as in a [`Request`](super::Request).
    pub map: MapVersion,
    /// The key of the hashes of ids, of the account.
    pub hash_key: HashKey,
    /// What to do.
    pub op: CounterOp,
}

/// What to do with a segment, or with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CounterOp {
    /// Applied to the segment of that key, in one atomic step.
    Segment(SegmentRequest),
    /// Reads the manifest of that key.
    ReadManifest,
    /// Writes the manifest of that key, iff its version is still `expected`, 0 for none; the next version is one more, and
    /// much more if the manifest was in doubt.
    SwapManifest {
        /// The version it must have.
        expected: u64,
        /// What it is to say.
        manifest: String,
        /// What that must have survived before it is acknowledged.
        durability: Durability,
    },
}

impl CounterOp {
    /// Whether all it does is to make room.
    pub fn forgets(&self) -> bool {
        matches!(self, Self::Segment(SegmentRequest::Purge(_)))
    }

    /// Whether it changes nothing, apart from reservations that have ended.
    pub fn only_reads(&self) -> bool {
        use SegmentRequest::{Collect, Find, History, Inspect, Pinned, ReadCopy, Sent};
        match self {
            Self::Segment(Collect(collect)) => collect.freeze.is_none(),
            Self::Segment(
                Find(_) | History(_) | Sent(_) | Pinned(_) | Inspect(_) | ReadCopy(_),
            )
            | Self::ReadManifest => true,
            Self::Segment(_) | Self::SwapManifest { .. } => false,
        }
    }
}

/// The answer to a [`CounterRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CounterReply {
    /// The segment's answer.
    Segment(Answer),
    /// The manifest and its version. If there is none, there may have been one that was lost.
    Manifest(Option<(u64, String)>),
    /// There is no manifest, and certainly never was.
    NeverMade,
    /// The same of a manifest that may be an older one: its server came back. The next swap ends the doubt.
    ManifestInDoubt(u64, String),
    /// Whether the manifest was written.
    Swapped(bool),
    /// The slot is not here: refresh the map. Nothing was written.
    Moved {
        /// When it left.
        epoch: Epoch,
    },
    /// The slot is leaving, and its counters are frozen here. Nothing was written.
    Moving {
        /// Of the move.
        epoch: Epoch,
    },
    /// The slot is arriving, and its counters are not here yet. Nothing was written.
    Coming {
        /// Of the move.
        epoch: Epoch,
    },
    /// The account asks for every change to be on the disk, and the server does not sync each. Nothing was written.
    NotOnDisk,
    /// The change was made, and too few replicas have it: a repeat of the request is answered once
    /// they have it.
    TooFewReplicas {
        /// How many have it for certain.
        replicas: u64,
        /// How many must.
        required: u64,
    },
    /// The shard has no memory for it. Nothing was written.
    OutOfMemory,
    /// Something that is not of a counter lies under its name. Nothing was written.
    Foreign,
}

/// The answers to a batch of [`CounterRequest`]s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterAnswers {
    /// Whether the slots needed no look: the shard is quiet at the first request's map version.
    pub quiet: bool,
    /// One for each request, in their order.
    pub replies: Vec<CounterReply>,
}
