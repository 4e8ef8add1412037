//! An owner may enter again.

use ringfence_client::{AcquireError, Owner, ReleaseAnswer};
use tokio::time::{Instant, sleep};

use super::{LEASE, SECOND, client_of, faults, is_recorded, seeded};

#[tokio::test(start_paused = true)]
async fn an_owner_enters_again_with_the_same_token_and_leaves_last() {
    let client = client_of(1).await;
    let owner = Owner::new();
    let first = client.lock("key").owner(&owner).acquire().await.unwrap();
    let second = client
        .lock("key")
        .owner(&owner)
        .try_acquire()
        .await
        .unwrap();
    assert_eq!(first.token(), second.token());

    assert_eq!(first.release().await, ReleaseAnswer::Held);
    assert!(second.is_held());
    assert!(is_recorded(&client, "key").await);

    assert_eq!(second.release().await, ReleaseAnswer::Held);
    assert!(!is_recorded(&client, "key").await);
}

#[tokio::test(start_paused = true)]
async fn nobody_else_enters() {
    let client = client_of(1).await;
    let _held = client
        .lock("key")
        .owner(&Owner::new())
        .acquire()
        .await
        .unwrap();
    for other in [Some(Owner::new()), None] {
        let lock = client.lock("key");
        let lock = other.iter().fold(lock, |lock, owner| lock.owner(owner));
        let refused = lock.try_acquire().await;
        assert!(
            matches!(refused, Err(AcquireError::Held { .. })),
            "{refused:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_hold_is_over_asks_again() {
    let client = client_of(1).await;
    let owner = Owner::new();
    let first = client.lock("key").owner(&owner).acquire().await.unwrap();
    faults(&client).stall();
    first.lost().await;
    faults(&client).resume();
    let second = client
        .lock("key")
        .owner(&owner)
        .wait(LEASE)
        .acquire()
        .await
        .unwrap();
    assert!(second.token() > first.token());
    assert_eq!(first.release().await, ReleaseAnswer::Lost);
    assert!(second.is_held());
    assert!(is_recorded(&client, "key").await);
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_one_client_is_nobody_to_another() {
    let (one, two) = (seeded(1, 1).await, seeded(2, 1).await);
    let owner = Owner::new();
    let held_at_one = one.lock("key").owner(&owner).acquire().await.unwrap();
    let held_at_two = two.lock("key").owner(&owner).acquire().await.unwrap();
    assert!(is_recorded(&two, "key").await);
    drop(held_at_one);
    assert!(held_at_two.is_held());
}

#[tokio::test(start_paused = true)]
async fn the_lease_stays_as_it_is_when_its_owner_enters_again() {
    let client = client_of(1).await;
    let owner = Owner::new();
    let lock = || client.lock("key").owner(&owner);
    let short = lock().lease(LEASE / 3).acquire().await.unwrap();
    faults(&client).stall();
    sleep(SECOND).await;
    let left = short.remaining();
    let longer = lock().try_acquire().await.unwrap();
    let shorter = lock().lease(SECOND).hold_for(SECOND);
    let shorter = shorter.try_acquire().await.unwrap();
    for guard in [&short, &longer, &shorter] {
        assert_eq!(guard.remaining(), left);
    }

    // It is renewed by its own lease, and without renewals it ends with that.
    faults(&client).resume();
    sleep(2 * LEASE).await;
    faults(&client).stall();
    let (left, asked) = (longer.remaining(), Instant::now());
    assert!(left > LEASE / 9 && left <= LEASE / 3, "{left:?}");
    longer.lost().await;
    assert!(asked.elapsed() <= left + SECOND / 100);
    assert!(!short.is_held() && !shorter.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_fixed_hold_ends_as_early_when_its_owner_enters_again() {
    let client = client_of(1).await;
    let owner = Owner::new();
    let lock = || client.lock("key").owner(&owner);
    let asked = Instant::now();
    let first = lock().hold_for(2 * LEASE).acquire().await.unwrap();
    sleep(LEASE).await;
    let second = lock().hold_for(2 * LEASE).acquire().await.unwrap();
    let third = lock().acquire().await.unwrap();
    assert!(first.release().await == ReleaseAnswer::Held && second.is_held());
    third.lost().await;
    let lasted = asked.elapsed();
    assert!(
        lasted > 2 * LEASE - SECOND && lasted <= 2 * LEASE,
        "{lasted:?}"
    );
    assert!(!second.is_held());
}
