//! The number of segments changes while they are used.

use crate::{account, client_of, deduct_at_once, exact};

#[tokio::test(start_paused = true)]
async fn segments_come_and_go_while_coins_are_taken() {
    let client = client_of(3).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 1, 1000).await;
    let mut taken = 0;
    for segments in [4, 16, 2, 1] {
        let resegment = counter.resegment(segments);
        let (resegmented, served) =
            tokio::join!(resegment, deduct_at_once(&counters, "coins", 100));
        resegmented.unwrap();
        taken += served as i128;
    }
    assert_eq!(exact(&counter).await, 1000 - taken);
    assert_eq!(taken, 400);
    client.close().await;
}
