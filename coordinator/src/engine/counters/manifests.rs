//! Manifests as text at a shard: of accounts, and of segmented locks.
//!
//! An account's manifest has a **copy** at another shard, for the case that its shard comes back empty or is removed. A
//! copy has one of a few names, the first that is at another shard when it is written. After a resize that may be another
//! name, so a missing manifest is looked for under all of them. A copy is written after the manifest, and may be a change
//! behind: it counts as a manifest in doubt, which its reader compares with the copies at the segments.
//!
//! A shard that certainly never lost a manifest says so of one that is missing. Then nobody looks for a copy, and an account
//! can be created while other shards give no answer.

use async_trait::async_trait;
use futures_util::future::join_all;
use ringfence_ring::Replicas;
use ringfence_segment_lock::{
    Account, Durability, HashKey, Manifest, ManifestError, Manifests, StorageError,
    VersionedManifest, lock::Split,
};

use super::{CounterFault, Stored};
use crate::{
    driver::CounterLane,
    shard::{CounterOp, CounterReply},
};

/// The names that a copy may have: so many that one of them is at another shard, unless a shard has nearly all slots.
const COPIES: u32 = 32;

/// The name of copy `nth`. An account may have that name: then neither can read the other's manifest, and gets an error.
fn copy_of(name: &Account, nth: u32) -> String {
    format!("{name}#copy.{nth}")
}

/// The account that a manifest of this name is a copy of, if it is one.
pub(super) fn copied_from(name: &str) -> Option<&str> {
    let (of, nth) = name.rsplit_once("#copy.")?;
    nth.parse::<u32>()
        .is_ok_and(|nth| nth < COPIES)
        .then_some(of)
}

/// Whether a manifest of this name is that of a segmented lock.
pub(super) fn is_of_locks(name: &str) -> bool {
    name.ends_with(OF_LOCKS)
}

/// Ends the names of manifests of segmented locks.
const OF_LOCKS: &str = "#locks";

/// Begins the text of a copy: it is no manifest.
const COPY: &str = "copy ";

/// What is stored under a name.
enum Found {
    /// A version and a text, and whether it is in doubt.
    Text(u64, String, bool),
    /// Nothing. There may have been a text that was lost.
    Missing,
    /// Nothing, and certainly there never was.
    NeverMade,
}

/// A value that is stored as a manifest.
trait Text: Sized + Send + 'static {
    /// The name under which the manifest of `name` is stored.
    fn stored_as(name: &Account) -> String;
    fn encode(&self) -> String;
    fn decode(text: &str) -> Result<Self, ManifestError>;
    fn durability(&self) -> Durability;
    /// Whether it has a copy.
    const IS_COPIED: bool;
    /// Of several copies, the newest has the greatest.
    fn age(&self) -> (u64, u64);
}

impl Text for Manifest {
    const IS_COPIED: bool = true;

    fn stored_as(name: &Account) -> String {
        name.to_string()
    }

    fn encode(&self) -> String {
        Self::encode(self)
    }

    fn decode(text: &str) -> Result<Self, ManifestError> {
        Self::decode(text)
    }

    fn durability(&self) -> Durability {
        self.terms().durability
    }

    fn age(&self) -> (u64, u64) {
        (self.last_generation(), self.mark_ms())
    }
}

impl Text for Split {
    const IS_COPIED: bool = false;

    /// An account may have that name: then neither can read the other's manifest, and gets an error.
    fn stored_as(name: &Account) -> String {
        format!("{name}{OF_LOCKS}")
    }

    fn encode(&self) -> String {
        Self::encode(self)
    }

    fn decode(text: &str) -> Result<Self, ManifestError> {
        Self::decode(text)
    }

    fn durability(&self) -> Durability {
        Self::durability(self)
    }

    fn age(&self) -> (u64, u64) {
        (0, 0)
    }
}

#[async_trait]
impl<H: Text> Manifests<H> for Stored {
    async fn read(&self, name: &Account) -> Result<Option<VersionedManifest<H>>, StorageError> {
        if H::IS_COPIED {
            self.unreplicated()?;
        }
        match self.read_text(&H::stored_as(name)).await? {
            Found::Text(version, text, in_doubt) => Ok(Some(VersionedManifest {
                version,
                manifest: H::decode(&text).map_err(CounterFault::from)?,
                in_doubt,
            })),
            Found::Missing if H::IS_COPIED => self.newest_copy(name).await,
            Found::Missing | Found::NeverMade => Ok(None),
        }
    }

