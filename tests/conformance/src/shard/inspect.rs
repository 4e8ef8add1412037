//! Inspections for people: holders and waiters.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Fixture,
    desk::{Desk, LONG, PAST_SHORT, SHORT, acquire, armed_with, control, nonce, slot_count},
    grants::{assert_full, hostile_pairs},
    line::{queue, queue_for},
    shares::{of_mode, permits},
};
use ringfence_coordinator::{
    ids::{MapVersion, Nonce},
    limits::{BATCH_MAX, CLAIM_MAX, LIST_PAGE, TICKET_KEEP},
    name::{Label, LockKey, Namespace},
    shard::{Grace, HeldLock, List, LockPage, Op, ShardError},
};

/// How long a lock is held between two looks at it,
const A_WHILE: Duration = Duration::from_millis(200);
/// and how much of it may be lost where milliseconds are counted.
const ROUNDED: Duration = Duration::from_millis(2);
/// Most of what a ticket lasts: enough for one that came before, and one that comes after, to differ.
const MOST_OF_A_TICKET: Duration = TICKET_KEEP.saturating_sub(Duration::from_secs(1));
/// The rest of it, and some more.
const THE_REST: Duration = Duration::from_millis(1200);
/// More locks than are listed in a few pages.
const MANY: usize = 5 * LIST_PAGE;

/// What people are shown is what the grant lives by.
pub async fn an_inspection_tells_holder_tokens_and_remaining_time(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder) = (desk.key("key"), nonce());
        assert_eq!(desk.inspect(&key).await, None);
        let token = desk.granted(&key, holder, LONG).await;

        assert_full(&mut desk, &key, (holder, token)).await;
        let found = desk.inspect(&key).await.expect("it is held");
        assert_eq!(found.label, Label::new("suite"));
        assert_eq!((found.tokens, found.last_token()), (1, token));

        let block = desk.key("block");
        desk.one(&block, queue_for(holder, 1, (8, CLAIM_MAX))).await;
        let found = desk.inspect(&block).await.expect("it is held");
        assert!(found.token > token, "{found:?}");
        let last = found.token.counter() + 7;
        assert_eq!((found.tokens, found.last_token().counter()), (8, last));
    }
}

/// From the grant on, however often it is renewed: of a lock that was free, of one that was waited for, and of a share.
pub async fn an_inspection_tells_how_long_a_lock_has_been_held(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (free, holder) = (desk.key("free"), nonce());
        let token = desk.granted(&free, holder, LONG).await;
        let (waited, waiter) = (desk.key("waited"), nonce());
        let first = nonce();
        desk.granted(&waited, first, LONG).await;
        desk.queues(&waited, waiter).await;
        desk.release(&waited, first).await;
        let passed = desk.inspect(&waited).await.expect("it is held").token;
        let shared = desk.key("shared");
        let (share, of_share) = desk.shares(&shared, permits(1, 2)).await;
        for held_for in [A_WHILE, 2 * A_WHILE] {
            fixture.elapse(A_WHILE).await;
            for key in [&free, &waited, &shared] {
                let found = desk.inspect(key).await.expect("it is held");
                let at_least = held_for.saturating_sub(fixture.late() + ROUNDED);
                let known = at_least..=held_for + LONG;
                assert!(known.contains(&found.held_for), "{key}: {found:?}");
            }
            desk.renew(&free, (holder, token), LONG).await;
            desk.renew(&waited, (waiter, passed), 2 * LONG).await;
            desk.renews(&shared, (share, of_share), permits(1, 2)).await;
        }
    }
}

/// One ticket may stand for many callers; and one that could be granted may come behind one that cannot.
pub async fn an_inspection_tells_what_waiters_ask_for(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let key = desk.key("key");
        desk.shares(&key, permits(1, 2)).await;
        let asked = [(permits(2, 2), 7), (permits(1, 5), 1)];
        for (mode, callers) in asked {
            let op = for_callers(of_mode(queue(nonce(), 1), mode), callers);
            desk.one(&key, op).await;
        }
        let found = desk.mover.inspect(&key).await.expect("an answer");
        let told = found.waiters.iter();
        let told: Vec<_> = told.map(|waiter| (waiter.mode, waiter.callers)).collect();
        assert_eq!(told, asked);
        let alone = desk.key("alone");
        desk.granted(&alone, nonce(), LONG).await;
        let waiter = nonce();
        for callers in [4, 3] {
            desk.one(&alone, for_callers(queue(waiter, 1), callers))
                .await;
        }
        let all = listed(&mut desk, None).await;
        for (key, waiting) in [(&key, 8), (&alone, 3)] {
            let lock = all.iter().find(|lock| lock.key == *key);
            assert_eq!(lock.expect("it is listed").waiting, waiting, "{key}");
        }
    }
}

fn for_callers(mut op: Op, count: u32) -> Op {
    if let Op::Acquire { ticket, .. } = &mut op {
        ticket.as_mut().expect("it has a ticket").callers = count;
    }
    op
}

