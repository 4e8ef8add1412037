//! Keys from the values that callers have, and locks that are kept.

use std::time::Duration;

use ringfence_client::{AcquireError, Client, Error, Lock, LockLost, NameError, ReleaseAnswer};

use super::{SECOND, client_of, held};

/// A service that keeps its lock.
struct Service {
    lock: Lock,
}

impl Service {
    fn new(client: &Client, key: String) -> Self {
        Self {
            lock: client.lock(key).lease(5 * SECOND),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_may_be_kept_and_sent_and_outlives_its_client() {
    let client = client_of(3).await;
    let service = Service::new(&client, "kept".into());
    drop(client);
    let taken = async |lock: Lock| lock.acquire().await.unwrap().release().await;
    assert_eq!(taken(service.lock.clone()).await, ReleaseAnswer::Held);
    let guard = service.lock.acquire().await.unwrap();
    let refused = service.lock.try_acquire().await;
    assert!(
        matches!(refused, Err(AcquireError::Held { .. })),
        "{refused:?}"
    );
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test(start_paused = true)]
async fn integers_tuples_and_text_name_the_same_locks() {
    let client = client_of(3).await;
    let _order = held(&client, "order/42").await;
    let _number = held(&client, "42").await;
    for lock in [
        client.lock(("order", 42)),
        client.lock((String::from("order"), 42_u64)),
        client.lock(b"order/42".to_vec()),
        client.lock(42_u8),
        client.lock(42_i64),
    ] {
        let refused = lock.try_acquire().await;
        assert!(
            matches!(refused, Err(AcquireError::Held { .. })),
            "{refused:?}"
        );
    }
    drop(client.lock(("order/42", "")).try_acquire().await.unwrap());
    let empty = client.lock("").acquire().await.unwrap_err();
    assert!(matches!(empty, AcquireError::Name(NameError::KeyEmpty)));
}

#[tokio::test(start_paused = true)]
async fn a_loss_converts_and_a_message_is_short() {
    let client = client_of(1).await;
    let _holder = held(&client, "key").await;
    let work = async |wait| -> Result<(), Error> {
        let guard = client.lock("key").wait(wait).acquire().await?;
        guard.run_while_held(async {}).await?;
        Ok(())
    };
    let late = work(Duration::from_nanos(1_234_567_891)).await.unwrap_err();
    let late = late.to_string();
    assert!(
        late.starts_with("not acquired within 1.235s: held by test for at most "),
        "{late}"
    );
    let lost = Error::from(LockLost).to_string();
    assert_eq!(lost, "the lock is no longer held");
}
