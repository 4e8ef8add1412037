//! Locks of callers that come, wait, disappear.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{
        AcquireRequest, AcquireResponse, InspectRequest, ListRequest, ReleaseOutcome, WaitNotice,
        WaitReason, acquire_and_watch_response::Kind, lock_service_client::LockServiceClient,
    },
};
use ringfence_client::{BootClock, Clock};
use ringfence_test_support::eventually;
use tokio::{sync::Mutex, task::JoinSet};
use tonic::{Code, Request, Status, transport::Channel};

use super::scene::{Scene, acquire, ask, release, renew};

const HELD: i32 = ReleaseOutcome::Held as i32;
const LOST: i32 = ReleaseOutcome::Lost as i32;

fn length(length: Option<impl TryInto<Duration>>) -> Duration {
    length.unwrap().try_into().ok().unwrap()
}

#[tokio::test]
async fn one_caller_holds_a_lock_and_tokens_rise() {
    let scene = Scene::set().await;
    let (mut one, mut two) = (scene.locks().await, scene.locks().await);
    let first = acquire(&mut one, ask("key", 10_000, None)).await.unwrap();
    assert!(length(first.valid_for) <= Duration::from_secs(10));
    assert!(!length(first.valid_for).is_zero());

    let refused = acquire(&mut two, ask("key", 10_000, Some(0)))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
    let error = Error::from_status(&refused);
    assert_eq!(error.reason, Reason::Held);
    assert!(error.is_retryable);

    assert_eq!(release(&mut one, &first.handle).await.unwrap(), HELD);
    assert_eq!(release(&mut one, &first.handle).await.unwrap(), LOST);
    let second = acquire(&mut two, ask("key", 10_000, Some(0)))
        .await
        .unwrap();
    assert!(second.token > first.token);
    let lost = renew(&mut one, &first.handle).await.unwrap_err();
    assert_eq!(Error::from_status(&lost).reason, Reason::LockLost);
    assert_eq!(release(&mut two, &second.handle).await.unwrap(), HELD);
    assert!(scene.is_free("key").await);
}

fn with_nonce(nonce: &str, wait_ms: Option<u64>) -> AcquireRequest {
    AcquireRequest {
        nonce: nonce.into(),
        ..ask("key", 30_000, wait_ms)
    }
}

#[tokio::test]
async fn a_repeat_with_the_same_nonce_gets_the_lock_and_no_second_one() {
    let scene = Scene::set().await;
    let (mut one, mut two) = (scene.locks().await, scene.locks().await);
    let first = acquire(&mut one, with_nonce("a", None)).await.unwrap();
    // As if the answer was lost.
    drop(one);
    let repeat = acquire(&mut two, with_nonce("a", Some(0))).await.unwrap();
    assert_eq!(repeat.token, first.token);
    assert_eq!(repeat.handle, first.handle);
    let other = acquire(&mut two, with_nonce("b", Some(0))).await;
    assert_eq!(Error::from_status(&other.unwrap_err()).reason, Reason::Held);
    assert_eq!(release(&mut two, &repeat.handle).await.unwrap(), HELD);
    assert!(scene.is_free("key").await);
    let next = acquire(&mut two, with_nonce("a", Some(0))).await.unwrap();
    assert!(next.token > first.token, "it was released");
    let long = acquire(&mut two, with_nonce(&"a".repeat(65), None)).await;
    let message = Error::from_status(&long.unwrap_err()).message;
    assert_eq!(message, "nonce is 65 bytes, must be at most 64 bytes");
}

#[tokio::test]
async fn a_repeat_gets_the_lock_that_the_first_request_waited_for() {
    let scene = Scene::set().await;
    let held = scene.other.lock("key").acquire().await.unwrap();
    let mut waits = JoinSet::new();
    for _ in 0..3 {
        let mut locks = scene.locks().await;
        waits.spawn(async move { acquire(&mut locks, with_nonce("a", None)).await });
    }
    eventually("one waits", async || scene.waiters("key").await == 1).await;
    held.release().await;
    let granted = waits.join_all().await;
    let tokens = granted.into_iter().map(|granted| granted.unwrap().token);
    let tokens: Vec<_> = tokens.collect();
    assert_eq!(tokens, [tokens[0]; 3]);
}

