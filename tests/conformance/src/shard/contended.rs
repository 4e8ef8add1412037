//! How a holder learns that its key is contended.

use super::{
    Fixture,
    desk::{Desk, LONG, nonce, nonce_of},
    line::{Ear, HOLDER},
    shares::permits,
};
use ringfence_coordinator::shard::{LockMode, Notification, Reply};

/// Within a message's time, not at the next renewal. The first one is enough, and asks again: a message may be lost.
pub async fn a_new_ticket_is_told_to_the_holder(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, HOLDER).await;
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[]).await;
        desk.acquire(&key, nonce(), LONG).await;
        assert_eq!(ear.heard(&mut desk).await, [], "nobody waits");
        let (first, behind) = (nonce(), nonce());
        for (waiter, is_told) in [
            (first, true),
            (behind, false),
            (behind, false),
            (first, true),
        ] {
            desk.queues(&key, waiter).await;
            let contended = is_told.then(|| Notification::Contended {
                key: key.clone(),
                nonce: holder,
            });
            assert_eq!(ear.heard(&mut desk).await, Vec::from_iter(contended));
        }
    }
}

/// One message per release, and no more for each newcomer.
pub async fn a_new_ticket_is_not_told_to_a_holder_that_knows_of_contention(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, HOLDER).await;
        let (next, behind) = (nonce_of(HOLDER), nonce());
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[next, behind]).await;
        desk.release(&key, holder).await;
        let turns = ear.turns(&mut desk).await;
        assert!(turns.len() == 1 && turns[0].contended, "{turns:?}");
        desk.queues(&key, nonce()).await;
        assert_eq!(ear.heard(&mut desk).await, [], "it knows");
        desk.queues(&key, behind).await;
        assert_eq!(
            ear.contended(&mut desk).await,
            [next],
            "the turn may be lost"
        );
    }
}

/// Each of them; by the first ticket, which is enough. A holder of permits lets in no others, and needs not know.
pub async fn a_ticket_is_told_to_readers(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, HOLDER).await;
        let key = desk.key("table");
        let mut readers = [nonce_of(HOLDER), nonce_of(HOLDER)];
        for reader in readers {
            desk.share(&key, reader, LockMode::Read).await;
        }
        desk.has_no_room(&key, LockMode::Write).await;
        assert_eq!(ear.heard(&mut desk).await, [], "nobody waits");
        let (first, behind) = (nonce(), nonce());
        desk.queues_for(&key, first, LockMode::Write).await;
        let mut told = ear.contended(&mut desk).await;
        told.sort();
        readers.sort();
        assert_eq!(told, readers);
        desk.queues_for(&key, behind, LockMode::Read).await;
        assert_eq!(ear.heard(&mut desk).await, [], "they know");
        desk.queues_for(&key, first, LockMode::Write).await;
        assert_eq!(ear.contended(&mut desk).await.len(), 2, "it may be lost");

        let key = desk.key("permits");
        desk.share(&key, nonce_of(HOLDER), permits(1, 1)).await;
        desk.queues_for(&key, nonce(), permits(1, 1)).await;
        assert_eq!(ear.heard(&mut desk).await, []);
    }
}

/// What was lost is told again.
pub async fn a_recheck_is_told_to_the_holder_every_time(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, HOLDER).await;
        let waiter = nonce();
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
        for _ in 0..3 {
            desk.queues(&key, waiter).await;
        }
        assert_eq!(ear.contended(&mut desk).await, [holder; 4]);
    }
}

/// The answer to every request of the holder says it too.
pub async fn a_holder_is_told_by_renewals_and_repeats(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiter = nonce();
        let (key, (holder, token)) = desk.with_queue("key", LONG, &[]).await;
        for contended in [false, true, false] {
            assert_eq!(desk.is_contended(&key, (holder, token)).await, contended);
            let again = desk.acquire(&key, holder, LONG).await;
            let granted = Reply::Granted {
                token,
                tokens: 1,
                contended,
            };
            assert_eq!(again, granted);
            if contended {
                desk.release(&key, waiter).await;
            } else {
                desk.queues(&key, waiter).await;
            }
        }
    }
}
