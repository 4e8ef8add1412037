//! Loans between segments that are lost one after the other.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_loan_that_its_lender_forgot_does_not_land_twice_once_its_borrower_is_lost_too() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    let lend = Lend {
        to: 1,
        seq: 1,
        want: amount(30),
        caller: OTHER,
    };
    assert!(matches!(
        scene.tell(0, lend).await,
        Ok(Reply::Lent(lent)) if lent.amount == 30
    ));
    let land = || Land {
        loan: loan(0, 1, 30),
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
