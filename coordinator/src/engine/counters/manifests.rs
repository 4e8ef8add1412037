//! Manifests as text at a shard: of accounts, and of segmented locks.
//!
//! An account's manifest has a **copy** at another shard, for the case that its shard comes back empty or is removed.
//!
//! * Each segment has a copy. The segment of an account that has one is placed at another shard than the manifest, so an idle
//!   account needs no other.
//! * Only of an account with several segments, or if the segment is at the manifest's shard, as after a resize, or does not know
//!   all that the manifest says, such as labels, a copy has a name of its own. Once it is there, each change is written to it.
//!
//! Either has one of a few names, the first that is at another shard when it is written. After a resize that may be another
//! name, so a missing manifest is looked for under all of them. A copy is written after the manifest, and may be a change
//! behind: it counts as a manifest in doubt, which its reader compares with the copies at the segments.
//!
//! A shard that certainly never lost a manifest says so of one that is missing. Then nobody looks for a copy, and an account
//! can be created while other shards give no answer.

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use ringfence_ring::Replicas;
use ringfence_segment_lock::{
    Account, Durability, HashKey, Manifest, ManifestError, Manifests, StorageError,
    VersionedManifest,
    lock::{Split, parse_key},
    segment::{ReadCopy, Refusal, Reply},
};

use super::{CounterFault, Stored, unknown_segment};
use crate::{
    driver::CounterLane,
    shard::{CounterOp, CounterReply},
};

/// The names that a copy may have: so many that one of them is at another shard, unless a shard has nearly all slots.
const COPIES: u32 = 32;

/// The name of copy `nth`. No account has such a name.
fn copy_of(name: &Account, nth: u32) -> String {
    format!("{name}#copy.{nth}")
}

