//! Rules that a test switches off to see their effect, and points at which it kills a process.
//!
//! Without the feature `failpoints` every rule is in force, no process is killed, and the checks
//! cost nothing.

/// A rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Rule {
    /// A life that is armed grants nothing new until previous holders could put their records back.
    Grace = 1,
    /// A server that was demoted and promoted again lives another life: its replication id is part
    /// of its life's name.
    ReplicationId = 2,
    /// Every script compares the server's replication id with the one that its connection read.
    LifeInScript = 4,
    /// A release goes behind an unanswered renewal.
    ReleaseBehindRenewal = 8,
    /// A shard applies no step of a move after a later step of it, or a step of a later move.
    StepGuard = 16,
    /// A shard adopts a holder's lock only in a slot that comes to it, or has come, by that very
    /// move.
    AdoptByMove = 32,
    /// A repeated request for a loan gets the former loan.
    LendOnce = 64,
    /// A segment remembers its decisions.
    RememberIds = 128,
    /// Only the destination's answer ends a transfer that is under way.
    FinishByDestination = 256,
    /// A life that is armed makes tokens of an epoch in which no token was made before.
    FreshTokens = 512,
    /// Shares at the former shard of a slot that moves take room at its next shard.
    RoomLeft = 1 << 10,
    /// No request for shares is granted before a waiter, though it fits.
    NoBarging = 1 << 11,
    /// A shard confirms and installs tokens only in an open slot.
    ConfirmWhereOpen = 1 << 12,
    /// In a recovery period, a shard neither confirms nor installs tokens.
    ConfirmAfterGrace = 1 << 13,
    /// A waiter gives the lead back if its record there is of no use, since others have the rest of the ranks.
    PassOverLead = 1 << 14,
    /// A mover lists the held keys of slots only once the slots are sealed.
    ListAfterSeal = 1 << 16,
    /// A mover opens a slot at its next shard only once it is empty at the former shard.
    OpenWhenEmpty = 1 << 17,
    /// A mover ends a move only in the record that it read before the slots were opened.
    FinishAtVersion = 1 << 18,
    /// A lock with replicas is held once a majority has its token: the others confirm it first.
    Confirm = 1 << 19,
    /// Slots of a dead shard are opened at an epoch that is allotted only once no process may use a view from before.
    EpochAfterViews = 1 << 20,
}

/// Whether `rule` is switched off.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn is_off(_: Rule) -> bool {
    false
}

/// Kills this process, if the environment demands it.
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

    /// The rules that are switched off in this process.
    static OFF: AtomicU32 = AtomicU32::new(0);

    pub(crate) fn is_off(rule: Rule) -> bool {
        OFF.load(Relaxed) & rule as u32 != 0
    }

    /// Switches `rule` off in this process, until the returned value is dropped.
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

    /// The environment variable with the point at which this process kills itself, and the number
    /// of the visit: `sealed`, or `sealed:3`. Read once.
    pub const KILL_AT: &str = "RINGFENCE_KILL_AT";

    /// The name of the point, and the number of visits that pass first.
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
