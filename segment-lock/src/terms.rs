//! The terms that are fixed when an account is created.

use serde::{Deserialize, Serialize};

use crate::{
    Unit, is_default,
    limits::{
        AMOUNT_MAX, EFFECTS_MAX, EFFECTS_MS_MAX, IDEMPOTENCY_MS_MAX, IDS_MAX, REPLICAS_MAX,
        SKEW_MS_MAX,
    },
};

/// A term outside its range. A repeat of the call cannot succeed; nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, must be {min} to {max}")]
pub struct TermsError {
    /// The term.
    pub field: &'static str,
    /// The refused number.
    pub value: i128,
    /// The least allowed number.
    pub min: i128,
    /// The greatest allowed number.
    pub max: i128,
}

/// The failures that an acknowledged change survives. There is no default: choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// None: a shard that restarts may have forgotten the change. Then the account is marked, and continues.
    Memory,
    /// The change is on the disk of its shard. A server that does not sync every write is refused.
    Disk,
    /// This many replicas of its shard have the change too, 1 to [`REPLICAS_MAX`].
    Replicas(u8),
}

/// The unit and the limits of an account's money, how long and how many answers are remembered, and how far clocks may
/// differ. All segments of an account have the same terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredTerms", into = "StoredTerms")]
pub struct Terms {
    /// How long the first answer to a request is remembered, from the request's creation, in ms. Later, a repeat is
    /// refused as `too_old`: it never takes effect again. This is an aim: a full segment remembers answers for a
    /// shorter time, see `idempotency_at_least_ms`.
    pub idempotency_for_ms: u64,
    /// How long even a full segment remembers the first answer, in ms; at most `idempotency_for_ms`. A full segment
    /// drops the oldest final answers down to this age.
    pub idempotency_at_least_ms: u64,
    /// How far ahead of a segment's clock the creation time of a request may be, in ms.
    pub skew_ms: u64,
    /// Most answers that one segment remembers, unfinished transfers included. A full segment
    /// takes `ids_max / idempotency_at_least_ms` new requests per ms, and refuses the rest.
    pub ids_max: usize,
    /// Most effects that one segment keeps in its log. 0: it has no log. The oldest ones are dropped.
    pub effects_max: usize,
    /// How long a segment keeps an effect, in ms. Sweeps drop older ones.
    pub effects_for_ms: u64,
    /// The durability of acknowledged changes.
    pub durability: Durability,
    /// The least ledger balance: 0, or below 0 by the account's credit line. The credit counts as money that may be spent.
    pub floor: i64,
    /// The greatest ledger balance. Only accounts of one segment can have it. Deposits beyond are refused, and transfers
    /// return.
    pub ceiling: Option<i64>,
    /// The unit. Transfers between accounts of different units are refused.
    pub unit: Unit,
}

/// Terms as a manifest has them: those of [`Terms::new`] are left out, so these never change.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTerms {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency_for_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency_at_least_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skew_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ids_max: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effects_max: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effects_for_ms: Option<u64>,
    durability: Durability,
    #[serde(default, skip_serializing_if = "is_default")]
    floor: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ceiling: Option<i64>,
    #[serde(default, skip_serializing_if = "is_default")]
    unit: Unit,
}

impl From<Terms> for StoredTerms {
    fn from(terms: Terms) -> Self {
        fn unusual<T: PartialEq>(value: T, usual: T) -> Option<T> {
            (value != usual).then_some(value)
        }
        let usual = Terms::new(terms.durability);
        Self {
            idempotency_for_ms: unusual(terms.idempotency_for_ms, usual.idempotency_for_ms),
            idempotency_at_least_ms: unusual(
                terms.idempotency_at_least_ms,
                usual.idempotency_at_least_ms,
            ),
            skew_ms: unusual(terms.skew_ms, usual.skew_ms),
            ids_max: unusual(terms.ids_max, usual.ids_max),
            effects_max: unusual(terms.effects_max, usual.effects_max),
            effects_for_ms: unusual(terms.effects_for_ms, usual.effects_for_ms),
            durability: terms.durability,
            floor: terms.floor,
            ceiling: terms.ceiling,
            unit: terms.unit,
        }
    }
}