    async fn swap(&self, name: &Account, expected: u64, manifest: H) -> Result<bool, StorageError> {
        let text = manifest.encode();
        let durability = manifest.durability();
        let copy = match H::IS_COPIED {
            true => self.elsewhere(name, expected == 0).await?,
            false => None,
        };
        let stored_as = H::stored_as(name);
        let copied = format!("{COPY}{text}");
        if !self
            .swap_text(&stored_as, expected, text, durability)
            .await?
        {
            return Ok(false);
        }
        if let Some((copy, version)) = copy {
            let written = self.swap_text(&copy, version, copied, durability).await;
            // Without it, a new account would have one manifest. A later change leaves an older copy, at worst.
            if expected == 0 {
                written?;
            }
        }
        Ok(true)
    }
}

impl Stored {
    /// Refuses a namespace whose locks have replicas: a segment has one copy.
    fn unreplicated(&self) -> Result<(), CounterFault> {
        let namespace = &self.namespace;
        match self.engine.topology().namespaces.replicas(namespace) {
            Replicas::One => Ok(()),
            _ => Err(CounterFault::Replicated {
                namespace: namespace.clone(),
            }),
        }
    }

    /// The newest copy of a manifest that is missing; `None` if there is none. Every name must be asked for: one that is
    /// not may have it.
    async fn newest_copy<H: Text>(
        &self,
        name: &Account,
    ) -> Result<Option<VersionedManifest<H>>, StorageError> {
        let reads = (0..COPIES).map(async |nth| self.read_text(&copy_of(name, nth)).await);
        let mut newest: Option<H> = None;
        for read in join_all(reads).await {
            let Found::Text(_, text, _) = read? else {
                continue;
            };
            let text = text.strip_prefix(COPY).unwrap_or_default();
            let copy = H::decode(text).map_err(CounterFault::from)?;
            if newest
                .as_ref()
                .is_none_or(|newest| newest.age() < copy.age())
            {
                newest = Some(copy);
            }
        }
        Ok(newest.map(|manifest| VersionedManifest {
            version: 0,
            manifest,
            in_doubt: true,
        }))
    }

    /// The name for a copy at another shard than the manifest's, and the version of what is there; `None` if there is no
    /// other shard. If one gives no answer, the next is asked; if none does, that is an error for a `new` account.
    async fn elsewhere(
        &self,
        name: &Account,
        new: bool,
    ) -> Result<Option<(String, u64)>, StorageError> {
        let table = &self.engine.topology().table;
        let owner = |name: &str| self.key(name).map(|key| table.owner_index(key.slot()));
        let mut asked = vec![owner(name.as_str()).map_err(CounterFault::from)?];
        let mut failed = None;
        for nth in 0..COPIES {
            let copy = copy_of(name, nth);
            let shard = owner(&copy).map_err(CounterFault::from)?;
            if asked.contains(&shard) {
                continue;
            }
            asked.push(shard);
            match self.read_text(&copy).await {
                Ok(Found::Text(version, ..)) => return Ok(Some((copy, version))),
                Ok(Found::Missing | Found::NeverMade) => return Ok(Some((copy, 0))),
                Err(error) => failed = Some(error),
            }
        }
        match failed.filter(|_| new) {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    async fn read_text(&self, name: &str) -> Result<Found, StorageError> {
        match self.manifest(name, CounterOp::ReadManifest).await? {
            CounterReply::NeverMade => Ok(Found::NeverMade),
            CounterReply::Manifest(None) => Ok(Found::Missing),
            CounterReply::Manifest(Some((version, text))) => Ok(Found::Text(version, text, false)),
            CounterReply::ManifestInDoubt(version, text) => Ok(Found::Text(version, text, true)),
            reply => Err(CounterFault::unexpected("a manifest's reading", &reply).into()),
        }
    }

    /// Whether there is a manifest of that name, as far as its shard tells.
    pub(super) async fn has_manifest(&self, name: &str) -> bool {
        matches!(self.read_text(name).await, Ok(Found::Text(..)))
    }

    async fn swap_text(
        &self,
        name: &str,
        expected: u64,
        manifest: String,
        durability: Durability,
    ) -> Result<bool, StorageError> {
        let op = CounterOp::SwapManifest {
            expected,
            manifest,
            durability,
        };
        match self.manifest(name, op).await? {
            CounterReply::Swapped(swapped) => Ok(swapped),
            reply => Err(CounterFault::unexpected("a manifest's change", &reply).into()),
        }
    }

    async fn manifest(&self, name: &str, op: CounterOp) -> Result<CounterReply, StorageError> {
        let key = self.key(name).map_err(CounterFault::from)?;
        // It may require replicas: the durability is in the manifest.
        self.engine
            .0
            .ask_counter(&key, &op, (HashKey::default(), CounterLane::Replicated))
            .await
    }
}
