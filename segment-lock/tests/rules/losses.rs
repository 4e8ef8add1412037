//! Segments that came back without their last changes go on borrowing and lending.

use std::sync::Arc;

use ringfence_segment_lock::{Counter, Storage, memory::Memory};

use super::*;

/// Two segments, of which the second lends to the first.
struct Pair {
    memory: Arc<Memory>,
    counter: Counter,
}

impl Pair {
    /// All `money` is in the second segment.
    async fn with(money: i64) -> Self {
        let memory = Arc::new(Memory::new(Box::new(|| NOW)));
        let terms = Terms {
            ids_max: 1000,
            ..TERMS
        };
        let storage = Storage::new(Arc::clone(&memory), 1);
        let counter = Counter::create(storage, account("a"), terms, 2)
            .await
            .unwrap();
        let pair = Self { memory, counter };
        pair.counter
            .deposit(&home(1, "in"), amount(money))
            .await
            .unwrap();
        pair
    }

    /// Takes all that the first segment has, and one more, so that it borrows.
    async fn borrow(&self, name: &str) {
        let want = self.segment(0).value + 1;
        let id = home(0, name);
        self.counter.deduct(&id, amount(want)).await.unwrap();
    }

    fn segment(&self, index: u32) -> Segment {
        self.memory
            .with_segments(|segments| segments[&at("a", index)].clone())
    }

    /// The segment restarts as it was at `earlier`.
    fn restart(&self, index: u32, earlier: Segment) {
        self.memory.with_segments(|segments| {
            let segment = segments.get_mut(&at("a", index)).unwrap();
            *segment = earlier;
            segment.came_back();
        });
    }

    /// Everything can be taken out, and the first segment has to borrow for it.
    async fn is_spent_to_the_last(&self) {
        let balance = self.counter.exact_balance().await.unwrap();
        assert!(!balance.counts_twice, "{balance:?}");
        let all = i64::try_from(balance.available).unwrap();
        assert!(all > self.segment(0).value, "{balance:?}");
        let id = home(0, "all");
        self.counter.deduct(&id, amount(all)).await.unwrap();
        let left = self.counter.exact_balance().await.unwrap();
        assert_eq!(left.available, 0);
    }
}

/// A request with the segment `index` of two as its home.
fn home(index: u64, name: &str) -> RequestId {
    let mut ids = (0..).map(|number| id(NOW, &format!("{name} {number}")));
    ids.find(|id| id.hash(HashKey::default()) % 2 == index)
        .unwrap()
}

#[tokio::test]
async fn a_lender_that_lost_its_last_loans_is_asked_again() {
    for lost in [1, 2, 3] {
        let pair = Pair::with(1000).await;
        pair.borrow("first").await;
        let earlier = pair.segment(1);
        for number in 0..lost {
            pair.borrow(&format!("lost {number}")).await;
        }
        pair.restart(1, earlier);
        pair.is_spent_to_the_last().await;
    }
}

#[tokio::test]
async fn a_borrower_that_lost_its_last_loans_borrows_again() {
    for lost in [1, 2, 3] {
        let pair = Pair::with(1000).await;
        pair.borrow("first").await;
        let earlier = pair.segment(0);
        for number in 0..lost {
            pair.borrow(&format!("lost {number}")).await;
        }
        pair.restart(0, earlier);
        // The last loan is still known to its lender, and counts.
        let balance = pair.counter.exact_balance().await.unwrap();
        assert!(balance.in_flight > 0, "{balance:?}");
        pair.is_spent_to_the_last().await;
    }
}

#[tokio::test]
async fn two_that_lost_different_loans_go_on() {
    for (lender, borrower) in [(0, 3), (1, 3), (2, 3), (3, 0), (3, 1), (3, 2), (2, 2)] {
        let pair = Pair::with(100_000).await;
        let mut states = Vec::new();
        for number in 0..4 {
            pair.borrow(&format!("loan {number}")).await;
            states.push([pair.segment(0), pair.segment(1)]);
        }
        let [_, earlier] = states[3 - lender].clone();
        pair.restart(1, earlier);
        let [earlier, _] = states[3 - borrower].clone();
        pair.restart(0, earlier);
        pair.is_spent_to_the_last().await;
    }
}