/// In the order in which they will get it.
pub async fn an_inspection_lists_the_waiters_in_order(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiting @ [first, second, third] = [(); 3].map(|()| nonce());
        let (key, (holder, _)) = desk.with_queue("key", LONG, &waiting).await;
        assert_eq!(waiting_for(&mut desk, &key).await, waiting);
        // Neither by their numbers nor by their last requests.
        desk.queues(&key, first).await;
        desk.release(&key, second).await;
        desk.queues(&key, second).await;
        assert_eq!(waiting_for(&mut desk, &key).await, [first, third, second]);
        let found = desk.mover.inspect(&key).await.expect("an answer");
        let label = Label::new("suite");
        assert!(found.waiters.iter().all(|waiter| waiter.label == label));

        desk.release(&key, holder).await;
        assert_eq!(desk.holder(&key).await, Some(first));
        assert_eq!(waiting_for(&mut desk, &key).await, [third, second]);
        for nonce in [third, second, first] {
            desk.release(&key, nonce).await;
        }
        let nothing = desk.mover.inspect(&key).await.expect("an answer");
        assert_eq!(nothing, Default::default());
    }
}

/// A waiter that has stopped asking no longer waits, at any place.
pub async fn an_inspection_leaves_out_tickets_that_have_ended(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let waiting @ [first, _, third] = [(); 3].map(|()| nonce());
    let (key, _) = desk.with_queue("key", LONG, &waiting).await;
    fixture.elapse(MOST_OF_A_TICKET).await;
    desk.queues(&key, first).await;
    desk.queues(&key, third).await;
    assert_eq!(waiting_for(&mut desk, &key).await, waiting);
    fixture.elapse(THE_REST).await;
    assert_eq!(waiting_for(&mut desk, &key).await, [first, third]);
}

/// A lease has ended, and no request has passed the key on yet; or grace prevents that.
pub async fn an_inspection_lists_the_waiters_for_a_free_key(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let waiter = nonce();
    let (key, _) = desk.with_queue("key", SHORT, &[waiter]).await;
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(desk.inspect(&key).await, None);
    assert_eq!(waiting_for(&mut desk, &key).await, [waiter]);
    assert_eq!(listed(&mut desk, None).await, [], "nobody holds it");
}

/// It might tell what another life had.
pub async fn an_unarmed_shard_tells_nobody_anything(fixture: &dyn Fixture) {
    let key = Desk::open(fixture, MapVersion::UNKNOWN).await.key("key");
    let refused = control(fixture).await.inspect(&key).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
    let list = List::default();
    let refused = control(fixture).await.list(&list).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
}

/// Both are looks at one thing.
pub async fn a_listing_agrees_with_inspections(fixture: &dyn Fixture) {
    let mut keys = Vec::new();
    let mut desks = Desk::both_ways(fixture).await;
    for desk in &mut desks {
        let waiting = [(); 3].map(|()| nonce());
        let (waited_for, _) = desk.with_queue("waited for", LONG, &waiting).await;
        let (held, _) = desk.with_queue("held", LONG, &[]).await;
        let block = desk.key("block");
        desk.one(&block, queue_for(nonce(), 1, (8, CLAIM_MAX)))
            .await;
        keys.extend([waited_for, held, block]);
    }
    let [desk, _] = &mut desks;
    let all = listed(desk, None).await;
    for key in &keys {
        let inspected = desk.mover.inspect(key).await.expect("an answer");
        let mut holder = inspected.holder.expect("it is held");
        let lock = all.iter().find(|lock| lock.key == *key);
        let lock = lock.expect("it is listed").clone();
        assert!(holder.remaining <= lock.holder.remaining, "{lock:?}");
        holder.remaining = lock.holder.remaining;
        assert!(holder.held_for >= lock.holder.held_for, "{lock:?}");
        holder.held_for = lock.holder.held_for;
        assert_eq!(lock.holder, holder);
        assert_eq!(lock.waiting as usize, inspected.waiters.len());
    }
    // One more says for a short time whether the shard is quiet.
    assert!(all.len() <= keys.len() + 1, "{all:?}");
}

/// However many locks there are, the shard serves everybody else in between.
pub async fn a_listing_comes_in_pages(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let keys = hold(&mut desk, "key", MANY).await;
    let pages = pages(&mut desk, List::default()).await;
    for page in &pages {
        // A server's table may have some in one place.
        assert!(page.len() <= 2 * LIST_PAGE, "{} at once", page.len());
    }
    let all = by_key(pages.concat());
    assert_eq!(all.len(), MANY);
    for (key, nonce) in keys {
        assert_eq!(all[&key].holder.nonce, nonce, "{key}");
    }
}

