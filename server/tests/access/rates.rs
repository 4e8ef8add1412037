//! A caller that makes too many calls keeps its locks.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicU32,
            Ordering::{self, Relaxed},
        },
    },
    time::Duration,
};

use futures_util::{StreamExt, future::join_all, stream};
use ringfence_api::{
    Error, Reason,
    v1::{
        Ask, ListRequest, ResumeAsk, SessionRequest, SessionTerms, WaitLatchRequest, answer,
        ask::Kind, latch_service_client::LatchServiceClient,
        lock_service_client::LockServiceClient, session_service_client::SessionServiceClient,
    },
};
use ringfence_client::{Client, Guard, ReleaseAnswer};
use ringfence_server::Roles;
use ringfence_test_support::eventually;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tonic::{Code, Status, transport::Channel};

use super::{principal, with};
use crate::{
    monitor::refused_for,
    scene::{Scene, acquire, ask, release, renew},
};

pub(crate) fn limited(refused: &Status) -> Duration {
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let error = Error::from_status(refused);
    assert_eq!(error.reason, Reason::RateLimited);
    assert!(error.is_retryable);
    error.retry_after.unwrap()
}

/// A refusal of calls that are made at once, of a number that no rate allows however slow they are.
async fn first_refused(call: impl AsyncFn(String) -> Result<(), Status>) -> Status {
    let calls = (0..200).map(|index| call(format!("free/{index}")));
    let mut refused = join_all(calls).await.into_iter().filter_map(Result::err);
    refused
        .next()
        .expect("two hundred calls at once are beyond the rate")
}

/// Without principals.
#[tokio::test]
async fn a_connection_has_a_rate_of_its_own() {
    let scene = Scene::set_with(|config| config.limits.rate = 2).await;
    let (busy, mut quiet) = (scene.locks().await, scene.locks().await);
    let refused = first_refused(async |key| {
        let asked = acquire(&mut busy.clone(), ask(&key, 1000, Some(0))).await;
        asked.map(drop)
    })
    .await;
    limited(&refused);
    acquire(&mut quiet, ask("key", 1000, Some(0)))
        .await
        .unwrap();
}

/// Each of them would be refused for another reason.
#[tokio::test]
async fn calls_without_the_role_count_too() {
    let scene = Scene::set_with(|config| {
        config.limits.rate = 2;
        principal(config, "reader", Roles::default());
    })
    .await;
    let locks = scene.locks().await;
    let refusals = (0..200).map(|_| {
        let mut locks = locks.clone();
        async move {
            locks
                .acquire(with("reader", ask("key", 1000, Some(0))))
                .await
                .unwrap_err()
        }
    });
    let refusals = join_all(refusals).await;
    let is_limited = |refused: &&Status| refused.code() == Code::ResourceExhausted;
    limited(
        refusals
            .iter()
            .find(is_limited)
            .expect("more calls than the rate"),
    );
}

#[tokio::test]
async fn calls_beyond_the_rate_are_refused_but_renewals_are_not() {
    let scene = Scene::set_with(|config| config.limits.rate = 2).await;
    let mut locks = scene.locks().await;
    let held = acquire(&mut locks, ask("key", 30_000, Some(0)))
        .await
        .unwrap();
    let refused = first_refused(async |key| {
        acquire(&mut locks.clone(), ask(&key, 1000, Some(0)))
            .await
            .map(drop)
    })
    .await;
    let wait = limited(&refused);
    assert!(wait <= Duration::from_millis(500), "{wait:?}");
    let before = scene.script_calls().await;
    for _ in 0..100 {
        renew(&mut locks, &held.handle).await.unwrap();
    }
    // Another call of the same caller, on another connection.
    let other = scene.locks().await;
    let refused = first_refused(async |key| {
        let ask = ask(&format!("other/{key}"), 1000, Some(0));
        acquire(&mut other.clone(), ask).await.map(drop)
    })
    .await;
    limited(&refused);
    assert!(refused_for(&scene, "rate").await >= 2.0);
    // The locks that were granted here, and renewals that were due: far fewer than a call for each renewal.
    assert!(scene.script_calls().await < before + 50);
    eventually("its turn comes", || {
        let mut other = other.clone();
        async move {
            acquire(&mut other, ask("later", 1000, Some(0)))
                .await
                .is_ok()
        }
    })
    .await;
    release(&mut locks, &held.handle).await.unwrap();
}

/// Makes `call` until it is refused because of the rate; before, it fails for the reason `fails`.
async fn until_limited(fails: Reason, call: impl AsyncFn() -> Status) {
    eventually("it is beyond the rate", async || {
        let refused = call().await;
        let error = Error::from_status(&refused);
        if error.reason == Reason::RateLimited {
            limited(&refused);
            return true;
        }
        assert_eq!(error.reason, fails, "{refused:?}");
        false
    })
    .await;
}

