//! What lies under a queue's names.

use ringfence_coordinator::{
    limits::{BATCH_MAX, RECHECK_MAX, TICKET_KEEP, WAITERS_MAX},
    shard::Reply,
};
use ringfence_test_support::eventually;
use tokio::time::sleep;

use super::{Desk, acquire, assert_held, key, release};

fn names(text: &[u8]) -> [String; 2] {
    let text = std::str::from_utf8(text).unwrap();
    ["queue", "tickets"].map(|part| format!("ringfence:{part}:{text}"))
}

#[tokio::test]
async fn nothing_is_left_of_a_queue_when_its_last_ticket_has_ended() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    let before: u64 = desk.ask(&["DBSIZE"]).await;
    desk.one(acquire(&key, 1)).await;
    assert_held(&desk.one(acquire(&key, 2)).await, Some(0));
    assert_held(&desk.one(acquire(&key, 3)).await, Some(1));
    // The record, the queue's two, and what says that there may be queues.
    assert_eq!(desk.ask::<u64>(&["DBSIZE"]).await, before + 4);
    sleep(TICKET_KEEP).await;
    // What has expired is removed a little later.
    let raw = &desk.raw;
    eventually("the queue is gone", || {
        let mut raw = raw.clone();
        async move {
            let left: u64 = redis::cmd("DBSIZE").query_async(&mut raw).await.unwrap();
            left == before + 1
        }
    })
    .await;
    assert_held(&desk.one(acquire(&key, 4)).await, Some(0));
}

#[tokio::test]
async fn nothing_is_left_of_a_queue_that_everybody_left() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    for one in 1..=3 {
        desk.one(acquire(&key, one)).await;
    }
    for one in [3, 2, 1] {
        desk.one(release(&key, one)).await;
    }
    for name in names(key.text()) {
        assert_eq!(desk.ask::<u64>(&["EXISTS", &name]).await, 0, "{name}");
    }
}

#[tokio::test]
async fn a_foreign_value_under_a_queues_name_blocks_no_request() {
    for foreign in [0, 1] {
        let (mut desk, key, other) = (Desk::quiet().await, key("key"), key("other"));
        let name = &names(key.text())[foreign];
        desk.one(acquire(&other, 8)).await;
        desk.one(acquire(&other, 9)).await;
        let () = desk.ask(&["SET", name, "foreign"]).await;

        let replies = desk
            .batch(&[acquire(&key, 1), acquire(&key, 2), acquire(&key, 1)])
            .await;
        assert!(matches!(replies[0], Reply::Granted { .. }), "{replies:?}");
        assert_held(&replies[1], None);
        assert!(
            matches!(
                replies[2],
                Reply::Granted {
                    contended: false,
                    ..
                }
            ),
            "{replies:?}"
        );
        let batch = [release(&other, 8), release(&key, 1), release(&other, 9)];
        let held = Reply::Released { held: true };
        assert_eq!(desk.batch(&batch).await, [held.clone(), held.clone(), held]);
        let reply = desk.one(acquire(&key, 3)).await;
        assert!(matches!(reply, Reply::Granted { .. }), "{reply:?}");
        assert_eq!(desk.ask::<String>(&["GET", name]).await, "foreign");
    }
}

#[tokio::test]
async fn a_full_queue_has_room_again_as_tickets_end() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    let [places, tickets] = names(key.text());
    // The first of them holds it.
    let all: Vec<_> = (0..=u64::from(WAITERS_MAX))
        .map(|one| acquire(&key, one))
        .collect();
    let end_at = async |desk: &mut Desk, ms: &str| {
        let end_all = "for _, nonce in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
            local ticket = redis.call('HGET', KEYS[2], nonce)
            redis.call('HSET', KEYS[2], nonce, (string.gsub(ticket, '%d+|(%d+)$', ARGV[1] .. '|%1')))
        end";
        let () = desk
            .ask(&["EVAL", end_all, "2", &places, &tickets, ms])
            .await;
    };
    for batch in all.chunks(BATCH_MAX) {
        desk.batch(batch).await;
        // On a slow machine the first ones would end before the last ones come. An end so far away counts as a whole length.
        end_at(&mut desk, "9999999999999").await;
    }
    assert_eq!(desk.ask::<u32>(&["ZCARD", &places]).await, WAITERS_MAX);
    match desk.one(acquire(&key, 1_000_000)).await {
        Reply::TooManyWaiters { retry_after } => assert!(retry_after <= RECHECK_MAX),
        other => panic!("it is full: {other:?}"),
    }
    assert_held(&desk.one(acquire(&key, 7)).await, Some(6));

    end_at(&mut desk, "1").await;
    match desk.one(acquire(&key, 1_000_000)).await {
        Reply::Held {
            position: Some(before),
            ..
        } => assert!(before < WAITERS_MAX),
        other => panic!("there is room: {other:?}"),
    }
    // All others have ended.
    desk.one(release(&key, 0)).await;
    let reply = desk.one(acquire(&key, 1_000_000)).await;
    assert!(
        matches!(
            reply,
            Reply::Granted {
                contended: false,
                ..
            }
        ),
        "{reply:?}"
    );
}
