//! Many at once.

use super::{account, amount, client_of, deduct_at_once, exact};

#[tokio::test(start_paused = true)]
async fn as_many_are_served_as_there_is_money_for_wherever_it_is() {
    let client = client_of(3).await;
    let counters = client.counters();
    // All of it in one segment: the others borrow.
    let counter = account(&counters, "coins", 8, 100).await;
    let served = deduct_at_once(&counters, "coins", 130).await;
    assert_eq!((served, exact(&counter).await), (100, 0));
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn money_that_leaves_one_account_arrives_at_the_other() {
    let client = client_of(3).await;
    let counters = client.counters();
    let from = account(&counters, "from", 4, 100).await;
    let to = account(&counters, "to", 4, 0).await;
    for _ in 0..10 {
        let id = counters.new_request();
        from.transfer(&id, amount(7), &to).await.unwrap();
        from.transfer(&id, amount(7), &to).await.unwrap();
    }
    assert_eq!((exact(&from).await, exact(&to).await), (30, 70));
    client.close().await;
}
