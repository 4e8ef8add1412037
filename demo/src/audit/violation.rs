//! The violations that an audit can find.

use std::fmt;

use ringfence_client::Token;
use serde::{Serialize, Serializer};

use crate::bank::{Deduction, OpId};

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    /// The account.
    pub(crate) account: u32,
    /// The kind of violation.
    #[serde(flatten)]
    pub(crate) finding: Finding,
}

/// A kind of violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Finding {
    /// The balance did not fall by the sum of the deductions.
    Lost {
        /// The sum of the journal.
        deducted: i64,
        /// The difference between the first and the last balance.
        fell: i64,
        /// The first deduction that was overwritten; otherwise the last one of all.
        of: Option<Stamp>,
    },
    /// A deduction overwrote another one, because it had read an older balance.
    Overwritten {
        /// The overwritten deduction; `None`: the opening of the account.
        of: Option<Stamp>,
        /// The balance it left.
        left: i64,
        /// The later deduction.
        by: Stamp,
        /// The balance that it had read.
        read: i64,
    },
    /// One deduction is in the journal twice.
    Doubled {
        /// The second entry.
        of: Stamp,
        /// The account of the first entry.
        first_account: u32,
        /// The first entry.
        first: Stamp,
    },
    /// A token is not greater than the one before: from an older lock, or from two holders at once.
    OutOfOrder {
        /// The late deduction.
        of: Stamp,
        /// The one before it.
        after: Stamp,
    },
    /// A deduction left a negative balance.
    Negative {
        /// The deduction.
        of: Stamp,
        /// The balance.
        left: i64,
    },
}

/// A deduction's name and its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stamp {
    /// The deduction.
    pub(crate) op: OpId,
    /// The token of its lock, if it was made under a lock.
    #[serde(serialize_with = "as_text")]
    pub(crate) token: Option<Token>,
}

/// A text, because a token has 63 bits, and many readers of JSON have 53.
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
    /// The difference between the balance and the sum of the deductions.
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