/// Each of them asks a shard.
#[tokio::test]
async fn calls_for_locks_that_are_over_count_and_those_for_others_do_not() {
    let scene = Scene::set_with(|config| config.limits.rate = 2).await;
    let locks = scene.locks().await;
    let mut calls = locks.clone();
    let held = acquire(&mut calls, ask("held", 30_000, Some(0))).await;
    let held = held.unwrap().handle;
    let over = acquire(&mut calls, ask("over", 30_000, Some(0))).await;
    let over = over.unwrap().handle;
    assert_eq!(release(&mut calls, &over).await.unwrap(), 1, "it was held");
    until_limited(Reason::LockLost, async || {
        renew(&mut locks.clone(), &over).await.unwrap_err()
    })
    .await;
    eventually("releases count too", async || {
        match release(&mut locks.clone(), &over).await {
            Ok(outcome) => assert_eq!(outcome, 2, "it is over"),
            Err(refused) => return !limited(&refused).is_zero(),
        }
        false
    })
    .await;
    for _ in 0..100 {
        renew(&mut calls, &held).await.unwrap();
    }
    assert_eq!(release(&mut calls, &held).await.unwrap(), 1, "it was held");
}

#[tokio::test]
async fn calls_with_forged_handles_count() {
    let scene = Scene::set_with(|config| config.limits.rate = 2).await;
    let locks = scene.locks().await;
    until_limited(Reason::InvalidInput, async || {
        renew(&mut locks.clone(), &[1; 100]).await.unwrap_err()
    })
    .await;
}

/// Nothing but its reads is beyond the rate.
#[tokio::test]
async fn a_wait_for_a_latch_counts_by_its_reads() {
    let scene = Scene::set_with(|config| config.limits.rate = 2).await;
    let mut latches = LatchServiceClient::new(scene.channel().await);
    let wait = WaitLatchRequest {
        name: "never set".into(),
        wait: Some(Duration::from_secs(120).try_into().unwrap()),
    };
    limited(&latches.wait_latch(wait).await.unwrap_err());
}

#[tokio::test]
async fn a_list_goes_no_faster_than_its_rate() {
    let scene = Scene::set_with(|config| config.limits.rate = 1).await;
    let mut locks = scene.locks().await;
    let began = Instant::now();
    let pages = locks.list(ListRequest::default()).await.unwrap();
    let pages: Vec<_> = pages.into_inner().collect().await;
    assert_eq!(pages.len(), 2, "a page per shard");
    // The call and a page are a second's calls.
    assert!(began.elapsed() >= Duration::from_secs(1));
}

/// Each of them asks a shard.
#[tokio::test]
async fn resumptions_of_locks_that_are_over_count_in_a_session() {
    let scene = Scene::set_with(|config| config.limits.rate = 2).await;
    let mut locks = scene.locks().await;
    let over = acquire(&mut locks, ask("over", 30_000, Some(0))).await;
    let handle = over.unwrap().handle;
    release(&mut locks, &handle).await.unwrap();
    let first = SessionRequest {
        terms: Some(SessionTerms::default()),
        asks: Vec::new(),
    };
    let resume = move |id| SessionRequest {
        terms: None,
        asks: vec![Ask {
            id,
            kind: Some(Kind::Resume(ResumeAsk {
                handle: handle.clone(),
            })),
        }],
    };
    let asks = stream::iter([first]).chain(stream::iter(1..).map(resume));
    let mut sessions = SessionServiceClient::new(scene.channel().await);
    let answers = sessions.session(asks).await.unwrap();
    let mut answers = answers.into_inner();
    let refused = async {
        loop {
            let answered = answers.message().await.unwrap().unwrap();
            let is_limited = answered
                .answers
                .into_iter()
                .any(|answer| match answer.kind {
                    Some(answer::Kind::Refusal(refusal)) => {
                        refusal.error.unwrap().reason() == Reason::RateLimited
                    }
                    _ => false,
                });
            if is_limited {
                break;
            }
        }
    };
    timeout(Duration::from_secs(120), refused).await.unwrap();
}

#[tokio::test]
async fn a_principal_beyond_its_rate_takes_no_call_from_another() {
    let scene = Scene::set_with(|config| {
        config.limits.rate = 2;
        principal(config, "loud", Roles::all());
        principal(config, "quiet", Roles::all());
    })
    .await;
    // Both call over one connection.
    let locks = scene.locks().await;
    let call = async |caller: &str, key: &str| {
        let asked = with(caller, ask(key, 1000, Some(0)));
        locks.clone().acquire(asked).await
    };
    let refused = first_refused(async |key| call("loud", &key).await.map(drop)).await;
    limited(&refused);
    for key in ["quiet/1", "quiet/2"] {
        call("quiet", key).await.unwrap();
    }
}

