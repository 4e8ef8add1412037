//! Futures dropped under way: what they may have done can be found out, and no more of it comes.

use super::{
    Fixture,
    desk::{Desk, LONG, acquire, nonce, renew},
};
use crate::cancel::{after_every_turn, dropped_after};
use ringfence_coordinator::{
    ids::MapVersion,
    name::LockKey,
    shard::{Grace, LockLane, Op, Reply},
};

impl Desk {
    /// A desk at an armed shard that takes its time.
    async fn slow(fixture: &dyn Fixture) -> Self {
        drop(Self::armed(fixture, Grace::None).await);
        fixture.slow_down().await;
        Self::open(fixture, MapVersion::UNKNOWN).await
    }

    /// Sends `op` and stops waiting after `turns` turns; then goes on over a new connection, which
    /// ends that one. Whether the answer came before.
    async fn call_dropped_after(
        &mut self,
        turns: usize,
        fixture: &dyn Fixture,
        key: &LockKey,
        op: Op,
    ) -> bool {
        let batch = [self.request(key, op)];
        let call = self.link.call(&batch);
        let answered = dropped_after(turns, async || fixture.turn().await, call).await;
        let former = Some((self.link.life().clone(), self.link.connection()));
        let later = fixture.shard().connect_locks(LockLane::Work, former).await;
        self.link = later.expect("the shard can be reached");
        answered.is_some()
    }
}

/// Lets pass what must not come any more.
async fn a_while(fixture: &dyn Fixture) {
    for _ in 0..16 {
        fixture.turn().await;
    }
}

/// It is granted or not by the time there is another connection; a repeat tells, and nothing is
/// left once that is given back.
pub async fn an_acquire_dropped_after_any_turn_is_decided_by_the_next_connection(
    fixture: &dyn Fixture,
) {
    let mut desk = Desk::slow(fixture).await;
    after_every_turn("a call that acquires", async |turns| {
        let (key, holder) = (desk.key(format!("key {turns}")), nonce());
        let op = acquire(holder, LONG);
        let answered = desk.call_dropped_after(turns, fixture, &key, op).await;
        let found = desk.inspect(&key).await.map(|found| found.token);
        assert!(found.is_some() || !answered, "what was answered was done");
        a_while(fixture).await;
        let later = desk.inspect(&key).await.map(|found| found.token);
        assert_eq!(later, found, "applied after its connection was ended");

        let token = desk.granted(&key, holder, LONG).await;
        assert!(found.is_none_or(|found| found == token));
        assert_eq!(
            desk.release(&key, holder).await,
            Reply::Released { held: true }
        );
        assert_eq!(desk.inspect(&key).await, None);
        answered
    })
    .await;
}

/// The lock stays its holder's, with its token, whether it was extended or not.
pub async fn a_renewal_dropped_after_any_turn_loses_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::slow(fixture).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    after_every_turn("a call that renews", async |turns| {
        let op = renew(holder, token, LONG);
        let answered = desk.call_dropped_after(turns, fixture, &key, op).await;
        let found = desk.inspect(&key).await.expect("it is held");
        assert_eq!((found.nonce, found.token), (holder, token));
        let renewed = desk.renew(&key, (holder, token), LONG).await;
        assert_eq!(
            renewed,
            Reply::Renewed {
                reclaimed: false,
                contended: false,
                moving: None,
            }
        );
        answered
    })
    .await;
}

/// It is given back or not by the time there is another connection: a later grant of the same key
/// is not what it deletes.
pub async fn a_release_dropped_after_any_turn_is_decided_by_the_next_connection(
    fixture: &dyn Fixture,
) {
    let mut desk = Desk::slow(fixture).await;
    let key = desk.key("key");
    after_every_turn("a call that releases", async |turns| {
        let holder = nonce();
        desk.granted(&key, holder, LONG).await;
        let op = Op::Release { nonce: holder };
        let answered = desk.call_dropped_after(turns, fixture, &key, op).await;
        let found = desk.holder(&key).await;
        assert!(found.is_none() || !answered, "what was answered was done");
        a_while(fixture).await;
        assert_eq!(
            desk.holder(&key).await,
            found,
            "applied after its connection was ended"
        );

        let held = found.is_some();
        assert_eq!(desk.release(&key, holder).await, Reply::Released { held });
        answered
    })
    .await;
}

/// Nobody is kept out, and the connection it was to replace is ended by the next one if not by it.
pub async fn a_connect_dropped_after_any_turn_leaves_nothing_behind(fixture: &dyn Fixture) {
    let mut desk = Desk::slow(fixture).await;
    let (key, holder) = (desk.key("key"), nonce());
    desk.granted(&key, holder, LONG).await;
    after_every_turn("a connect", async |turns| {
        let former = Some((desk.link.life().clone(), desk.link.connection()));
        let (shard, named) = (fixture.shard(), former.clone());
        let connect = shard.connect_locks(LockLane::Work, named);
        let connected = dropped_after(turns, async || fixture.turn().await, connect).await;
        let done = connected.is_some();
        drop(connected);
        let later = fixture.shard().connect_locks(LockLane::Work, former).await;
        let mut replaced = std::mem::replace(&mut desk.link, later.expect("it can be reached"));

        let release = desk.request(&key, Op::Release { nonce: holder });
        let ended = replaced.call(&[release]).await;
        assert!(
            ended.is_err(),
            "a connection that was replaced answers: {ended:?}"
        );
        assert_eq!(desk.holder(&key).await, Some(holder));
        done
    })
    .await;
}
