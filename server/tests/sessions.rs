//! Sessions: their locks, waits, losses and limits.

use std::{collections::VecDeque, time::Duration};

use futures_util::stream;
use ringfence_api::{
    Error, Reason,
    v1::{
        AcquireAsk, Ask, DowngradeAsk, ErrorReason, Grant, LockMode, PingAsk, Pong, ReleaseAsk,
        ReleaseOutcome, ResumeAsk, SessionRequest, SessionResponse, SessionTerms, WaitReason,
        answer::Kind as Told, ask::Kind, session_service_client::SessionServiceClient,
    },
};
use ringfence_client::{BootClock, Clock};
use ringfence_server::{Config, Roles};
use ringfence_test_support::eventually;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tonic::{Code, Status, Streaming};

use super::{
    access::{principal, with},
    monitor::{number, refused_for},
    scene::{Coordinator, Scene},
};

const HELD: i32 = ReleaseOutcome::Held as i32;
const LOST: i32 = ReleaseOutcome::Lost as i32;
/// Of a session whose end is waited for, or that lives longer than that.
const TTL_MS: u64 = 5000;
/// Of any other.
const LONG_MS: u64 = 30_000;
/// Between two pings.
const PAUSE: Duration = Duration::from_millis(100);
const DEADLINE: Duration = Duration::from_secs(120);

/// The caller's side of a session.
struct Session {
    asks: mpsc::Sender<SessionRequest>,
    answers: Streaming<SessionResponse>,
    unread: VecDeque<(u64, Told)>,
}

impl Session {
    async fn open(coordinator: &Coordinator, caller: &str) -> Self {
        let (asks, receiver) = mpsc::channel(16);
        let messages = stream::unfold(receiver, |mut receiver| async {
            Some((receiver.recv().await?, receiver))
        });
        let mut client = SessionServiceClient::new(coordinator.channel().await);
        let opened = client.session(with(caller, messages)).await;
        Self {
            asks,
            answers: opened.unwrap().into_inner(),
            unread: VecDeque::new(),
        }
    }

    async fn with_ttl(coordinator: &Coordinator, ttl_ms: u64) -> Self {
        let session = Self::open(coordinator, "worker").await;
        let terms = SessionTerms {
            ttl: Some(length(ttl_ms)),
            label: "worker".into(),
        };
        session.send(Some(terms), Vec::new()).await;
        session
    }

    async fn send(&self, terms: Option<SessionTerms>, asks: Vec<(u64, Option<Kind>)>) {
        let asks = asks.into_iter().map(|(id, kind)| Ask { id, kind });
        let asks = asks.collect();
        self.asks
            .send(SessionRequest { terms, asks })
            .await
            .unwrap();
    }

    async fn ask(&self, id: u64, kind: Kind) {
        self.send(None, vec![(id, Some(kind))]).await;
    }

    async fn next(&mut self) -> Result<Option<(u64, Told)>, Status> {
        while self.unread.is_empty() {
            let message = timeout(DEADLINE, self.answers.message());
            let Some(message) = message.await.expect("an answer comes")? else {
                return Ok(None);
            };
            let answers = message.answers.into_iter();
            let told = answers.map(|answer| (answer.ask_id, answer.kind.unwrap()));
            // The first answer is the same in all of them.
            let told = told.filter(|(_, told)| !matches!(told, Told::Opened(_)));
            self.unread.extend(told);
        }
        Ok(self.unread.pop_front())
    }

    /// The next answer, apart from notices that others wait.
    async fn told(&mut self) -> (u64, Told) {
        loop {
            match self.next().await.unwrap().expect("the session goes on") {
                (_, Told::Contended(_)) => {}
                told => return told,
            }
        }
    }

