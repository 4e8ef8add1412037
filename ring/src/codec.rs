//! A table as bytes. All numbers are little-endian.
//!
//! ```text
//! magic      4     "RFST"
//! version    u8    1
//! log2 S     u8    1 to 16
//! replicas   u8    R, 1, 3 or 5
//! shards     u16   N, 1 to 1024
//! N times:         length u8, id, weight u16, length u8, zone; in ascending order of id;
//!                  a zone of length 0 for none
//! owners           R * S fields of ceil(log2 N) bits, by rank, lowest first, padded with zeros to whole bytes
//! digest     u64   xxh3-64, seed 0, of everything before
//! ```

use xxhash_rust::xxh3::xxh3_64;

use crate::limits::SHARDS_MAX;
use crate::packing::{pack, packed_len, unpack, width};
use crate::{Membership, Replicas, RingError, ShardId, SlotCount, Table, Weight, Zone};

const MAGIC: [u8; 4] = *b"RFST";
const VERSION: u8 = 1;

impl Table {
    /// The table as bytes: its version, its content and a digest. Equal tables have equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let replicas = self.membership().replicas();
        out.extend([VERSION, self.slots().log2(), replicas.get() as u8]);
        out.extend((self.shards().len() as u16).to_le_bytes());
        let weights = self.membership().weights();
        let zones = self.membership().zones();
        for ((id, weight), zone) in self.shards().iter().zip(weights).zip(zones) {
            push_name(&mut out, id.as_str());
            out.extend((weight.get() as u16).to_le_bytes());
            push_name(&mut out, zone.as_ref().map_or("", Zone::as_str));
        }
        pack(self.owners(), width(self.shards().len()), &mut out);
        out.extend(xxh3_64(&out).to_le_bytes());
        out
    }

    /// The table that [`encode`](Self::encode) wrote, checked in full. Takes no more memory than
    /// the table does, for any input bytes.
    ///
    /// # Errors
    ///
    /// * [`RingError::Magic`], [`RingError::Version`]: not a table, or a newer release's.
    /// * [`RingError::Truncated`], [`RingError::TrailingBytes`], [`RingError::Digest`]: damaged.
    /// * Anything that a new [`Membership`] refuses, and
    ///   [`RingError::ShardOrder`], [`RingError::Owner`], [`RingError::ReplicasTogether`],
    ///   [`RingError::Padding`]: intact, but no release writes it.
    pub fn decode(bytes: &[u8]) -> Result<Self, RingError> {
        let raw = Raw::read(bytes)?;
        let membership = raw.membership()?;
        let shards = membership.shards().len();
        let owners = unpack(raw.packed, raw.all_slots(), width(shards))?;
        if let Some(slot) = owners
            .iter()
            .position(|&owner| usize::from(owner) >= shards)
        {
            return Err(RingError::Owner {
                slot,
                value: owners[slot],
                shards,
            });
        }
        let table = Self::new(membership, owners);
        table.check_replicas()?;
        Ok(table)
    }

    /// Refuses two replicas of a slot at one shard.
    fn check_replicas(&self) -> Result<(), RingError> {
        for slot in self.all_slots() {
            let rank = self.slots().rank(slot) as usize;
            let owner = self.owner(slot);
            if self.replicas(slot).take(rank).any(|other| other == owner) {
                return Err(RingError::ReplicasTogether {
                    slot: slot.index(),
                    id: owner.clone(),
                });
            }
        }
        Ok(())
    }
}

fn push_name(out: &mut Vec<u8>, name: &str) {
    out.push(name.len() as u8);
    out.extend(name.as_bytes());
}

/// An encoding taken apart, its digest right, its content unchecked.
struct Raw<'a> {
    slots: SlotCount,
    replicas: Replicas,
    shards: Vec<RawShard<'a>>,
    packed: &'a [u8],
}

struct RawShard<'a> {
    id: &'a [u8],
    weight: u16,
    /// Empty for none.
    zone: &'a [u8],
}

impl<'a> Raw<'a> {
    fn all_slots(&self) -> usize {
        (self.slots.get() * self.replicas.get()) as usize
    }

