//! Money that moves between two looks, just so that one look at each segment sees too little.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_segment_lock::{
    At, Counter, Segments, Storage, StorageError,
    memory::Memory,
    segment::{Collect, State},
};

use crate::*;

/// Does something of its own to the memory just before each look, knowing how many came before.
struct Meddler<F> {
    memory: Arc<Memory>,
    looks: Mutex<usize>,
    meddle: F,
}

impl<F> fmt::Debug for Meddler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meddler").finish_non_exhaustive()
    }
}

#[async_trait]
impl<F: Fn(&Memory, usize) + Send + Sync + 'static> Segments for Meddler<F> {
    fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32> {
        self.memory.place(account, taken, more)
    }

    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError> {
        if let Request::Collect(Collect { .. }) = request {
            let mut looks = self.looks.lock();
            (self.meddle)(&self.memory, *looks);
            *looks += 1;
        }
        self.memory.call(at, request).await
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        let mut answers = Vec::new();
        for (at, request) in requests {
            answers.push(self.call(&at, request).await);
        }
        answers
    }
}

/// A request whose home is segment `home` of three.
fn at_home(home: u64) -> RequestId {
    let ids = (0..).map(|name| id(NOW, &format!("request {name}")));
    ids.into_iter().find(|id| id.hash() % 3 == home).unwrap()
}

fn change(memory: &Memory, index: u32, change: Change) {
    let at = At {
        account: account("a"),
        index,
        place: 0,
    };
    memory.with_segments(|segments| {
        let segment = segments.get_mut(&at).unwrap();
        let name = format!("meddled {}", segment.version);
        assert_eq!(segment.op(&op(&name, change), NOW), recorded(State::Done));
    });
}

/// Three segments with 1, 0 and 1; and just before the look that makes it `look`, 1 more comes into
/// segment 1; then, just before the next look, 1 leaves segment 2. There are never less than 2.
async fn meddled(look: usize) -> Counter {
    let memory = Arc::new(Memory::new(Box::new(|| NOW)));
    let plain = Storage::new(Arc::clone(&memory), 1);
    let created = Counter::create(plain, account("a"), TERMS, 3)
        .await
        .unwrap();
    for index in [0, 2] {
        change(&memory, index, deposit(1));
    }
    drop(created);
    let meddle = move |memory: &Memory, looks: usize| {
        if looks == look {
            change(memory, 1, deposit(1));
            change(memory, 2, deduct(1));
        }
    };
    let segments = Meddler {
        memory: Arc::clone(&memory),
        looks: Mutex::new(0),
        meddle,
    };
    Counter::open(Storage::of(Arc::new(segments), memory, 2), account("a"))
}

#[tokio::test]
async fn what_is_there_all_the_time_is_never_insufficient() {
    // The first looks are at segments 1 and 2: the money comes to where it was not seen.
    let counter = meddled(1).await;
    counter.deduct(&at_home(0), amount(2)).await.unwrap();
    assert_eq!(counter.exact_balance().await.unwrap().available, 0);
}

#[tokio::test]
async fn an_exact_balance_is_never_of_two_instants() {
    // The looks are at segments 0, 1 and 2.
    let counter = meddled(2).await;
    assert_eq!(counter.exact_balance().await.unwrap().available, 2);
}

#[tokio::test]
async fn a_fast_balance_may_be_of_two_instants() {
    let counter = meddled(2).await;
    assert_eq!(counter.balance().await.unwrap().available, 1);
}