#[tokio::test]
async fn waiting_calls_leave_room_for_renewals_on_their_connection() {
    let scene = Scene::set_with(|config| config.limits.streams = 2).await;
    let mut locks = scene.locks().await;
    let held = acquire(&mut locks, ask("key", 30_000, Some(0)))
        .await
        .unwrap();
    let mut waits = JoinSet::new();
    for _ in 0..2 {
        let mut queue = locks.clone();
        waits.spawn(async move {
            // A probe below may have the place.
            while let Err(refused) = acquire(&mut queue, ask("key", 1000, None)).await {
                sleep(limited(&refused)).await;
            }
        });
    }
    let free = AtomicU32::new(0);
    eventually("both wait", || {
        let mut locks = locks.clone();
        let key = format!("free/{}", free.fetch_add(1, Ordering::Relaxed));
        async move {
            let asked = acquire(&mut locks, ask(&key, 1000, Some(0))).await;
            asked.is_err_and(|refused| !limited(&refused).is_zero())
        }
    })
    .await;
    renew(&mut locks, &held.handle).await.unwrap();
    assert!(refused_for(&scene, "streams").await > 0.0);
    // Another connection has places of its own.
    let mut other = scene.locks().await;
    acquire(&mut other, ask("free", 1000, None)).await.unwrap();
    release(&mut locks, &held.handle).await.unwrap();
    while let Some(waited) = waits.join_next().await {
        waited.unwrap();
    }
}

/// What a flood of calls has come to.
#[derive(Default)]
struct Flood {
    offered: AtomicU32,
    admitted: AtomicU32,
}

impl Flood {
    /// The key of the next call.
    fn key(&self) -> String {
        format!("flood/{}", self.offered.fetch_add(1, Relaxed))
    }

    /// Acquires by calls, without end.
    async fn call(&self, mut locks: LockServiceClient<Channel>) {
        loop {
            match acquire(&mut locks, ask(&self.key(), 1000, Some(0))).await {
                Ok(_) => drop(self.admitted.fetch_add(1, Relaxed)),
                Err(refused) => assert!(!limited(&refused).is_zero()),
            }
            sleep(PAUSE).await;
        }
    }

    /// Acquires over a session, without end.
    async fn ask(&self, client: Client) {
        loop {
            match client.lock(self.key()).try_acquire().await {
                Ok(_) => drop(self.admitted.fetch_add(1, Relaxed)),
                Err(refused) => assert!(refused.retry_after().is_some(), "{refused:?}"),
            }
            sleep(PAUSE).await;
        }
    }
}

const PAUSE: Duration = Duration::from_millis(4);
/// Renewed every five seconds, or at each look.
const LEASE: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn no_lock_is_lost_while_a_caller_makes_ten_times_the_calls_of_its_rate() {
    let scene = Scene::set_with(|config| config.limits.rate = 15).await;
    let client = Client::builder().coordinators(&*scene.url);
    let client = client.build().await.unwrap();
    let mut locks = scene.locks().await;
    let (mut guards, mut handles) = (Vec::<Guard>::new(), Vec::new());
    for number in 0..5 {
        let lock = client.lock(format!("session/{number}")).lease(LEASE);
        guards.push(lock.acquire().await.unwrap());
        let lease_ms = LEASE.as_millis() as u64;
        let ask = ask(&format!("call/{number}"), lease_ms, Some(0));
        handles.push(acquire(&mut locks, ask).await.unwrap().handle);
    }
    let flood = Arc::new(Flood::default());
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        // Over the same connection: each has a rate of its own.
        let (calling, locks) = (flood.clone(), locks.clone());
        callers.spawn(async move { calling.call(locks).await });
        let (asking, client) = (flood.clone(), client.clone());
        callers.spawn(async move { asking.ask(client).await });
    }
    let ends: Vec<_> = guards.iter().map(Guard::deadline).collect();
    let keep = async {
        let is_enough = || flood.offered.load(Relaxed) >= 10 * flood.admitted.load(Relaxed);
        let is_kept = || {
            let mut both = std::iter::zip(&guards, &ends);
            both.all(|(guard, end)| guard.deadline() > *end)
        };
        while !is_kept() || !is_enough() {
            for handle in &handles {
                renew(&mut locks, handle).await.unwrap();
            }
            assert!(guards.iter().all(Guard::is_held));
            if let Some(failed) = callers.try_join_next() {
                failed.unwrap();
            }
            sleep(LEASE / 30).await;
        }
    };
    timeout(Duration::from_secs(120), keep).await.unwrap();
    for guard in guards {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    for handle in &handles {
        assert_eq!(release(&mut locks, handle).await.unwrap(), 1, "it was held");
    }
}
