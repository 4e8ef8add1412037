//! Guards of callers without tokio.

use std::{sync::Arc, time::Duration};

use ringfence_coordinator::{
    clock::Instant,
    engine::{Danger, LiveReplicas, ReleaseAnswer},
    ids::Token,
};

use super::reactor::Reactor;

/// The methods that both kinds of guards have.
macro_rules! guard {
    ($(#[$documentation:meta])* $guard:ident) => {
        $(#[$documentation])*
        #[derive(Debug)]
        #[must_use = "dropping the guard releases the lock"]
        pub struct $guard {
            // Dropped first: it may be the last handle of its client.
            guard: crate::$guard,
            reactor: Arc<Reactor>,
        }

        impl $guard {
            pub(super) fn new(guard: crate::$guard, reactor: &Arc<Reactor>) -> Self {
                let reactor = reactor.clone();
                Self { guard, reactor }
            }

            /// The time until which it is certainly held. Renewals move it.
            pub fn deadline(&self) -> Instant {
                self.guard.deadline()
            }

            /// How long it is certainly held from now on; zero once it is not.
            pub fn remaining(&self) -> Duration {
                self.guard.remaining()
            }

            /// The time when it comes into danger.
            pub fn danger_at(&self) -> Instant {
                self.guard.danger_at()
            }

            /// Whether it is held now.
            pub fn is_held(&self) -> bool {
                self.guard.is_held()
            }

            /// Blocks this thread until it is in danger, or lost.
            pub fn danger(&self) -> Danger {
                self.reactor.wait(self.guard.danger())
            }

            /// Blocks this thread until it is no longer held, for any reason; at the latest until the deadline.
            pub fn lost(&self) {
                self.reactor.wait(self.guard.lost());
            }

            /// Releases it, and returns whether it was held until now.
            pub fn release(self) -> ReleaseAnswer {
                self.reactor.wait(self.guard.release())
            }
        }
    };
}

guard! {
    /// A held lock: [`Guard`](crate::Guard). Dropping it releases the lock in the background.
    Guard
}

guard! {
    /// A set of held locks: [`MultiGuard`](crate::MultiGuard). Dropping it releases all of them in the background.
    MultiGuard
}

impl Guard {
    /// The replicas of the lock, and how many of them have it.
    pub fn replicas(&self) -> LiveReplicas {
        self.guard.replicas()
    }

    /// The fencing token, for the resource that the lock protects.
    pub fn token(&self) -> Token {
        self.guard.token()
    }

    /// Makes a writer of a read-write lock a reader: [`Guard::downgrade`](crate::Guard::downgrade).
    pub fn downgrade(&self) -> bool {
        // It starts a renewal.
        self.reactor.wait(async { self.guard.downgrade() })
    }
}

impl MultiGuard {
    /// The fencing token of each key, in the order in which the keys were given.
    pub fn tokens(&self) -> Vec<Token> {
        self.guard.tokens()
    }
}