/// The account whose manifest the group of this name has a copy of, if it has one: a copy, or segment 0.
pub(super) fn copied_from(name: &str) -> Option<&str> {
    if let Some((of, 0, _)) = parse_key(name) {
        return Some(of);
    }
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
    /// The place of segment 0, if the copy there does in place of this.
    fn copied_at(&self) -> Option<u32> {
        None
    }
    /// The places of the segments that have copies.
    fn places(&self) -> Vec<u32> {
        Vec::new()
    }
    /// Whether the copy is written first. Otherwise a copy may name what never came into force.
    fn is_copied_first(&self) -> bool {
        false
    }
    /// Of several copies, the newest has the greatest.
    fn age(&self) -> (u64, u64) {
        (0, 0)
    }
    /// The found manifest that this copy stands for. `closed`: the segment that has it is closed.
    fn into_found(self, _closed: bool) -> Self {
        self
    }
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

    fn copied_at(&self) -> Option<u32> {
        self.is_in_copies().then(|| self.place_of(0))
    }

    fn places(&self) -> Vec<u32> {
        (0..self.placed())
            .map(|index| self.place_of(index))
            .collect()
    }

    /// Without an account, the manifest has the time up to which ids are refused, and no segment has it.
    fn is_copied_first(&self) -> bool {
        !self.exists()
    }

    fn age(&self) -> (u64, u64) {
        (self.last_generation(), self.mark_ms())
    }

    fn into_found(self, closed: bool) -> Self {
        let copy = self.clone();
        self.restored(&copy, closed)
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
}

#[async_trait]
impl<H: Text> Manifests<H> for Stored {
    async fn read(&self, name: &Account) -> Result<Option<VersionedManifest<H>>, StorageError> {
        if H::IS_COPIED {
            self.unreplicated()?;
        }
        let (version, found) = match self.read_text(&H::stored_as(name)).await? {
            Found::Text(version, text, in_doubt) => {
                let manifest = H::decode(&text).map_err(CounterFault::from)?;
                // If it is in doubt, a segment at another shard has a newer one, if there is one.
                let is_certain = !(in_doubt && H::IS_COPIED);
                if is_certain || !self.is_together(name, &manifest.places())? {
                    return Ok(Some(VersionedManifest {
                        version,
                        manifest,
                        in_doubt,
                    }));
                }
                (version, Some((manifest, false)))
            }
            Found::Missing if H::IS_COPIED => (0, None),
            Found::Missing | Found::NeverMade => return Ok(None),
        };
        let newest = self.newest_copy(name, found).await?;
        Ok(newest.map(|(manifest, closed)| VersionedManifest {
            version,
            manifest: manifest.into_found(closed),
            in_doubt: true,
        }))
    }

    async fn swap(&self, name: &Account, expected: u64, manifest: H) -> Result<bool, StorageError> {
        let encoded = &manifest.encode();
        let durability = manifest.durability();
        let is_first = manifest.is_copied_first();
        let copy = match H::IS_COPIED {
            true => self.copy_for(name, expected, manifest.copied_at()).await?,
            false => None,
        };
        let write_copy = async |(copy, version): &(String, u64)| {
            let copied = format!("{COPY}{encoded}");
            self.swap_text(copy, *version, copied, durability).await
        };
        if let Some(copy) = copy.as_ref().filter(|_| is_first)
            && !write_copy(copy).await?
        {
            return Ok(false);
        }
        let stored_as = H::stored_as(name);
        let swapped = self
            .swap_text(&stored_as, expected, encoded.clone(), durability)
            .await?;
        if let Some(copy) = copy.as_ref().filter(|_| swapped && !is_first) {
            let written = write_copy(copy).await;
            // Without it, a new account would have one manifest. A later change leaves an older copy, at worst.
            if expected == 0 {
                written?;
            }
        }
        Ok(swapped)
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

    /// The newest of `found` and the copies of that manifest, and whether the segment with that copy is closed. Every name must
    /// be asked for: one that is not may have it.
    async fn newest_copy<H: Text>(
        &self,
        name: &Account,
        found: Option<(H, bool)>,
    ) -> Result<Option<(H, bool)>, StorageError> {
        let copies = (0..COPIES).map(|nth| self.copy(copy_of(name, nth)));
        let segments = (0..COPIES).map(|place| self.copy_at_segment(name, place));
        let (copies, segments) = join(join_all(copies), join_all(segments)).await;
        let mut newest = found;
        for copy in copies.into_iter().chain(segments) {
            let Some((text, closed)) = copy? else {
                continue;
            };
            let copy = H::decode(&text).map_err(CounterFault::from)?;
            if newest
                .as_ref()
                .is_none_or(|(newest, _)| newest.age() < copy.age())
            {
                newest = Some((copy, closed));
            }
        }
        Ok(newest)
    }

    async fn copy(&self, name: String) -> Result<Option<(String, bool)>, StorageError> {
        Ok(match self.read_text(&name).await? {
            Found::Text(_, text, _) => {
                let text = text.strip_prefix(COPY).unwrap_or_default();
                Some((text.to_owned(), false))
            }
            Found::Missing | Found::NeverMade => None,
        })
    }

    /// The copy at segment 0, if that is at `place`, and whether the segment is closed.
    async fn copy_at_segment(
        &self,
        name: &Account,
        place: u32,
    ) -> Result<Option<(String, bool)>, StorageError> {
        let at = unknown_segment(name, 0, place);
        match self.ask(&at, ReadCopy.into(), true).await? {
            Ok(Reply::Copied { manifest, closed }) => Ok(Some((manifest.to_string(), closed))),
            Err(Refusal::Missing) => Ok(None),
            answer => {
                let reply = CounterReply::Segment(answer);
                Err(CounterFault::unexpected("a copy's reading", &reply).into())
            }
        }
    }

    /// The copy that a change of the manifest is written to, and its version; `None` if there is none, and need not be one,
    /// since segment 0, at `place`, has one.
    async fn copy_for(
        &self,
        name: &Account,
        expected: u64,
        place: Option<u32>,
    ) -> Result<Option<(String, u64)>, StorageError> {
        let is_at_segment = self.is_at_segment(name, place)?;
        let copy = self
            .elsewhere(name, expected == 0 && !is_at_segment)
            .await?;
        Ok(copy.filter(|(_, version)| *version > 0 || !is_at_segment))
    }

    /// Whether segment 0, at `place`, is at another shard than the manifest, and is found there without it.
    fn is_at_segment(&self, name: &Account, place: Option<u32>) -> Result<bool, CounterFault> {
        match place.filter(|place| *place < COPIES) {
            Some(place) => Ok(!self.is_together(name, &[place])?),
            None => Ok(false),
        }
    }

    /// Whether the manifest's shard has all segments, which are at `places`: they may have gone back together.
    fn is_together(&self, name: &Account, places: &[u32]) -> Result<bool, CounterFault> {
        let owner = self.owner(name.as_str())?;
        let table = &self.engine.topology().table;
        let owner_of = |at| self.engine.place_owner(table, &self.namespace, name, at);
        let mut segments = (0..).zip(places);
        Ok(segments.all(|(index, place)| owner_of((index, *place)) == owner))
    }

    /// The shard, by its index in the table, that has the group called `name`.
    pub(super) fn owner(&self, name: &str) -> Result<usize, CounterFault> {
        let slot = self.key(name)?.slot();
        Ok(self.engine.topology().table.owner_index(slot))
    }

    /// The name for a copy at another shard than the manifest's, and the version of what is there; `None` if there is no
    /// other shard. If one gives no answer, the next is asked; if none does, that is an error for a `new` account.
    async fn elsewhere(
        &self,
        name: &Account,
        new: bool,
    ) -> Result<Option<(String, u64)>, StorageError> {
        let mut asked = vec![self.owner(name.as_str())?];
        let mut failed = None;
        for nth in 0..COPIES {
            let copy = copy_of(name, nth);
            let shard = self.owner(&copy)?;
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
