//! Loans between segments that are lost one after the other.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_loan_that_its_lender_forgot_does_not_land_twice_once_its_borrower_is_lost_too() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    let lend = Lend {
        to: 1,
        landed: 0,
        want: amount(30),
        caller: OTHER,
    };
    let Ok(Reply::Lent(lent)) = scene.tell(0, lend).await else {
        panic!("it has the money");
    };
    let land = || Land {
        loan: loan(0, lent.seq, 30),
        caller: OTHER,
    };
    // The lender forgets the loan, which lands all the same.
    scene.lose(0);
    a.accept().await.unwrap();
    assert_eq!(scene.tell(1, land()).await, Ok(Reply::Landed));
    assert_eq!(scene.available().await, 10 + 30);
    scene.lose(1);
    a.accept().await.unwrap();
    assert_eq!(scene.tell(1, land()).await, Ok(Reply::Stale));
    assert_eq!(scene.available().await, 0);
    // Both lend to each other again.
    scene.skew_passes();
    for (from, to) in [(0, 1), (1, 0)] {
        let now = scene.now();
        a.deposit(&home(from, now, "in"), amount(10)).await.unwrap();
        a.deduct(&home(to, now, "out"), amount(10)).await.unwrap();
        assert_eq!(scene.available().await, 0);
        scene.clock.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request to lend to segment `to`, by a caller that read it before anything landed there.
fn late_lend(to: u32) -> Lend {
    Lend {
        to,
        landed: 0,
        want: amount(4),
        caller: OTHER,
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_lend_from_before_two_losses_loses_nothing() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    for lost in [0, 1] {
        scene.lose(lost);
        a.accept().await.unwrap();
        scene.skew_passes();
    }
    let id = home(0, scene.now(), "in");
    a.deposit(&id, amount(10)).await.unwrap();
    scene.tell(0, late_lend(1)).await.unwrap();
    assert_eq!(scene.available().await, 10);
    a.deduct(&home(1, scene.now(), "all"), amount(10))
        .await
        .unwrap();
    assert_eq!(scene.available().await, 0);
}

/// The request that accepts segment 1 as it is now, with the present version of segment 0.
fn accept_now(scene: &Scene) -> Accept {
    Accept {
        version: scene.segment(1).version,
        others: [(0, scene.segment(0).version)].into(),
        in_force: prepare(1, 0),
        at_ms: scene.now(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_replacement_is_not_accepted_by_a_read_of_before_a_later_loss() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    let replace = || Replace {
        create: Create {
            prepare: prepare(1, 0),
            terms: TERMS,
        },
        losses: 0,
        at_ms: scene.now(),
    };
    scene.lose(1);
    scene.tell(1, replace()).await.unwrap();
    let late = accept_now(&scene);
    // Another person accepts it, too, and a loan comes in.
    scene.tell(1, late.clone()).await.unwrap();
    let Ok(Reply::Lent(lent)) = scene.tell(0, late_lend(1)).await else {
        panic!("it has the money");
    };
    let land = Land {
        loan: loan(0, lent.seq, 4),
        caller: OTHER,
    };
    assert_eq!(scene.tell(1, land).await, Ok(Reply::Landed));
    scene.lose(1);
    scene.clock.fetch_add(1, Ordering::Relaxed);
    scene.tell(1, replace()).await.unwrap();
    assert_eq!(scene.tell(1, late).await, Ok(Reply::Stale));
    assert_eq!(scene.tell(1, land).await, Err(Refusal::Doubtful));
    a.accept().await.unwrap();
    assert_eq!(scene.tell(1, land).await, Ok(Reply::Stale));
    assert_eq!(scene.available().await, 96);
}

#[tokio::test(start_paused = true)]
async fn a_loan_of_a_replacement_that_is_lost_soon_does_not_land_twice() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    scene.lose(0);
    a.accept().await.unwrap();
    scene.skew_passes();
    let id = home(0, scene.now(), "in");
    a.deposit(&id, amount(10)).await.unwrap();
    let Ok(Reply::Lent(lent)) = scene.tell(0, late_lend(1)).await else {
        panic!("it has the money");
    };
    let land = Land {
        loan: loan(0, lent.seq, 4),
        caller: OTHER,
    };
    assert_eq!(scene.tell(1, land).await, Ok(Reply::Landed));
    let soon = scene.now() + 1;
    for lost in [0, 1] {
        scene.lose(lost);
    }
    scene.clock.store(soon, Ordering::Relaxed);
    a.accept().await.unwrap();
    assert_eq!(scene.tell(1, land).await, Ok(Reply::Stale));
    assert_eq!(scene.available().await, 0);
}