#[tokio::test]
async fn a_caller_that_disappears_loses_its_lock_after_its_lease() {
    let scene = Scene::set().await;
    let (mut one, mut two) = (scene.locks().await, scene.locks().await);
    let asked = BootClock.now();
    let first = acquire(&mut one, ask("key", 1000, None)).await.unwrap();
    drop(one);
    let second = acquire(&mut two, ask("key", 1000, None)).await.unwrap();
    let taken = BootClock.now().since(asked);
    assert!(taken >= length(first.valid_for), "{taken:?}");
    assert!(second.token > first.token);
    let lost = renew(&mut two, &first.handle).await.unwrap_err();
    assert_eq!(Error::from_status(&lost).reason, Reason::LockLost);
}

#[tokio::test]
async fn renewals_keep_a_lock_beyond_its_lease() {
    let scene = Scene::set().await;
    let (mut one, mut two) = (scene.locks().await, scene.locks().await);
    let held = acquire(&mut one, ask("key", 5000, None)).await.unwrap();
    // Longer than its lease.
    let until = BootClock.now() + Duration::from_millis(6500);
    while BootClock.now() < until {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let renewed = renew(&mut one, &held.handle).await.unwrap();
        assert!(!length(renewed.valid_for).is_zero());
        let refused = acquire(&mut two, ask("key", 1000, Some(0)))
            .await
            .unwrap_err();
        assert_eq!(Error::from_status(&refused).reason, Reason::Held);
    }
    assert_eq!(release(&mut one, &held.handle).await.unwrap(), HELD);
}

#[tokio::test]
async fn a_late_call_leaves_nothing() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let held = scene.other.lock("key").acquire().await.unwrap();
    let mut request = Request::new(ask("key", 1000, None));
    request.set_timeout(Duration::from_millis(600));
    // `DEADLINE_EXCEEDED`, unless the caller's own timer is earlier: see the test of the handler.
    assert!(locks.acquire(request).await.is_err());
    let late = acquire(&mut locks, ask("key", 1000, Some(100)))
        .await
        .unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert_eq!(Error::from_status(&late).reason, Reason::TimedOut);
    held.release().await;
    eventually("nothing is left", || scene.is_free("key")).await;
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing_locked() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let held = scene.other.lock("key").acquire().await.unwrap();
    {
        let waits = acquire(&mut locks, ask("key", 1000, None));
        tokio::pin!(waits);
        let queued = eventually("the call waits", || async {
            scene.waiters("key").await == 1
        });
        tokio::select! {
            biased;
            granted = &mut waits => panic!("{granted:?}"),
            () = queued => {}
        }
    }
    eventually("its place is gone", || async {
        scene.waiters("key").await == 0
    })
    .await;
    held.release().await;
    assert!(scene.is_free("key").await);
}

/// The reasons to wait until the grant, and the grant.
async fn watched(
    locks: &mut LockServiceClient<Channel>,
    ask: AcquireRequest,
    on_wait: impl AsyncFn(&WaitNotice),
) -> Result<AcquireResponse, Status> {
    let mut events = locks.acquire_and_watch(ask).await?.into_inner();
    while let Some(event) = events.message().await? {
        match event.kind.unwrap() {
            Kind::Wait(notice) => on_wait(&notice).await,
            Kind::Granted(granted) => {
                assert_eq!(events.message().await?, None);
                return Ok(granted);
            }
        }
    }
    panic!("the stream has ended without a grant");
}

#[tokio::test]
async fn a_caller_that_watches_knows_why_it_waits() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let held = scene.other.lock("key").label("worker 7").acquire().await;
    let held = Mutex::new(Some(held.unwrap()));
    let release = async |notice: &WaitNotice| {
        assert_eq!(notice.reason(), WaitReason::Held);
        let held_by = notice.held_by.as_ref().unwrap();
        assert_eq!(held_by.label, "worker 7");
        assert!(notice.message.contains("worker 7"), "{}", notice.message);
        if let Some(held) = held.lock().await.take() {
            held.release().await;
        }
    };
    let granted = watched(&mut locks, ask("key", 10_000, None), release).await;
    let granted = granted.unwrap();
    assert!(held.lock().await.is_none() && granted.token > 1);
    assert!(!length(granted.valid_for).is_zero());

    let silent = async |notice: &WaitNotice| panic!("{notice:?}");
    let once = watched(&mut locks, ask("key", 10_000, Some(0)), silent).await;
    assert_eq!(Error::from_status(&once.unwrap_err()).reason, Reason::Held);
    // The same rules as without it.
    let unknown = watched(&mut locks, ask("", 10_000, None), silent).await;
    assert_eq!(
        Error::from_status(&unknown.unwrap_err())
            .input
            .unwrap()
            .field,
        "key"
    );
    assert_eq!(release_of(&mut locks, &granted).await, HELD);
    let free = watched(&mut locks, ask("key", 10_000, None), silent).await;
    assert!(free.unwrap().token > granted.token);
}

