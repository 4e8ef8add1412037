//! What an audit can find.

use std::fmt;

use ringfence_client::Token;
use serde::{Serialize, Serializer};

use crate::demo::bank::{Deduction, OpId};

/// One thing that must not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    /// Where.
    pub(crate) account: u32,
    /// What.
    #[serde(flatten)]
    pub(crate) finding: Finding,
}

/// What must not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Finding {
    /// What left the balance is not the sum of the deductions.
    Lost {
        /// The sum of the journal.
        deducted: i64,
        /// What the balance fell by.
        fell: i64,
        /// The first deduction that was overwritten; else the last one of all.
        of: Option<Stamp>,
    },
    /// A deduction was made again on top of another, from a balance that was no longer true.
    Overwritten {
        /// The deduction whose effect is gone; none: the opening of the account.
        of: Option<Stamp>,
        /// The balance it left.
        left: i64,
        /// The one that came after.
        by: Stamp,
        /// The balance that one had read.
        read: i64,
    },
    /// One deduction is in the journal twice.
    Doubled {
        /// The second time.
        of: Stamp,
        /// Where the first time.
        first_account: u32,
        /// The first time.
        first: Stamp,
    },
    /// A token that is not greater than the one before: of an older lock, or of two at once.
    OutOfOrder {
        /// The one too late.
        of: Stamp,
        /// The one before it.
        after: Stamp,
    },
    /// A deduction left less than nothing.
    Negative {
        /// Which.
        of: Stamp,
        /// What it left.
        left: i64,
    },
}

/// A deduction's name and its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stamp {
    /// Which deduction.
    pub(crate) op: OpId,
    /// Made under this token, if under a lock.
    #[serde(serialize_with = "as_text")]
    pub(crate) token: Option<Token>,
}

/// A token has 63 bits, and many readers of JSON 53.
fn as_text<S: Serializer>(token: &Option<Token>, serializer: S) -> Result<S::Ok, S::Error> {
    match token {
        Some(token) => serializer.collect_str(token),
        None => serializer.serialize_none(),
    }
}

impl From<&Deduction> for Stamp {
    fn from(deduction: &Deduction) -> Self {
        Self {
            op: deduction.op,
            token: deduction.token,
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.token {
            Some(token) => write!(formatter, "op {} (token {token})", self.op),
            None => write!(formatter, "op {} (no token)", self.op),
        }
    }
}

impl Violation {
    /// By how much the balance differs from the sum of what was taken.
    pub(crate) fn coins_off(&self) -> u64 {
        match self.finding {
            Finding::Lost { deducted, fell, .. } => deducted.abs_diff(fell),
            _ => 0,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "account {}: {}", self.account, self.finding)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { deducted, fell, of } => {
                write!(out, "lost: {deducted} deducted, balance fell by {fell}")?;
                of.map_or(Ok(()), |of| write!(out, ", from {of} on"))
            }
            Self::Overwritten { of, left, by, read } => {
                let what = of.map_or_else(|| "the opening".into(), |of| of.to_string());
                write!(
                    out,
                    "overwritten: {what} left {left}, but {by} had read {read}"
                )
            }
            Self::Doubled {
                of,
                first_account,
                first,
            } => {
                write!(
                    out,
                    "doubled: {of}, first at account {first_account}: {first}"
                )
            }
            Self::OutOfOrder { of, after } => write!(out, "out of order: {of} came after {after}"),
            Self::Negative { of, left } => write!(out, "negative: {of} left {left}"),
        }
    }
}