    fn read(bytes: &'a [u8]) -> Result<Self, RingError> {
        let mut reader = Reader { bytes, at: 0 };
        reader.header()?;
        let log2 = reader.u8("slots")?;
        RingError::check("log2 of slots", log2.into(), 1, 16)?;
        let slots = SlotCount::new(1 << log2)?;
        let replicas = Replicas::new(reader.u8("replicas")?.into())?;
        let count = usize::from(reader.u16("shards")?);
        RingError::check("shards", count as u64, 1, SHARDS_MAX as u64)?;
        let shards = (0..count)
            .map(|_| reader.shard())
            .collect::<Result<_, _>>()?;
        let mut raw = Self {
            slots,
            replicas,
            shards,
            packed: &[],
        };
        raw.packed = reader.take("owners", packed_len(raw.all_slots(), width(count)))?;
        reader.digest()?;
        Ok(raw)
    }

    fn membership(&self) -> Result<Membership, RingError> {
        let shards = self.shards.iter().map(|shard| {
            let id = ShardId::new(&String::from_utf8_lossy(shard.id))?;
            Ok((id, Weight::new(shard.weight.into())?))
        });
        let shards = shards.collect::<Result<Vec<_>, RingError>>()?;
        if let Some(pair) = shards.windows(2).find(|pair| pair[0].0 > pair[1].0) {
            let (previous, id) = (pair[0].0.clone(), pair[1].0.clone());
            return Err(RingError::ShardOrder { id, previous });
        }
        let zones = self.shards.iter().map(|shard| match shard.zone {
            [] => Ok(None),
            zone => Zone::new(&String::from_utf8_lossy(zone)).map(Some),
        });
        let zones = zones.collect::<Result<Vec<_>, RingError>>()?;
        let ids: Vec<_> = shards.iter().map(|(id, _)| id.clone()).collect();
        let zone_of = |id: &ShardId| zones[ids.binary_search(id).expect("one of them")].clone();
        Membership::new(self.slots, shards)?.replicated(self.replicas, zone_of)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// How many bytes are read.
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], RingError> {
        let (len, needed) = (self.bytes.len(), self.at + count);
        let taken = self.bytes.get(self.at..needed);
        self.at = needed;
        taken.ok_or(RingError::Truncated { field, len, needed })
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], RingError> {
        Ok(self.take(field, N)?.try_into().expect("N bytes were taken"))
    }

    fn u8(&mut self, field: &'static str) -> Result<u8, RingError> {
        self.array(field).map(|[byte]| byte)
    }

    fn u16(&mut self, field: &'static str) -> Result<u16, RingError> {
        self.array(field).map(u16::from_le_bytes)
    }

    fn header(&mut self) -> Result<(), RingError> {
        let value = self.array("magic")?;
        if value != MAGIC {
            return Err(RingError::Magic {
                value,
                expected: MAGIC,
            });
        }
        match self.u8("version")? {
            VERSION => Ok(()),
            value => Err(RingError::Version {
                value,
                newest: VERSION,
            }),
        }
    }

    fn shard(&mut self) -> Result<RawShard<'a>, RingError> {
        Ok(RawShard {
            id: self.name("shard id length", "shard id")?,
            weight: self.u16("weight")?,
            zone: self.name("zone length", "zone")?,
        })
    }

    fn name(&mut self, length: &'static str, name: &'static str) -> Result<&'a [u8], RingError> {
        let len = self.u8(length)?;
        self.take(name, len.into())
    }

    /// Checks that the digest comes next, is right and comes last.
    fn digest(&mut self) -> Result<(), RingError> {
        let expected = xxh3_64(&self.bytes[..self.at]);
        let value = self.array("digest").map(u64::from_le_bytes)?;
        if self.at != self.bytes.len() {
            let len = self.bytes.len();
            return Err(RingError::TrailingBytes {
                len,
                expected: self.at,
            });
        }
        match value == expected {
            true => Ok(()),
            false => Err(RingError::Digest { value, expected }),
        }
    }
}
