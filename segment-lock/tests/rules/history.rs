//! The log of an account: what is in it, and how it is read.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use ringfence_segment_lock::{
    AccountHistory, Counter, CounterError, HistoryCursor, Storage,
    memory::Memory,
    segment::{EffectKind, History, HistoryPage, Lend, Refusal, Reply},
};

use super::*;

async fn account_of(segments: u32, terms: Terms) -> (Arc<Memory>, Counter) {
    let calls = AtomicU64::new(0);
    // A millisecond passes with each ten requests.
    let now_ms = move || NOW + calls.fetch_add(1, Relaxed) / 10;
    let memory = Arc::new(Memory::new(Box::new(now_ms)));
    let storage = Storage::new(memory.clone(), 1);
    let counter = Counter::create(storage, account("a"), terms, segments);
    (memory, counter.await.unwrap())
}

async fn deposits(counter: &Counter, count: u64) {
    for nth in 0..count {
        let id = id(NOW, &format!("in {nth}"));
        counter.deposit(&id, amount(1)).await.unwrap();
    }
}

fn names(history: &AccountHistory) -> Vec<String> {
    let effects = history.effects.iter();
    let names = effects.map(|found| match &found.effect.kind {
        EffectKind::Deposited(id) => id.name().to_owned(),
        kind => format!("{kind:?}"),
    });
    names.collect()
}

const MANY: Terms = Terms {
    ids_max: 1000,
    ..TERMS
};

#[tokio::test(start_paused = true)]
async fn every_effect_is_read_once_page_by_page() {
    let (_, counter) = account_of(3, MANY).await;
    deposits(&counter, 40).await;
    for limit in [1, 7, 1000] {
        let (mut from, mut read, mut at_ms) = (HistoryCursor::default(), Vec::new(), 0);
        loop {
            let page = counter.history(&from, limit).await.unwrap();
            assert!(page.effects.len() <= (limit as usize).max(3), "{page:?}");
            assert!(page.effects.iter().all(|found| !found.follows_gap));
            read.extend(names(&page));
            for found in &page.effects {
                assert!(found.effect.at_ms >= at_ms, "with {limit}: {page:?}");
                at_ms = found.effect.at_ms;
            }
            from = page.next.to_string().parse().unwrap();
            if page.is_end {
                break;
            }
        }
        read.sort_unstable();
        read.dedup();
        assert_eq!(read.len(), 40, "with {limit}");
        // Later effects are behind that place.
        let nothing = counter.history(&from, limit).await.unwrap();
        assert!(nothing.effects.is_empty() && nothing.is_end);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_says_where_effects_are_missing() {
    let terms = Terms {
        effects_max: 2,
        ..MANY
    };
    let (memory, counter) = account_of(1, terms).await;
    deposits(&counter, 1).await;
    let first = counter.history(&HistoryCursor::default(), 9).await.unwrap();
    assert!(!first.effects[0].follows_gap);
    deposits(&counter, 5).await;
    let rest = counter.history(&first.next, 9).await.unwrap();
    assert_eq!(names(&rest), ["in 3", "in 4"]);
    let gaps = |page: &AccountHistory| -> Vec<bool> {
        page.effects.iter().map(|found| found.follows_gap).collect()
    };
    assert_eq!(gaps(&rest), [true, false]);
    // A server that came back may have had more.
    memory.with_segments(|segments| segments.values_mut().for_each(Segment::came_back));
    counter.deposit(&id(NOW, "later"), amount(1)).await.unwrap();
    let later = counter.history(&rest.next, 9).await.unwrap();
    assert_eq!(
        (names(&later), gaps(&later)),
        (vec!["later".into()], vec![true])
    );
}

#[tokio::test(start_paused = true)]
async fn effects_are_read_from_a_time_on() {
    let (memory, counter) = account_of(1, MANY).await;
    deposits(&counter, 2).await;
    memory.with_segments(|segments| {
        let log = &mut segments.values_mut().next().unwrap().log;
        for (effect, at_ms) in log.effects.iter_mut().zip([NOW - 1, NOW]) {
            effect.at_ms = at_ms;
        }
    });
    let since = |ms| HistoryCursor::since(ms);
    let all = counter.history(&since(NOW - 1), 9).await.unwrap();
    assert_eq!(names(&all), ["in 0", "in 1"]);
    let some = counter.history(&since(NOW), 9).await.unwrap();
    assert_eq!(names(&some), ["in 1"]);
    // What was before is not asked for, and so is not missing.
    assert!(!some.effects[0].follows_gap);
    let none = counter.history(&since(NOW + 1), 9).await.unwrap();
    assert!(names(&none).is_empty() && none.is_end);
}

#[tokio::test(start_paused = true)]
async fn an_account_without_a_log_says_so() {
    let terms = Terms {
        effects_max: 0,
        ..MANY
    };
    let (_, counter) = account_of(2, terms).await;
    deposits(&counter, 1).await;
    let refused = counter.history(&HistoryCursor::default(), 9).await;
    assert!(matches!(
        refused,
        Err(CounterError::Refused(Refusal::NoLog))
    ));
}

#[test]
fn effects_that_are_too_old_are_dropped() {
    let mut segment = segment(5);
    segment.terms.effects_for_ms = 100;
    for (nth, now) in [(1, NOW), (2, NOW + 100), (3, NOW + 101)] {
        let lend = Lend {
            to: nth,
            landed: 0,
            want: amount(1),
            caller: ME,
        };
        segment.apply(&lend.into(), now).unwrap();
    }
    let history = History {
        after: 0,
        since_ms: 0,
        most: 9,
    };
    let Ok(Reply::History(HistoryPage { effects, last, .. })) = segment.history(&history) else {
        panic!("it has a log");
    };
    let numbers: Vec<_> = effects.iter().map(|effect| effect.number).collect();
    assert_eq!((numbers, last), (vec![2, 3], 3));
}
