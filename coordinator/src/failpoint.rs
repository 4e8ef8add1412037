//! Rules that a test switches off to see what they are there for, and points at which it has a process
//! killed.
//!
//! Without the feature `failpoints` every rule is in force, nothing is killed, and asking costs nothing.

/// A rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
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
    /// A shard takes no step of a move once it has taken one of a later move, or a later one of it.
    StepGuard = 16,
    /// A shard says that it has a lock that its holder brings along only where the slot comes, or has come,
    /// by that very move.
    AdoptByMove = 32,
    /// A loan that is asked for again is the loan of before.
    LendOnce = 64,
    /// A segment remembers what it has decided.
    RememberIds = 128,
    /// Only its destination's answer ends a transfer that is sent.
    SettleByDestination = 256,
    /// A mover lists what is left in slots only once they are sealed.
    ListAfterSeal = 1 << 16,
    /// A mover opens a slot at its next shard only once it is empty at the former.
    OpenWhenEmpty = 1 << 17,
    /// A mover ends a move only in the record that it read before the slots were opened.
    FinishAtVersion = 1 << 18,
}

/// Whether `rule` is switched off.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn is_off(_: Rule) -> bool {
    false
}

/// Kills this process, if the environment says so.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn reach(_: &str) {}

#[cfg(feature = "failpoints")]
pub use kill::KILL_AT;
#[cfg(feature = "failpoints")]
pub(crate) use kill::reach;
#[cfg(feature = "failpoints")]
pub(crate) use switch::is_off;
#[cfg(feature = "failpoints")]
pub use switch::{Off, switch_off};

#[cfg(feature = "failpoints")]
mod switch {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::Rule;

    /// The rules that are switched off, in all of this process.
    static OFF: AtomicU32 = AtomicU32::new(0);

    pub(crate) fn is_off(rule: Rule) -> bool {
        OFF.load(Relaxed) & rule as u32 != 0
    }

    /// Switches `rule` off in all of this process, until the answer is dropped.
    #[must_use]
    pub fn switch_off(rule: Rule) -> Off {
        OFF.fetch_or(rule as u32, Relaxed);
        Off(rule)
    }

    /// A rule that is switched off.
    #[derive(Debug)]
    pub struct Off(Rule);

    impl Drop for Off {
        fn drop(&mut self) {
            OFF.fetch_and(!(self.0 as u32), Relaxed);
        }
    }
}

#[cfg(feature = "failpoints")]
mod kill {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    use nix::sys::signal::{Signal, raise};

    /// The environment variable that names the point at which this process kills itself, and the how
    /// manieth time it gets there: `sealed`, or `sealed:3`. Read once.
    pub const KILL_AT: &str = "RINGFENCE_KILL_AT";

    /// Name of the point, and how often it is reached first.
    static AT: OnceLock<Option<(String, AtomicU32)>> = OnceLock::new();

    pub(crate) fn reach(point: &str) {
        let read = || Some(parse(&std::env::var(KILL_AT).ok()?));
        let Some((name, left)) = AT.get_or_init(read) else {
            return;
        };
        if name == point && left.fetch_sub(1, Relaxed) == 1 {
            raise(Signal::SIGKILL).expect("every process may kill itself");
        }
    }

    fn parse(text: &str) -> (String, AtomicU32) {
        let (name, nth) = text.split_once(':').unwrap_or((text, "1"));
        (name.to_owned(), AtomicU32::new(nth.parse().unwrap_or(1)))
    }
}
