//! Helpers for waiting: requests with a ticket, and listeners.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    Fixture,
    desk::{Desk, LONG, acquire, nonce, nonce_of},
};
use ringfence_coordinator::{
    clock::Instant,
    ids::{ClientId, Nonce, Token},
    limits::CLAIM_MAX,
    name::LockKey,
    shard::{Notification, Op, QueuedGrant, Reply, ShardError, Subscription, Ticket},
};

/// The first holder of a key,
pub(super) const HOLDER: ClientId = ClientId(1);
/// and a waiter for it.
pub(super) const WAITER: ClientId = ClientId(2);

/// How long a message may take on a busy machine.
const DELIVERY_MAX: Duration = Duration::from_secs(120);

/// An acquire with a ticket: one token, a long lease.
pub(super) fn queue(nonce: Nonce, sent: u64) -> Op {
    queue_for(nonce, sent, (1, CLAIM_MAX))
}

/// As [`queue`], for so many tokens and with that claim.
pub(super) fn queue_for(nonce: Nonce, sent: u64, (count, its_claim): (u32, Duration)) -> Op {
    let mut op = acquire(nonce, LONG);
    if let Op::Acquire { tokens, ticket, .. } = &mut op {
        *tokens = count;
        *ticket = Some(Ticket {
            sent: Instant::from_nanos(sent),
            claim: its_claim,
            callers: 1,
        });
    }
    op
}

impl Desk {
    /// Asks with a ticket for what somebody else has. How many tickets are before it.
    pub(super) async fn queues(&mut self, key: &LockKey, nonce: Nonce) -> u32 {
        match self.one(key, queue(nonce, 1)).await {
            Reply::Held {
                position: Some(position),
                ..
            } => position,
            other => panic!("{key} was to be held: {other:?}"),
        }
    }

    /// A key that somebody holds, and for which `waiting` queue, one after the other.
    pub(super) async fn with_queue(
        &mut self,
        name: &str,
        lease: Duration,
        waiting: &[Nonce],
    ) -> (LockKey, (Nonce, Token)) {
        let (key, holder) = (self.key(name), nonce_of(HOLDER));
        let token = self.granted(&key, holder, lease).await;
        for (position, nonce) in waiting.iter().enumerate() {
            assert_eq!(self.queues(&key, *nonce).await, position as u32);
        }
        (key, (holder, token))
    }

    /// Whether the holder of `key` is told, renewing it, that somebody waits.
    pub(super) async fn is_contended(&mut self, key: &LockKey, grant: (Nonce, Token)) -> bool {
        match self.renew(key, grant, LONG).await {
            Reply::Renewed { contended, .. } => contended,
            other => panic!("{key} was to be renewed: {other:?}"),
        }
    }
}

/// A client that listens.
pub(super) struct Ear {
    client: ClientId,
    subscription: Box<dyn Subscription>,
}

impl Ear {
    pub(super) async fn of(fixture: &dyn Fixture, client: ClientId) -> Self {
        let subscription = fixture.shard().listen(client).await;
        Self {
            client,
            subscription: subscription.expect("the shard can be reached"),
        }
    }

    pub(super) async fn next(&mut self) -> Result<Notification, ShardError> {
        let next = timeout(DELIVERY_MAX, self.subscription.next()).await;
        next.expect("there was something to hear")
    }

    /// Everything said to the client until now. Messages come in order: one more is provoked, and
    /// ends it. The shard grants.
    pub(super) async fn heard(&mut self, desk: &mut Desk) -> Vec<Notification> {
        let (last, holder, other) = (desk.key("last"), nonce_of(self.client), nonce());
        desk.granted(&last, holder, LONG).await;
        desk.queues(&last, other).await;
        for nonce in [other, holder] {
            desk.release(&last, nonce).await;
        }
        let mut heard = Vec::new();
        loop {
            match self.next().await.expect("it goes on") {
                Notification::Contended { key, .. } if key == last => return heard,
                notification => heard.push(notification),
            }
        }
    }

    /// As [`heard`](Self::heard): the turns alone.
    pub(super) async fn turns(&mut self, desk: &mut Desk) -> Vec<QueuedGrant> {
        let turn = |notification| match notification {
            Notification::Granted(turn) => Some(turn),
            Notification::Contended { .. } => None,
        };
        self.heard(desk)
            .await
            .into_iter()
            .filter_map(turn)
            .collect()
    }

    /// As [`heard`](Self::heard): the nonces that are asked for what they hold.
    pub(super) async fn contended(&mut self, desk: &mut Desk) -> Vec<Nonce> {
        let contended = |notification| match notification {
            Notification::Contended { nonce, .. } => Some(nonce),
            Notification::Granted(_) => None,
        };
        self.heard(desk)
            .await
            .into_iter()
            .filter_map(contended)
            .collect()
    }

    /// Gives up the wait for the next message after so many turns.
    pub(super) async fn dropped_after(
        &mut self,
        turns: usize,
        fixture: &dyn Fixture,
    ) -> Option<Notification> {
        let turn = async || fixture.turn().await;
        let next = crate::cancel::dropped_after(turns, turn, self.subscription.next()).await;
        next.map(|notification| notification.expect("it goes on"))
    }
}
