//! Loans between segments that are lost one after the other.

use parking_lot::Mutex;

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

fn replace(scene: &Scene) -> Replace {
    Replace {
        create: Create {
            prepare: prepare(1, 0),
            terms: TERMS,
            credit: 0,
            planned_ms: NOW,
        },
        losses: 0,
        at_ms: scene.now(),
    }
}

/// Segment 0 lends to segment 1, where the loan lands. The request that landed it.
async fn landed(scene: &Scene) -> Land {
    let Ok(Reply::Lent(lent)) = scene.tell(0, late_lend(1)).await else {
        panic!("it has the money");
    };
    let land = Land {
        loan: loan(0, lent.seq, 4),
        caller: OTHER,
    };
    assert_eq!(scene.tell(1, land).await, Ok(Reply::Landed));
    land
}

/// Segment 1, which was replaced before, is lost and replaced, a little later.
async fn lose_again(scene: &Scene) {
    scene.lose(1);
    scene.clock.fetch_add(1, Ordering::Relaxed);
    scene.tell(1, replace(scene)).await.unwrap();
}

/// Another person, who accepts the replacement while it is read; then it borrows, is lost and is replaced.
#[derive(Debug)]
struct LosesWhileRead {
    scene: Scene,
    reads: AtomicU64,
    land: Mutex<Option<Land>>,
}

#[async_trait]
impl Acts for LosesWhileRead {
    fn scene(&self) -> &Scene {
        &self.scene
    }

    async fn acts_before(&self, at: &At, request: &Request) {
        let is_read = at.index == 1 && matches!(request, Request::Inspect(_));
        // The second read of it comes after that of segment 0, and before the acceptance.
        if is_read && self.reads.fetch_add(1, Ordering::Relaxed) == 1 {
            let accept = accept_now(&self.scene);
            self.scene.tell(1, accept).await.unwrap();
            *self.land.lock() = Some(landed(&self.scene).await);
            lose_again(&self.scene).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_is_lost_while_all_are_read_is_read_again() {
    let scene = Scene::new(Durability::Memory).await;
    scene.lose(1);
    let acts = Arc::new(LosesWhileRead {
        scene,
        reads: AtomicU64::new(0),
        land: Mutex::default(),
    });
    beside(&acts).accept().await.unwrap();
    let land = acts.land.lock().take().unwrap();
    assert_eq!(acts.scene.tell(1, land).await, Ok(Reply::Stale));
    assert_eq!(acts.scene.available().await, 96);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_is_not_accepted_by_a_read_of_before_a_later_loss() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    scene.lose(1);
    scene.tell(1, replace(&scene)).await.unwrap();
    let late = accept_now(&scene);
    // Another person accepts it, too, and a loan comes in.
    scene.tell(1, late.clone()).await.unwrap();
    let land = landed(&scene).await;
    lose_again(&scene).await;
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
    let land = landed(&scene).await;
    let soon = scene.now() + 1;
    for lost in [0, 1] {
        scene.lose(lost);
    }
    scene.clock.store(soon, Ordering::Relaxed);
    a.accept().await.unwrap();
    assert_eq!(scene.tell(1, land).await, Ok(Reply::Stale));
    assert_eq!(scene.available().await, 0);
}
