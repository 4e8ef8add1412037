//! Waiting for a lock, and giving up.

use std::time::Duration;

use ringfence_client::{AcquireError, Effect};
use ringfence_coordinator::shard::Lane;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{LEASE, SECOND, client_of, faults, freed_within, held};

#[tokio::test(start_paused = true)]
async fn a_held_lock_is_refused_and_names_its_holder() {
    let client = client_of(1).await;
    let _guard = client
        .lock("key")
        .label("payroll")
        .try_acquire()
        .await
        .unwrap();
    let refused = client.lock("key").try_acquire().await.unwrap_err();
    let AcquireError::Held {
        holder, remaining, ..
    } = &refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!(holder.as_str(), "payroll");
    assert!(*remaining <= LEASE);
    assert!(refused.is_retryable());
    assert_eq!(refused.effect(), Effect::None);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_and_gives_its_reason() {
    let client = client_of(1).await;
    let _guard = held(&client, "key").await;
    let asked = Instant::now();
    let gave_up = client
        .lock("key")
        .wait(5 * SECOND)
        .acquire()
        .await
        .unwrap_err();
    let AcquireError::TimedOut { waited, because } = gave_up else {
        panic!("{gave_up:?}")
    };
    assert_eq!(waited, 5 * SECOND);
    assert!(matches!(*because, AcquireError::Held { .. }), "{because:?}");
    assert!(asked.elapsed() < 5 * SECOND + Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_lock_when_it_is_released() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    let token = guard.token();
    let lock = client.lock("key");
    let (next, _) = tokio::join!(lock.acquire(), async {
        sleep(SECOND).await;
        guard.release().await
    });
    assert!(next.unwrap().token() > token);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_costs_neither_the_lock_nor_a_second_token() {
    let client = client_of(1).await;
    faults(&client).lose_reply(Lane::Work, 1);
    let guard = client.lock("key").acquire().await.unwrap();
    let recorded = client.lock("key").inspect().await.unwrap().holder.unwrap();
    assert_eq!(recorded.token, guard.token());
    assert_eq!(
        guard.token().counter(),
        1,
        "what the lost reply had granted"
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_with_an_unknown_outcome_is_given_back() {
    let client = client_of(1).await;
    faults(&client).lose_reply(Lane::Work, 1);
    let unknown = client.lock("key").try_acquire().await.unwrap_err();
    assert_eq!(unknown.effect(), Effect::Unknown);
    assert!(unknown.is_retryable());
    freed_within(&client, "key", SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn at_most_one_of_many_holds_a_lock_and_tokens_rise() {
    let client = client_of(3).await;
    let mut tasks = JoinSet::new();
    let holders = std::sync::Arc::new(std::sync::Mutex::new((
        0,
        ringfence_client::Token::default(),
    )));
    for _ in 0..20 {
        let (client, holders) = (client.clone(), holders.clone());
        tasks.spawn(async move {
            for _ in 0..10 {
                let guard = client.lock("hot").acquire().await.unwrap();
                {
                    let mut now = holders.lock().unwrap();
                    now.0 += 1;
                    assert_eq!(now.0, 1, "two holders");
                    assert!(guard.token() > now.1, "tokens rise");
                    now.1 = guard.token();
                }
                sleep(Duration::from_millis(3)).await;
                holders.lock().unwrap().0 -= 1;
                guard.release().await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn names_out_of_bounds_are_refused_and_named() {
    let client = client_of(1).await;
    let refused = async |key: &[u8], namespace: &str| {
        client
            .lock(key)
            .namespace(namespace)
            .try_acquire()
            .await
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(b"", "default").await,
        "key is empty: it has 1 to 512 bytes"
    );
    assert_eq!(
        refused(&[7; 513], "default").await,
        "key has 513 bytes: at most 512"
    );
    assert!(
        refused(b"key", "No Such")
            .await
            .starts_with("namespace \"No Such\": 1 to 64 of")
    );
}

#[tokio::test(start_paused = true)]
async fn namespaces_do_not_share_keys() {
    let client = client_of(1).await;
    let _one = client
        .lock("key")
        .namespace("one")
        .try_acquire()
        .await
        .unwrap();
    client
        .lock("key")
        .namespace("two")
        .try_acquire()
        .await
        .unwrap()
        .release()
        .await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_closed_client() {
    let client = client_of(1).await;
    let _guard = held(&client, "key").await;
    let lock = client.lock("key");
    let (waited, _) = tokio::join!(lock.acquire(), async {
        sleep(SECOND).await;
        client.close().await
    });
    assert!(matches!(waited, Err(AcquireError::Closed)), "{waited:?}");
    let asked = client.lock("other").acquire().await;
    assert!(matches!(asked, Err(AcquireError::Closed)), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_too_long_is_refused_and_the_key_stays_in_use() {
    let client = client_of(1).await;
    for length in [Duration::from_secs(1 << 63), Duration::MAX] {
        let refused = client.lock("key").hold_for(length).try_acquire().await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, AcquireError::HoldTooLong(its) if its == length));
        assert!(
            refused.to_string().contains("at most 315360000s"),
            "{refused}"
        );
        assert!(!refused.is_retryable());
    }
    let longest = Duration::from_secs(315_360_000);
    let guard = client.lock("key").hold_for(longest).try_acquire().await;
    assert!(guard.unwrap().remaining() <= longest);
    drop(client.lock("key").wait(SECOND).acquire().await.unwrap());
}