    /// The grant to an ask, after any number of reasons to wait.
    async fn granted(&mut self, id: u64) -> Grant {
        loop {
            match self.told().await {
                (ask, Told::Grant(grant)) if ask == id => return grant,
                (ask, Told::Wait(_)) if ask == id => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn acquired(&mut self, id: u64, key: &str) -> Grant {
        self.ask(id, acquire(key, None)).await;
        self.granted(id).await
    }

    /// Waits for a lock. Returns how many requests come first.
    async fn waits(&mut self, id: u64) -> u32 {
        loop {
            match self.told().await {
                (ask, Told::Wait(notice)) if ask == id => {
                    assert!(notice.message.contains("held by"), "{}", notice.message);
                    assert_eq!(notice.reason(), WaitReason::Held);
                    return notice.held_by.unwrap().ahead.unwrap();
                }
                (_, Told::Wait(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn released(&mut self, id: u64, ask_id: u64) -> i32 {
        self.ask(id, Kind::Release(ReleaseAsk { ask_id })).await;
        match self.told().await {
            (ask, Told::Release(notice)) if ask == id => notice.outcome,
            other => panic!("{other:?}"),
        }
    }

    async fn pinged(&mut self, id: u64) -> Pong {
        self.ask(id, Kind::Ping(PingAsk {})).await;
        match self.told().await {
            (ask, Told::Pong(pong)) if ask == id => pong,
            other => panic!("{other:?}"),
        }
    }

    async fn refused(&mut self, id: u64) -> ringfence_api::v1::ErrorDetail {
        match self.told().await {
            (ask, Told::Refusal(refusal)) if ask == id => refusal.error.unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

/// So many pings take longer than a session lives without one.
fn pings_beyond_the_ttl() -> u64 {
    TTL_MS * 5 / 4 / PAUSE.as_millis() as u64
}

fn length(ms: u64) -> prost_types::Duration {
    Duration::from_millis(ms).try_into().unwrap()
}

fn acquire(key: &str, wait_ms: Option<u64>) -> Kind {
    Kind::Acquire(AcquireAsk {
        key: key.into(),
        wait: wait_ms.map(length),
        ..AcquireAsk::default()
    })
}

fn resume(handle: &[u8]) -> Kind {
    let handle = handle.to_vec();
    Kind::Resume(ResumeAsk { handle })
}

fn shared(config: &mut Config) {
    config.handle_secrets = vec!["0123456789abcdef0123456789abcdef".into()];
    principal(config, "worker", Roles::all());
    principal(config, "thief", Roles::all());
    principal(config, "nobody", Roles::default());
    let elsewhere = Roles {
        acquire: vec!["default/elsewhere".parse().unwrap()],
        ..Roles::default()
    };
    principal(config, "elsewhere", elsewhere);
}

#[tokio::test]
async fn a_wait_then_a_grant_then_a_loss() {
    let scene = Scene::set_with(shared).await;
    let mut one = Session::with_ttl(&scene, LONG_MS).await;
    let mut two = Session::with_ttl(&scene, TTL_MS).await;
    let first = one.acquired(1, "key").await;
    assert_eq!(first.counted_from, 1);
    two.ask(7, acquire("key", None)).await;
    two.waits(7).await;
    two.pinged(8).await;
    // Without a renewal.
    let told = one.next().await.unwrap();
    assert!(matches!(told, Some((1, Told::Contended(_)))), "{told:?}");
    assert_eq!(one.released(3, 1).await, HELD);
    let second = two.granted(7).await;
    assert!(second.token > first.token);
    assert_eq!(second.counted_from, 8);
    assert!(matches!(two.told().await, (7, Told::Loss(_))));
    assert_eq!(two.released(9, 7).await, LOST);
    assert_eq!(one.released(4, 1).await, LOST);
    let pong = one.pinged(5).await;
    assert!(pong.valid_for.is_none() && pong.behind.is_empty());
}

#[tokio::test]
async fn a_grant_has_the_tokens_that_were_asked_for_and_has_them_at_every_coordinator() {
    let scene = Scene::set_with(shared).await;
    let another = scene.another(shared).await;
    let mut one = Session::with_ttl(&scene, LONG_MS).await;
    let mut two = Session::with_ttl(&another, LONG_MS).await;
    let with = |tokens| {
        let key = "key".into();
        Kind::Acquire(AcquireAsk {
            key,
            tokens,
            ..AcquireAsk::default()
        })
    };
    one.ask(1, with(3)).await;
    let first = one.granted(1).await;
    assert_eq!(first.tokens, 3);
    two.ask(1, resume(&first.handle)).await;
    let resumed = two.granted(1).await;
    assert_eq!((resumed.token, resumed.tokens), (first.token, 3));
    assert_eq!(two.released(2, 1).await, HELD);
    let next = two.acquired(3, "key").await;
    assert!(next.token >= first.token + 3 && next.tokens == 1);
    two.ask(4, with(129)).await;
    let refused = two.refused(4).await.invalid_input.unwrap();
    assert_eq!((&*refused.field, &*refused.value), ("tokens", "129"));
}

#[tokio::test]
async fn a_lock_whose_grant_was_lost_is_granted_to_a_repeat_of_the_same_caller() {
    let scene = Scene::set_with(shared).await;
    let with_nonce = || {
        Kind::Acquire(AcquireAsk {
            key: "key".into(),
            wait: Some(length(0)),
            nonce: "a".into(),
            ..AcquireAsk::default()
        })
    };
    let mut one = Session::with_ttl(&scene, LONG_MS).await;
    one.ask(1, with_nonce()).await;
    let first = one.granted(1).await;
    drop(one);
    let mut thief = Session::open(&scene, "thief").await;
    let terms = SessionTerms {
        ttl: Some(length(LONG_MS)),
        label: "worker".into(),
    };
    thief.send(Some(terms), vec![(1, Some(with_nonce()))]).await;
    assert_eq!(thief.refused(1).await.reason(), ErrorReason::Held);
    let mut two = Session::with_ttl(&scene, LONG_MS).await;
    two.ask(5, with_nonce()).await;
    let repeat = two.granted(5).await;
    assert_eq!(repeat.token, first.token);
    assert_eq!(repeat.handle, first.handle);
    assert_eq!(two.released(6, 5).await, HELD);
}

#[tokio::test]
async fn a_ping_renews_all_locks_of_a_session() {
    let scene = Scene::set_with(shared).await;
    let mut session = Session::with_ttl(&scene, TTL_MS).await;
    for id in 0..20 {
        session.acquired(id, &format!("key/{id}")).await;
    }
    for id in 100..100 + pings_beyond_the_ttl() {
        let pong = session.pinged(id).await;
        let valid_for: Duration = pong.valid_for.unwrap().try_into().unwrap();
        assert!(!valid_for.is_zero());
        assert!(pong.behind.is_empty(), "{pong:?}");
        sleep(PAUSE).await;
    }
    for id in 0..20 {
        assert_eq!(session.released(1000, id).await, HELD);
    }
}

#[tokio::test]
async fn two_sessions_get_a_lock_in_the_order_in_which_they_asked() {
    let scene = Scene::set_with(shared).await;
    let mut holder = Session::with_ttl(&scene, LONG_MS).await;
    let mut one = Session::with_ttl(&scene, LONG_MS).await;
    let mut two = Session::with_ttl(&scene, LONG_MS).await;
    let mut last = holder.acquired(1, "key").await.token;
    one.ask(1, acquire("key", None)).await;
    assert_eq!(one.waits(1).await, 0);
    two.ask(1, acquire("key", None)).await;
    assert_eq!(two.waits(1).await, 1);
    holder.released(2, 1).await;
    for session in [&mut one, &mut two] {
        let grant = session.granted(1).await;
        assert!(grant.token > last);
        last = grant.token;
        assert_eq!(session.released(2, 1).await, HELD);
    }
}

#[tokio::test]
async fn a_session_that_vanishes_loses_its_locks_after_its_ttl_and_its_waits_at_once() {
    let scene = Scene::set_with(shared).await;
    let taken = scene.other.lock("taken").label("worker").acquire().await;
    let mut session = Session::with_ttl(&scene, TTL_MS).await;
    session.ask(1, acquire("taken", None)).await;
    session.waits(1).await;
    let asked = BootClock.now();
    let grant = session.acquired(2, "key").await;
    drop(session);
    eventually("its wait ends", || async {
        scene.waiters("taken").await == 0
    })
    .await;
    assert!(!scene.is_free("key").await);
    let next = scene.other.lock("key").acquire().await.unwrap();
    let lasted = BootClock.now().since(asked);
    let valid_for: Duration = grant.valid_for.unwrap().try_into().unwrap();
    assert!(lasted >= valid_for, "{lasted:?}");
    assert!(next.token().get() > grant.token);
    drop(taken);
    eventually("nothing is left", || scene.is_free("taken")).await;
}

#[tokio::test]
async fn a_session_goes_on_at_another_coordinator_with_the_same_token() {
    let scene = Scene::set_with(shared).await;
    let other = scene.another(shared).await;
    let mut one = Session::with_ttl(&scene, TTL_MS).await;
    let grant = one.acquired(1, "key").await;
    drop(one);
    let mut two = Session::with_ttl(&other, TTL_MS).await;
    two.ask(5, resume(&grant.handle)).await;
    assert_eq!(two.granted(5).await.token, grant.token);
    for id in 10..10 + pings_beyond_the_ttl() {
        two.pinged(id).await;
        let refused = scene.other.lock("key").try_acquire().await;
        assert!(refused.is_err());
        sleep(PAUSE).await;
    }
    assert_eq!(two.released(6, 5).await, HELD);
    two.ask(7, resume(&grant.handle)).await;
    let refusal = two.refused(7).await;
    assert_eq!(refusal.reason(), Reason::LockLost);
}

#[tokio::test]
async fn a_waiter_learns_of_those_before_it_at_other_coordinators() {
    let scene = Scene::set_with(shared).await;
    let other = scene.another(shared).await;
    let mut holder = Session::with_ttl(&scene, LONG_MS).await;
    let mut one = Session::with_ttl(&scene, LONG_MS).await;
    let mut two = Session::with_ttl(&other, LONG_MS).await;
    holder.acquired(1, "key").await;
    one.ask(1, acquire("key", None)).await;
    assert_eq!(one.waits(1).await, 0);
    two.ask(1, acquire("key", None)).await;
    assert_eq!(two.waits(1).await, 1);
    two.ask(2, acquire("key", None)).await;
    while two.waits(2).await != 2 {}
    holder.released(2, 1).await;
    one.granted(1).await;
    // The others move up.
    while two.waits(1).await != 0 {}
}

#[tokio::test]
async fn a_session_shares_locks_and_goes_on_with_its_shares_elsewhere() {
    let scene = Scene::set_with(shared).await;
    let other = scene.another(shared).await;
    let of = |mode: LockMode, permits, capacity| {
        Kind::Acquire(AcquireAsk {
            key: format!("{mode:?}").into(),
            mode: mode.into(),
            permits,
            capacity,
            wait: Some(length(0)),
            ..AcquireAsk::default()
        })
    };
    let mut one = Session::with_ttl(&scene, TTL_MS).await;
    let mut granted = Vec::new();
    for (id, ask) in [
        (1, of(LockMode::Read, 0, 0)),
        (2, of(LockMode::Write, 0, 0)),
        (3, of(LockMode::Permits, 2, 3)),
    ] {
        one.ask(id, ask).await;
        granted.push(one.granted(id).await);
    }
    one.ask(4, Kind::Downgrade(DowngradeAsk { ask_id: 2 }))
        .await;
    granted[1].handle = match one.told().await {
        (4, Told::Downgrade(notice)) => notice.handle,
        other => panic!("{other:?}"),
    };
    for ask_id in [1, 9] {
        one.ask(5, Kind::Downgrade(DowngradeAsk { ask_id })).await;
        match one.told().await {
            (5, Told::Downgrade(_)) => assert_eq!(ask_id, 1, "a reader stays one"),
            (5, Told::Refusal(refusal)) => {
                let input = refusal.error.unwrap().invalid_input.unwrap();
                assert_eq!((&*input.field, ask_id), ("asks.downgrade.ask_id", 9));
            }
            other => panic!("{other:?}"),
        }
    }
    drop(one);
    let mut two = Session::with_ttl(&other, TTL_MS).await;
    for (id, grant) in (1..).zip(&granted) {
        two.ask(id, resume(&grant.handle)).await;
        assert_eq!(two.granted(id).await.token, grant.token);
    }
    let mut third = Session::with_ttl(&scene, TTL_MS).await;
    for id in 10..10 + pings_beyond_the_ttl() {
        two.pinged(id).await;
        third.ask(id, of(LockMode::Permits, 2, 3)).await;
        assert_eq!(third.refused(id).await.reason(), Reason::Held);
        sleep(PAUSE).await;
    }
    let write = Kind::Acquire(AcquireAsk {
        key: "Write".into(),
        mode: LockMode::Read.into(),
        ..AcquireAsk::default()
    });
    third.ask(1, write).await;
    third.granted(1).await;
    for id in 1..=3 {
        assert_eq!(two.released(1000, id).await, HELD);
    }
}

#[tokio::test]
async fn a_coordinator_that_stops_tells_its_sessions() {
    let mut scene = Scene::set_with(|config| {
        shared(config);
        config.grace = Duration::from_secs(60);
    })
    .await;
    let mut session = Session::with_ttl(&scene, LONG_MS).await;
    session.acquired(1, "key").await;
    session.ask(2, acquire("key", None)).await;
    session.waits(2).await;
    scene.stop();
    let mut drained = false;
    let mut refused = false;
    while !(drained && refused) {
        match session.told().await {
            (0, Told::Drain(_)) => drained = true,
            (2, Told::Refusal(refusal)) => {
                assert_eq!(refusal.error.unwrap().reason(), Reason::Stopping);
                refused = true;
            }
            other => panic!("{other:?}"),
        }
    }
    session.pinged(3).await;
    session.ask(4, acquire("free", None)).await;
    assert_eq!(session.refused(4).await.reason(), Reason::Stopping);
    assert_eq!(session.released(5, 1).await, HELD);
    assert!(session.next().await.unwrap().is_none());
    scene.ended().await;
}

#[tokio::test]
async fn limits_name_the_setting_and_the_value() {
    let scene = Scene::set_with(|config| {
        shared(config);
        config.limits.session_locks = 3;
        config.limits.session_waiters = 1;
    })
    .await;
    let mut session = Session::with_ttl(&scene, LONG_MS).await;
    session.acquired(1, "key").await;
    session.ask(2, acquire("key", None)).await;
    session.waits(2).await;
    session.ask(3, acquire("key", None)).await;
    let refusal = session.refused(3).await;
    assert_eq!(refusal.reason(), Reason::TooManyWaiters);
    let input = refusal.invalid_input.unwrap();
    assert_eq!(input.limit, "limits.session_waiters = 1");
    assert_eq!(session.released(4, 2).await, LOST);
    session.acquired(2, "key/2").await;
    session.acquired(3, "key/3").await;
    session.ask(4, acquire("key/4", None)).await;
    let refusal = session.refused(4).await;
    assert_eq!(refusal.reason(), Reason::TooManyHeld);
    let input = refusal.invalid_input.unwrap();
    assert_eq!(input.limit, "limits.session_locks = 3");
    for limit in ["session_waiters", "session_locks"] {
        assert_eq!(refused_for(&scene, limit).await, 1.0, "{limit}");
    }
    assert_eq!(session.released(5, 1).await, HELD);
    session.acquired(4, "key/4").await;
    assert_eq!(number(&scene, "ringfence_sessions ").await, 1.0);
    drop(session);
    eventually("the session has ended", async || {
        number(&scene, "ringfence_sessions ").await == 0.0
    })
    .await;
}

#[tokio::test]
async fn refused_asks_reach_no_shard() {
    let scene = Scene::set_with(shared).await;
    let mut worker = Session::with_ttl(&scene, LONG_MS).await;
    let grant = worker.acquired(1, "key").await;
    let mut changed = grant.handle.clone();
    *changed.last_mut().unwrap() ^= 1;
    let asks = [
        ("thief", resume(&grant.handle), Reason::InvalidInput),
        ("worker", resume(&changed), Reason::InvalidInput),
        ("elsewhere", acquire("key", None), Reason::NotAllowed),
        ("worker", acquire("", None), Reason::InvalidInput),
    ];
    let refused = async || {
        for (caller, ask, reason) in asks.clone() {
            let mut session = Session::open(&scene, caller).await;
            let terms = Some(SessionTerms::default());
            session.send(terms, vec![(9, Some(ask))]).await;
            assert_eq!(session.refused(9).await.reason(), reason, "{caller}");
        }
    };
    scene.reaches_no_shard(refused).await;
}

#[tokio::test]
async fn who_has_no_role_opens_no_session() {
    let scene = Scene::set_with(shared).await;
    let mut client = SessionServiceClient::new(scene.channel().await);
    let refused = client.session(with("nobody", stream::pending())).await;
    let error = Error::from_status(&refused.unwrap_err());
    assert_eq!(error.reason, Reason::NotAllowed);
    assert_eq!(error.message, "principals.nobody has no role");
}

/// Each asks for an answer that is longer than the ask.
#[tokio::test]
async fn many_asks_of_one_message_are_answered_in_their_order() {
    let scene = Scene::set_with(shared).await;
    let mut session = Session::with_ttl(&scene, LONG_MS).await;
    session.acquired(1, "key").await;
    let ask = |id: u64| match id % 3 {
        0 => Kind::Downgrade(DowngradeAsk { ask_id: 1 }),
        1 => resume(b"no handle"),
        _ => Kind::Ping(PingAsk {}),
    };
    let ids = 2..3002;
    session
        .send(None, ids.clone().map(|id| (id, Some(ask(id)))).collect())
        .await;
    let mut told = Vec::new();
    for _ in ids.clone() {
        told.push(session.told().await.0);
    }
    let of_kind = |told: &[u64], kind| {
        told.iter()
            .copied()
            .filter(|id| id % 3 == kind)
            .collect::<Vec<_>>()
    };
    for kind in 0..3 {
        let ids: Vec<_> = ids.clone().collect();
        assert_eq!(of_kind(&told, kind), of_kind(&ids, kind));
    }
}

#[tokio::test]
async fn asks_are_not_read_while_the_answers_are_not() {
    let scene = Scene::set_with(shared).await;
    let mut session = Session::with_ttl(&scene, LONG_MS).await;
    let no_handle = resume(&[0; 600]);
    let asks = || (0..50).map(|_| (9, Some(no_handle.clone()))).collect();
    let mut sent = 0;
    while timeout(Duration::from_secs(1), session.send(None, asks()))
        .await
        .is_ok()
    {
        sent += 50;
        assert!(sent < 100_000, "its asks pile up");
    }
    for _ in 0..sent {
        session.refused(9).await;
    }
}

#[tokio::test]
async fn malformed_asks_end_the_session() {
    let scene = Scene::set_with(shared).await;
    let terms = || Some(SessionTerms::default());
    let short = SessionTerms {
        ttl: Some(length(99)),
        ..SessionTerms::default()
    };
    let key = || Some(acquire("key", None));
    let messages = [
        (vec![(None, vec![(1, key())])], "terms"),
        (vec![(terms(), Vec::new()), (terms(), Vec::new())], "terms"),
        (vec![(Some(short), Vec::new())], "terms.ttl"),
        (vec![(terms(), vec![(1, None)])], "asks.kind"),
        (vec![(terms(), vec![(1, key()), (1, key())])], "asks.id"),
    ];
    for (messages, field) in messages {
        let mut session = Session::open(&scene, "worker").await;
        for (terms, asks) in messages {
            session.send(terms, asks).await;
        }
        let ended = loop {
            match session.next().await {
                Ok(told) => assert!(told.is_some()),
                Err(status) => break status,
            }
        };
        assert_eq!(ended.code(), Code::InvalidArgument, "{ended:?}");
        assert_eq!(Error::from_status(&ended).input.unwrap().field, field);
    }
    eventually("nothing is left", || scene.is_free("key")).await;
}
