//! The numbers and names of the protocol.

use std::{fmt, str::FromStr};

use crate::{
    limits::EPOCH_MAX,
    name::{hex, push_decimal},
};

/// One process that requests locks: 128 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u128);

impl fmt::Display for ClientId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

/// One acquisition: a client and a number that it never uses again.
///
/// Release and renew match the nonce, never the client: a late request of an earlier acquisition
/// cannot touch a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce {
    /// The client.
    pub client: ClientId,
    /// The number of the acquisition.
    pub sequence: u64,
}

impl Nonce {
    /// Appends `client:sequence`: 32 hex digits, a colon, a decimal number.
    pub fn push_text(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(&hex::<32>(self.client.0));
        text.push(b':');
        push_decimal(text, self.sequence);
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.client, self.sequence)
    }
}

impl FromStr for Nonce {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || format!("nonce {text:?}: 32 hex digits, a colon, a number");
        let (client, sequence) = text.split_once(':').ok_or_else(malformed)?;
        Ok(Self {
            client: ClientId(u128::from_str_radix(client, 16).map_err(|_| malformed())?),
            sequence: sequence.parse().map_err(|_| malformed())?,
        })
    }
}

/// A number that a change of the topology allots, never used again.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Seconds from 1970 to 2025-01-01 UTC, when epochs begin.
    const ORIGIN_UNIX_S: u64 = 1_735_689_600;
    /// One epoch per period, unless they are used faster.
    const PERIOD_S: u64 = 10;

    /// The epoch after `last`, and at least the number of 10 s periods since 2025: so epochs rise
    /// even if all memory of the last one is lost.
    ///
    /// `None` once they are used up, in the year 2110.
    pub fn after(last: Self, unix: std::time::Duration) -> Option<Self> {
        let periods = unix.as_secs().saturating_sub(Self::ORIGIN_UNIX_S) / Self::PERIOD_S;
        let next = periods.max(last.0 + 1);
        (next < EPOCH_MAX).then_some(Self(next))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A fencing token: greater than the tokens of all earlier grants of its key.
///
/// 63 bits: the token epoch (28) above a counter (35), both of the shard that granted it. Fits a
/// signed BIGINT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(u64);

impl Token {
    const COUNTER_BITS: u32 = 35;

    /// The token of `counter` in `epoch`.
    pub const fn new(epoch: Epoch, counter: u64) -> Self {
        Self(epoch.0 << Self::COUNTER_BITS | counter)
    }

    /// The token whose [`get`](Self::get) is `number`.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number to hand to the resource.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The same number as SQL's BIGINT.
    pub const fn as_i64(self) -> i64 {
        self.0.cast_signed()
    }

    /// The token epoch.
    pub const fn epoch(self) -> Epoch {
        Epoch(self.0 >> Self::COUNTER_BITS)
    }

    /// The counter within the epoch.
    pub const fn counter(self) -> u64 {
        self.0 & ((1 << Self::COUNTER_BITS) - 1)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The version of the topology at which a shard's own slots last changed, to the sender's
/// knowledge.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct MapVersion(pub u64);

impl MapVersion {
    /// Never a shard's version: requires every check.
    pub const UNKNOWN: Self = Self(0);

    /// Whether requests of `next` that follow those of this version are applied together with them:
    /// `next` is the same version, or none.
    pub(crate) fn takes_along(self, next: Self) -> bool {
        next == self || next == Self::UNKNOWN
    }
}

impl fmt::Display for MapVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The incarnation of a topology record (`n`): a number and the engine that chose it, compared as a
/// pair. Every member stores it as its *fence*: no request of a lower incarnation takes effect
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation {
    /// Follows the epochs' clock.
    pub number: u64,
    /// The engine that chose it, so that no two engines choose the same pair.
    pub engine: ClientId,
}

impl fmt::Display for Incarnation {
    /// 48 hex digits, so that texts compare as the pairs do.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}{}", self.number, self.engine)
    }
}

impl FromStr for Incarnation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || format!("incarnation {text:?}: 48 hex digits");
        let (number, engine) = text.split_at_checked(16).ok_or_else(malformed)?;
        let hex = |part| u128::from_str_radix(part, 16).map_err(|_| malformed());
        if engine.len() != 32 {
            return Err(malformed());
        }
        Ok(Self {
            number: hex(number)? as u64,
            engine: ClientId(hex(engine)?),
        })
    }
}

impl serde::Serialize for Incarnation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Incarnation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// One life of a shard's memory. On Redis `run_id:master_replid`: `run_id` alone stays the same
/// through a failover there and back.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Life(String);

impl Life {
    /// The life called `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The server's part of the name, which identifies one process of it.
    pub(crate) fn run_id(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }
}

impl fmt::Display for Life {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
