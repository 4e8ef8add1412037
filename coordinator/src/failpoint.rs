//! Rules that a test switches off to see what they are there for.
//!
//! Without the feature `failpoints` every rule is in force, and asking costs nothing.

/// A rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rule {
    /// A life that is armed grants nothing new until holders of before could put their records back.
    Grace = 1,
    /// A server that was demoted and promoted again lives another life: its replication id is part
    /// of its life's name.
    ReplicationId = 2,
    /// Every script compares the server's replication id with the one that its connection read.
    LifeInScript = 4,
    /// A release goes behind a renewal that is out.
    ReleaseBehindRenewal = 8,
}

/// Whether `rule` is switched off.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn is_off(_: Rule) -> bool {
    false
}

#[cfg(feature = "failpoints")]
pub(crate) use switch::is_off;
#[cfg(feature = "failpoints")]
pub use switch::{Off, switch_off};

#[cfg(feature = "failpoints")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    use super::Rule;

    /// The rules that are switched off, in all of this process.
    static OFF: AtomicU8 = AtomicU8::new(0);

    pub(crate) fn is_off(rule: Rule) -> bool {
        OFF.load(Relaxed) & rule as u8 != 0
    }

    /// Switches `rule` off in all of this process, until the answer is dropped.
    #[must_use]
    pub fn switch_off(rule: Rule) -> Off {
        OFF.fetch_or(rule as u8, Relaxed);
        Off(rule)
    }

    /// A rule that is switched off.
    #[derive(Debug)]
    pub struct Off(Rule);

    impl Drop for Off {
        fn drop(&mut self) {
            OFF.fetch_and(!(self.0 as u8), Relaxed);
        }
    }
}
