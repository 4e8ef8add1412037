//! The participants of a model, and its bounds.

use super::{Event, Token, Verb};

/// A world to explore. Times are in ticks.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// How often each client begins an attempt.
    pub acquisitions: [u8; 2],
    /// The shards' last tokens at the beginning.
    pub tokens: [Token; 4],
    /// How long a record lasts.
    pub lease: u8,
    /// Messages that come late or are lost.
    pub late: u8,
    /// Which requests may.
    pub lates: &'static [Verb],
    /// Whether a release may.
    pub releases_late: bool,
    /// Whether a client may end without releases.
    pub crashes: bool,
    /// Whether the first rank moves from A to B.
    pub moves: bool,
    /// How often a shard comes back empty.
    pub restarts: u8,
    /// Which of them.
    pub restarting: &'static [u8],
    /// The shard whose tokens get a fresh epoch, once.
    pub raising: Option<u8>,
    /// Whether A may be removed, and how long a look at the topology is good for.
    pub view_lease: Option<u8>,
    /// Whether a holder installs its record at a shard that has none.
    pub installs: bool,
    /// Whether the lead names the released nonce.
    pub supersedes: bool,
    /// How often a client gives all ranks but the lead back, and keeps its nonce.
    pub give_backs: u8,
    /// Whether the middle of all answers is enough, without a confirm.
    pub median: bool,
    /// Whether a renewal may leave a lower token as it is.
    pub extends: bool,
    /// Whether the answer to a late renewal counts after the client's deadline at that shard.
    pub revives: bool,
    /// Whether the topology forgets the epochs that it allotted when a shard restarts.
    pub forgets: bool,
    /// Whether an operator releases the lock by force, once.
    pub forces: bool,
    /// Whether the lead has a queue.
    pub queues: bool,
    /// Whether leads change: also one that only seems to be dead, once.
    pub leads: bool,
    /// The shard that is dead from the beginning.
    pub dead: Option<u8>,
    /// Whether a shard's clock steps, once, and its record ends.
    pub steps: bool,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

/// A token.
pub(super) const fn token(epoch: u8, counter: u8) -> Token {
    Token { epoch, counter }
}

/// Counters that differ.
pub(super) const UNEQUAL: [Token; 4] = [token(1, 0), token(1, 2), token(1, 1), token(1, 0)];
/// Shard 1 has a later epoch than the move.
pub(super) const LATER: [Token; 4] = [token(1, 0), token(3, 0), token(1, 0), token(1, 0)];
/// The same, and shard 2 has that of the move.
pub(super) const LATER_EQUAL: [Token; 4] = [token(1, 0), token(3, 0), token(2, 0), token(1, 0)];

impl Configuration {
    /// The least: ranks at rest, one attempt each, leases of two ticks.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            acquisitions: [1, 1],
            tokens: UNEQUAL,
            lease: 2,
            late: 0,
            lates: &[],
            releases_late: false,
            crashes: true,
            moves: false,
            restarts: 0,
            restarting: &[],
            raising: None,
            view_lease: None,
            installs: false,
            supersedes: false,
            give_backs: 0,
            median: false,
            extends: false,
            revives: false,
            forgets: false,
            forces: false,
            queues: false,
            leads: false,
            dead: None,
            steps: false,
            reaches: &[],
        }
    }

    pub(super) fn acquiring(self, acquisitions: [u8; 2]) -> Self {
        Self {
            acquisitions,
            ..self
        }
    }

    pub(super) fn leasing(self, lease: u8) -> Self {
        Self { lease, ..self }
    }

    /// No client ends without releases.
    pub(super) fn without_crashes(self) -> Self {
        Self {
            crashes: false,
            ..self
        }
    }

    /// One message comes late, or is lost: any.
    pub(super) fn late(self) -> Self {
        Self {
            releases_late: true,
            ..self.late_at(&[Verb::Acquire, Verb::Renew, Verb::Install, Verb::Adopt])
        }
    }

    /// … a release.
    pub(super) fn late_release(self) -> Self {
        Self {
            releases_late: true,
            ..self.late_at(&[])
        }
    }

    /// … of these requests.
    pub(super) fn late_at(self, lates: &'static [Verb]) -> Self {
        Self {
            late: 1,
            lates,
            ..self
        }
    }

    /// The first rank moves, and the tokens of shard 1 are of a later epoch.
    pub(super) fn moving(self) -> Self {
        Self {
            moves: true,
            tokens: LATER,
            ..self
        }
    }

    /// One of these comes back empty, once.
    pub(super) fn restarting(self, restarting: &'static [u8]) -> Self {
        Self {
            restarts: 1,
            restarting,
            ..self
        }
    }

    pub(super) fn raising(self, shard: u8) -> Self {
        Self {
            raising: Some(shard),
            ..self
        }
    }

    /// A is removed, under leased views.
    pub(super) fn removing(self) -> Self {
        Self {
            view_lease: Some(1),
            ..self
        }
    }

    pub(super) fn installing(self) -> Self {
        Self {
            installs: true,
            ..self
        }
    }

    pub(super) fn superseding(self) -> Self {
        Self {
            supersedes: true,
            ..self
        }
    }

    pub(super) fn giving_back(self) -> Self {
        Self {
            give_backs: 1,
            ..self
        }
    }

    pub(super) fn by_median(self) -> Self {
        Self {
            median: true,
            ..self
        }
    }

    /// The middle is enough, and renewals need not confirm it.
    pub(super) fn extending(self) -> Self {
        Self {
            extends: true,
            ..self.by_median()
        }
    }

    pub(super) fn reviving(self) -> Self {
        Self {
            revives: true,
            ..self
        }
    }

    pub(super) fn forgetting(self) -> Self {
        Self {
            forgets: true,
            tokens: LATER,
            ..self.restarting(&[1])
        }
    }

    /// An operator releases the lock by force, and holders install their records.
    pub(super) fn forcing(self) -> Self {
        Self {
            forces: true,
            ..self.installing()
        }
    }

    pub(super) fn queueing(self) -> Self {
        Self {
            queues: true,
            ..self
        }
    }

    pub(super) fn leading(self) -> Self {
        Self {
            leads: true,
            ..self
        }
    }

    pub(super) fn without_shard(self, shard: u8) -> Self {
        Self {
            dead: Some(shard),
            ..self
        }
    }

    /// A clock steps. A client that ends without releases could leave a holder with a bare majority.
    pub(super) fn stepping(self) -> Self {
        Self {
            steps: true,
            ..self.without_crashes().installing()
        }
    }

    pub(super) fn reaching(self, reaches: &'static [Event]) -> Self {
        Self { reaches, ..self }
    }
}