async fn release_of(locks: &mut LockServiceClient<Channel>, granted: &AcquireResponse) -> i32 {
    release(locks, &granted.handle).await.unwrap()
}

#[tokio::test]
async fn a_caller_that_stops_watching_leaves_nothing_locked() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let held = scene.other.lock("key").acquire().await.unwrap();
    let mut nonce = with_nonce("a", None);
    let events = locks.acquire_and_watch(nonce.clone()).await.unwrap();
    let mut events = events.into_inner();
    events.message().await.unwrap();
    eventually("it waits", async || scene.waiters("key").await == 1).await;
    drop(events);
    let is_gone = async || scene.waiters("key").await == 0;
    eventually("its place is gone", is_gone).await;
    held.release().await;
    assert!(scene.is_free("key").await);

    // A grant whose answer is lost.
    let events = locks.acquire_and_watch(nonce.clone()).await.unwrap();
    eventually("it is granted", async || !scene.is_free("key").await).await;
    drop(events);
    nonce.wait = Some(prost_types::Duration::default());
    let repeat = acquire(&mut locks, nonce).await.unwrap();
    assert_eq!(release_of(&mut locks, &repeat).await, HELD);
}

#[tokio::test]
async fn holders_and_waiters_are_shown() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let mut named = ask("key", 10_000, None);
    named.label = "worker 7".into();
    named.namespace = "jobs".into();
    let held = acquire(&mut locks, named).await.unwrap();
    let which = InspectRequest {
        namespace: "jobs".into(),
        key: "key".into(),
    };
    let found = locks.inspect(which).await.unwrap().into_inner();
    let holder = found.holder.unwrap();
    assert_eq!(
        (&*holder.label, holder.first_token),
        ("worker 7", held.token)
    );
    let free = locks.inspect(InspectRequest {
        namespace: String::new(),
        key: "key".into(),
    });
    assert!(free.await.unwrap().into_inner().holder.is_none());

    let of = |namespace: &str| ListRequest {
        namespace: namespace.into(),
    };
    for (namespace, count) in [("", 1), ("jobs", 1), ("default", 0)] {
        let mut pages = locks.list(of(namespace)).await.unwrap().into_inner();
        let mut listed = Vec::new();
        while let Some(page) = pages.message().await.unwrap() {
            assert_eq!(page.error, "");
            listed.extend(page.locks);
        }
        assert_eq!(listed.len(), count, "{namespace}");
        assert!(
            listed
                .iter()
                .all(|lock| lock.key == b"key" && lock.namespace == "jobs")
        );
    }
}

/// The shard has one ticket of the coordinator for all of them.
#[tokio::test]
async fn waiters_behind_a_coordinator_are_counted_one_by_one() {
    let scene = Scene::set().await;
    let held = scene.other.lock("key").acquire().await.unwrap();
    let mut waits = JoinSet::new();
    for _ in 0..3 {
        let mut locks = scene.locks().await;
        waits.spawn(async move { acquire(&mut locks, ask("key", 10_000, None)).await });
    }
    let callers = async || {
        let found = scene.other.lock("key").inspect().await.unwrap();
        let callers = found.waiters.iter().map(|waiter| waiter.callers);
        callers.collect::<Vec<_>>()
    };
    eventually("three wait", async || callers().await == [3]).await;
    let mut pages = scene.other.locks(None).unwrap();
    let page = pages.next().await.unwrap().locks.unwrap();
    assert_eq!(page[0].waiting, 3);
    held.release().await;
    waits.abort_all();
}

#[tokio::test]
async fn bad_input_names_the_field() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let mut negative = ask("key", 1000, None);
    negative.wait = Some(prost_types::Duration {
        seconds: -1,
        nanos: 0,
    });
    let mut namespace = ask("key", 1000, None);
    namespace.namespace = "No".into();
    for (request, field) in [
        (ask("", 1000, None), "key"),
        (ask(&"k".repeat(513), 1000, None), "key"),
        (ask("key", 31_000, None), "lease"),
        (ask("key", 99, None), "lease"),
        (negative, "wait"),
        (namespace, "namespace"),
    ] {
        let refused = acquire(&mut locks, request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        let error = Error::from_status(&refused);
        assert_eq!(error.input.unwrap().field, field, "{}", error.message);
    }
    let refused = renew(&mut locks, b"x").await.unwrap_err();
    assert_eq!(Error::from_status(&refused).input.unwrap().field, "handle");
}