/// Released, expired, of an older arming; and what has a queue alone.
pub async fn a_listing_leaves_out_free_keys(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let [old, released, expired, held] =
        ["old", "released", "expired", "held"].map(|name| desk.key(name));
    desk.granted(&old, nonce(), LONG).await;
    fixture.restart().await;
    let answer = armed_with(fixture, 6, Grace::Full(LONG)).await;
    assert!(answer.expect("it is another life").armed_now);
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let keys = |locks: Vec<HeldLock>| locks.into_iter().map(|lock| lock.key).collect::<Vec<_>>();
    assert_eq!(
        keys(listed(&mut desk, None).await),
        [old],
        "in grace it counts"
    );

    fixture.restart().await;
    let answer = armed_with(fixture, 7, Grace::None).await;
    assert!(answer.expect("it is another life").armed_now);
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(listed(&mut desk, None).await, []);
    let holder = nonce();
    desk.granted(&released, holder, LONG).await;
    desk.release(&released, holder).await;
    desk.granted(&expired, holder, SHORT).await;
    desk.one(&expired, queue(nonce(), 1)).await;
    desk.granted(&held, holder, LONG).await;
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(keys(listed(&mut desk, None).await), [held]);
}

/// A key is bytes: none has a meaning, and none is lost.
pub async fn a_listing_tells_hostile_keys_as_they_are(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let mut held = BTreeMap::new();
    for key in hostile_pairs(&desk).concat() {
        let nonce = nonce();
        if held.insert(key.clone(), nonce).is_none() {
            desk.granted(&key, nonce, LONG).await;
        }
    }
    let all = by_key(listed(&mut desk, None).await);
    let found = all
        .iter()
        .map(|(key, lock)| (key.clone(), lock.holder.nonce));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), held);
    for key in all.keys() {
        let namespace = Namespace::new(key.namespace()).expect("it was one");
        let again = LockKey::new(&namespace, key.key(), slot_count());
        assert_eq!(again.as_ref(), Ok(key));
    }
}

/// For any form of its keys.
pub async fn a_listing_of_one_namespace_tells_none_of_another(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let namespaces = ["a", "ab", "b"].map(|name| Namespace::new(name).expect("a plain word"));
    let names: [&[u8]; 3] = [b"key", b"x}:a:y", b"a:b"];
    for namespace in &namespaces {
        for name in names {
            let key = LockKey::new(namespace, name, slot_count()).expect("a short key");
            desk.granted(&key, nonce(), LONG).await;
        }
    }
    for namespace in namespaces {
        let locks = listed(&mut desk, Some(namespace.clone())).await;
        let mut found: Vec<_> = locks.iter().map(|lock| lock.key.key()).collect();
        found.sort();
        assert_eq!(found, [names[2], names[0], names[1]], "{namespace}");
        assert!(
            locks
                .iter()
                .all(|lock| lock.key.namespace() == namespace.as_str())
        );
    }
    let none = Namespace::new("none").expect("a plain word");
    assert_eq!(listed(&mut desk, Some(none)).await, []);
}

/// A page is a look at a moment; the whole is not, and leaves out nothing that stays.
pub async fn locks_held_throughout_are_listed_while_others_come_and_go(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let staying = hold(&mut desk, "stays", MANY).await;
    let mut going = hold(&mut desk, "goes", MANY).await;
    let mut list = List::default();
    let mut found = Vec::new();
    for round in 0.. {
        let LockPage { locks, next } = desk.mover.list(&list).await.expect("an answer");
        found.extend(locks);
        list.after = next;
        if list.after.is_none() {
            break;
        }
        // Tables grow, and shrink.
        if round % 2 == 0 {
            hold(&mut desk, &format!("comes/{round}"), LIST_PAGE).await;
        }
        for (key, nonce) in going.split_off(going.len().saturating_sub(2 * LIST_PAGE)) {
            desk.release(&key, nonce).await;
        }
    }
    let found = by_key(found);
    for (key, nonce) in staying {
        let lock = found.get(&key);
        assert_eq!(lock.map(|lock| lock.holder.nonce), Some(nonce), "{key}");
    }
}

async fn waiting_for(desk: &mut Desk, key: &LockKey) -> Vec<Nonce> {
    let found = desk.mover.inspect(key).await.expect("an answer");
    found.waiters.iter().map(|waiter| waiter.nonce).collect()
}

/// Takes `count` keys.
async fn hold(desk: &mut Desk, name: &str, count: usize) -> Vec<(LockKey, Nonce)> {
    let keys: Vec<_> = (0..count)
        .map(|index| (desk.key(format!("{name}/{index}")), nonce()))
        .collect();
    for some in keys.chunks(BATCH_MAX) {
        let request = |(key, nonce): &(LockKey, Nonce)| desk.request(key, acquire(*nonce, LONG));
        let batch: Vec<_> = some.iter().map(request).collect();
        desk.batch(&batch).await;
    }
    keys
}

async fn pages(desk: &mut Desk, mut list: List) -> Vec<Vec<HeldLock>> {
    let mut pages = Vec::new();
    loop {
        let LockPage { locks, next } = desk.mover.list(&list).await.expect("an answer");
        pages.push(locks);
        match next {
            None => return pages,
            after => list.after = after,
        }
    }
}

async fn listed(desk: &mut Desk, namespace: Option<Namespace>) -> Vec<HeldLock> {
    let list = List {
        namespace,
        after: None,
    };
    pages(desk, list).await.concat()
}

/// Each once.
fn by_key(locks: Vec<HeldLock>) -> BTreeMap<LockKey, HeldLock> {
    locks
        .into_iter()
        .map(|lock| (lock.key.clone(), lock))
        .collect()
}
