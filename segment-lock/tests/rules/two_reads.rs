//! Money that moves between two reads, just so that one read of each segment sees too little.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_segment_lock::{
    At, Counter, Segments, Storage, StorageError,
    memory::Memory,
    segment::{Collect, Confirm, State},
};

use super::*;

/// Does something of its own to the memory just before each read, knowing how many came before.
struct Meddler<F> {
    memory: Arc<Memory>,
    reads: Mutex<usize>,
    meddle: F,
}

impl<F> fmt::Debug for Meddler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meddler").finish_non_exhaustive()
    }
}

#[async_trait]
impl<F: Fn(&Memory, usize) + Send + Sync + 'static> Segments for Meddler<F> {
    async fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32> {
        self.memory.place(account, taken, more).await
    }

    fn new_account(&self) -> NewAccount {
        NewAccount::default()
    }

    fn now_ms(&self) -> u64 {
        self.memory.now_ms()
    }

    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError> {
        if let Request::Collect(Collect { .. }) = request {
            let mut reads = self.reads.lock();
            (self.meddle)(&self.memory, *reads);
            *reads += 1;
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

/// A request with segment `home` of three as its home.
fn at_home(home: u64) -> RequestId {
    let ids = (0..).map(|name| id(NOW, &format!("request {name}")));
    ids.into_iter()
        .find(|id| id.hash(HashKey::default()) % 3 == home)
        .unwrap()
}

fn change(memory: &Memory, index: u32, change: Change) {
    at_segment(memory, index, |segment| {
        let name = format!("meddled {}", segment.version);
        assert_eq!(
            state_in(segment.op(&op(&name, change), NOW)),
            recorded(State::Done)
        );
    });
}

fn hold(memory: &Memory, index: u32, name: &str, value: i64) {
    let reserve = op(name, reserve(value, NOW + 100));
    at_segment(memory, index, |segment| segment.op(&reserve, NOW).unwrap());
}

fn confirm(memory: &Memory, index: u32, name: &str) {
    let confirm = Confirm {
        id: id(NOW, name),
        amount: None,
        generation: 1,
        caller: ME,
    };
    at_segment(memory, index, |segment| {
        let answer = segment.confirm(&confirm, NOW);
        assert_eq!(state_in(answer), recorded(State::Confirmed));
    });
}

fn at_segment<T>(memory: &Memory, index: u32, work: impl FnOnce(&mut Segment) -> T) -> T {
    let at = at("a", index);
    memory.with_segments(|segments| work(segments.get_mut(&at).unwrap()))
}

/// Three segments with 1, 0 and 1; and just before the read that makes it `read`, 1 more comes into
/// segment 1; then, just before the next read, 1 leaves segment 2. There are never less than 2.
async fn meddled(read: usize) -> Counter {
    let meddle = move |memory: &Memory, reads: usize| {
        if reads == read {
            change(memory, 1, deposit(1));
            change(memory, 2, deduct(1));
        }
    };
    meddled_by(meddle).await
}

/// Three segments with 1, 0 and 1, and `meddle` before each read.
async fn meddled_by(meddle: impl Fn(&Memory, usize) + Send + Sync + 'static) -> Counter {
    let memory = Arc::new(Memory::new(Box::new(|| NOW)));
    let plain = Storage::new(Arc::clone(&memory), 1);
    let created = Counter::create(plain, account("a"), TERMS, 3)
        .await
        .unwrap();
    for index in [0, 2] {
        change(&memory, index, deposit(1));
    }
    drop(created);
    let segments = Meddler {
        memory: Arc::clone(&memory),
        reads: Mutex::new(0),
        meddle,
    };
    Counter::open(Storage::of(Arc::new(segments), memory, 2), account("a"))
}

#[tokio::test]
async fn money_present_throughout_is_never_insufficient() {
    // The first reads are of segments 1 and 2: the money comes to where it was not seen.
    let counter = meddled(1).await;
    counter.deduct(&at_home(0), amount(2)).await.unwrap();
    assert_eq!(counter.exact_balance().await.unwrap().available, 0);
}

#[tokio::test]
async fn an_exact_balance_is_never_of_two_instants() {
    // The reads are of segments 0, 1 and 2.
    let counter = meddled(2).await;
    assert_eq!(counter.exact_balance().await.unwrap().available, 2);
}

#[tokio::test]
async fn a_fast_balance_may_be_of_two_instants() {
    let counter = meddled(2).await;
    assert_eq!(counter.balance().await.unwrap().available, 1);
}

#[tokio::test]
async fn an_exact_balance_says_what_was_held_at_that_instant() {
    let meddle = |memory: &Memory, reads: usize| match reads {
        0 => hold(memory, 0, "first", 1),
        // Segment 0 was read, segment 2 was not. There was never more than 1 held.
        1 => {
            confirm(memory, 0, "first");
            hold(memory, 2, "second", 1);
        }
        _ => {}
    };
    let balance = meddled_by(meddle).await.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.held), (0, 1));
}

#[tokio::test]
async fn an_exact_balance_is_answered_though_reservations_are_confirmed_meanwhile() {
    const NAMES: [&str; 3] = ["first", "second", "third"];
    let meddle = |memory: &Memory, reads: usize| match reads {
        0 => {
            at_segment(memory, 0, |segment| segment.value = 3);
            NAMES.iter().for_each(|name| hold(memory, 0, name, 1));
            hold(memory, 2, "stays", 1);
        }
        // Just before a second read: one while no segment is frozen, one while all are.
        3 | 12 => confirm(memory, 0, NAMES[reads / 12]),
        _ => {}
    };
    let balance = meddled_by(meddle).await.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.held), (0, 2));
}