impl From<StoredTerms> for Terms {
    fn from(stored: StoredTerms) -> Self {
        let usual = Self::new(stored.durability);
        Self {
            idempotency_for_ms: stored
                .idempotency_for_ms
                .unwrap_or(usual.idempotency_for_ms),
            idempotency_at_least_ms: (stored.idempotency_at_least_ms)
                .unwrap_or(usual.idempotency_at_least_ms),
            skew_ms: stored.skew_ms.unwrap_or(usual.skew_ms),
            ids_max: stored.ids_max.unwrap_or(usual.ids_max),
            effects_max: stored.effects_max.unwrap_or(usual.effects_max),
            effects_for_ms: stored.effects_for_ms.unwrap_or(usual.effects_for_ms),
            durability: stored.durability,
            floor: stored.floor,
            ceiling: stored.ceiling,
            unit: stored.unit,
        }
    }
}

impl Terms {
    /// No credit, no ceiling, no unit; 24 hours, 60 s, 10 s, eight million (133,000 requests per second and segment),
    /// 100,000 effects, 7 days.
    pub const fn new(durability: Durability) -> Self {
        Self {
            idempotency_for_ms: 24 * 60 * 60 * 1000,
            idempotency_at_least_ms: 60 * 1000,
            skew_ms: 10_000,
            ids_max: 8_000_000,
            effects_max: 100_000,
            effects_for_ms: 7 * 24 * 60 * 60 * 1000,
            durability,
            floor: 0,
            ceiling: None,
            unit: Unit::NONE,
        }
    }

    /// The same, with [`Durability::Memory`].
    pub const fn in_memory() -> Self {
        Self::new(Durability::Memory)
    }

    /// The same, with [`Durability::Disk`].
    pub const fn on_disk() -> Self {
        Self::new(Durability::Disk)
    }

    /// The credit line: how far the ledger balance may be below 0.
    pub fn credit(&self) -> i64 {
        self.floor.saturating_neg()
    }

    /// The part of what a segment has that does not count towards its account's ceiling, if it has one.
    pub fn credit_above_ceiling(&self) -> i64 {
        self.ceiling.map_or(0, |_| self.credit())
    }

    /// The most that a segment may have, with the credit line and with held money.
    pub fn owned_max(&self) -> i64 {
        self.ceiling
            .map_or(AMOUNT_MAX, |ceiling| ceiling.saturating_add(self.credit()))
    }

    /// Checks that all terms are in their ranges.
    ///
    /// # Errors
    ///
    /// The first term out of range, with its least and its greatest value.
    pub fn check(&self) -> Result<(), TermsError> {
        let replicas = match self.durability {
            Durability::Replicas(count) => count,
            Durability::Memory | Durability::Disk => 1,
        };
        let most = i128::from(AMOUNT_MAX);
        let floor = i128::from(self.floor);
        let ceiling = self.ceiling.map_or(floor, i128::from);
        let terms = [
            (
                "idempotency_for_ms",
                self.idempotency_for_ms.into(),
                1,
                IDEMPOTENCY_MS_MAX.into(),
            ),
            (
                "idempotency_at_least_ms",
                self.idempotency_at_least_ms.into(),
                1,
                self.idempotency_for_ms.into(),
            ),
            ("skew_ms", self.skew_ms.into(), 1, SKEW_MS_MAX.into()),
            ("ids_max", self.ids_max as i128, 1, IDS_MAX as i128),
            (
                "effects_max",
                self.effects_max as i128,
                0,
                EFFECTS_MAX as i128,
            ),
            (
                "effects_for_ms",
                self.effects_for_ms.into(),
                1,
                EFFECTS_MS_MAX.into(),
            ),
            ("replicas", replicas.into(), 1, REPLICAS_MAX.into()),
            ("floor", floor, -most, 0),
            ("ceiling", ceiling, floor, most + floor),
        ];
        match terms
            .into_iter()
            .find(|(_, value, min, max)| value < min || value > max)
        {
            None => Ok(()),
            Some((field, value, min, max)) => Err(TermsError {
                field,
                value,
                min,
                max,
            }),
        }
    }
}
