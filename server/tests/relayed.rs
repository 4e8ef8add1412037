//! The library over a slow or silent way to its coordinator: no lock is believed for longer than its lease.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use ringfence_api::v1::{
    Answer, Ask, Grant, SessionRequest, SessionResponse,
    answer::Kind as Told,
    ask::Kind as Asked,
    session_service_client::SessionServiceClient,
    session_service_server::{SessionService, SessionServiceServer},
};
use ringfence_client::{BootClock, Client, Clock, Coordinators, Guard, Instant, ReleaseAnswer};
use ringfence_test_support::eventually;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Channel, Server, server::TcpIncoming},
};

use super::scene::Scene;

/// Of a lock whose renewals, or whose end, are waited for.
const LEASE: Duration = Duration::from_secs(6);
const DEADLINE: Duration = Duration::from_secs(120);

/// How long an answer is under way; none: it is lost. By the number of its session, from 0.
type AnswerRule = dyn Fn(usize, &Told) -> Option<Duration> + Send;

/// Whether an ask is passed on.
type AskRule = dyn Fn(&Asked) -> bool + Send;

/// What passes between a process and a real coordinator.
struct Passing {
    coordinator: Channel,
    answers: Mutex<Box<AnswerRule>>,
    asks: Mutex<Box<AskRule>>,
    seen: Mutex<Seen>,
    cut: Mutex<CancellationToken>,
}

#[derive(Default)]
struct Seen {
    sessions: usize,
    /// When each ask passed: no earlier than it was sent.
    asks: HashMap<u64, Instant>,
    answers: Vec<(usize, u64, Told)>,
}

/// Relays sessions to a coordinator. It ends with this value.
struct Relay {
    passing: Arc<Passing>,
    url: String,
    _service: JoinSet<()>,
}

impl Relay {
    async fn to(scene: &Scene) -> Self {
        let passing = Arc::new(Passing {
            coordinator: scene.channel().await,
            answers: Mutex::new(Box::new(|_, _| Some(Duration::ZERO))),
            asks: Mutex::new(Box::new(|_| true)),
            seen: Mutex::default(),
            cut: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = SessionServiceServer::new(Relayed(passing.clone()));
        let mut service = JoinSet::new();
        service.spawn(async {
            let connections = TcpIncoming::from(listener).with_nodelay(Some(true));
            let server = Server::builder().add_service(served);
            server.serve_with_incoming(connections).await.unwrap();
        });
        Self {
            passing,
            url,
            _service: service,
        }
    }

    async fn client(&self) -> Client {
        let client = Client::builder().coordinators(Coordinators::new(&self.url));
        client.build().await.unwrap()
    }

    fn answers(&self, rule: impl Fn(usize, &Told) -> Option<Duration> + Send + 'static) {
        *self.passing.answers.lock() = Box::new(rule);
    }

    fn asks(&self, rule: impl Fn(&Asked) -> bool + Send + 'static) {
        *self.passing.asks.lock() = Box::new(rule);
    }

    /// Ends all sessions.
    fn cut(&self) {
        std::mem::take(&mut *self.passing.cut.lock()).cancel();
    }

    fn sessions(&self) -> usize {
        self.passing.seen.lock().sessions
    }

    fn grants(&self) -> Vec<Grant> {
        let seen = self.passing.seen.lock();
        let grants = seen.answers.iter().filter_map(|(_, _, told)| match told {
            Told::Grant(grant) => Some(grant.clone()),
            _ => None,
        });
        grants.collect()
    }

    /// The number of pongs in `session`.
    fn pongs(&self, session: usize) -> usize {
        let seen = self.passing.seen.lock();
        let pongs = seen.answers.iter();
        let pongs = pongs.filter(|(its, _, told)| *its == session && matches!(told, Told::Pong(_)));
        pongs.count()
    }

    /// The latest time until which an answer so far lets its reader believe in a lock.
    fn latest_deadline(&self) -> Instant {
        let seen = self.passing.seen.lock();
        let until = |(_, id, told): &(usize, u64, Told)| {
            let (counted_from, valid_for) = match told {
                Told::Grant(grant) => (grant.counted_from, grant.valid_for?),
                Told::Pong(pong) => (*id, pong.valid_for?),
                _ => return None,
            };
            Some(seen.asks[&counted_from] + valid_for.try_into().unwrap())
        };
        seen.answers.iter().filter_map(until).max().unwrap()
    }
}

struct Relayed(Arc<Passing>);

type Answers = Pin<Box<dyn Stream<Item = Result<SessionResponse, Status>> + Send>>;

#[tonic::async_trait]
impl SessionService for Relayed {
    type SessionStream = Answers;

    async fn session(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let passing = self.0.clone();
        let messages = request.into_inner().map(move |message| {
            let mut message = message.unwrap_or_default();
            message.asks.retain(|ask| passing.asks(ask));
            message
        });
        let mut coordinator = SessionServiceClient::new(self.0.coordinator.clone());
        let answers = coordinator.session(messages).await?.into_inner();
        let session = {
            let mut seen = self.0.seen.lock();
            seen.sessions += 1;
            seen.sessions - 1
        };
        let under_way = UnderWay {
            passing: self.0.clone(),
            session,
            answers,
            due: VecDeque::new(),
        };
        let answers = stream::unfold(under_way, async |mut under_way| {
            Some((Ok(under_way.next().await?), under_way))
        });
        let cut = self.0.cut.lock().clone();
        let answers = answers.take_until(cut.cancelled_owned());
        Ok(Response::new(Box::pin(answers)))
    }
}

impl Passing {
    /// Whether `ask` is passed on.
    fn asks(&self, ask: &Ask) -> bool {
        let now = BootClock.now();
        self.seen.lock().asks.insert(ask.id, now);
        self.asks.lock()(ask.kind.as_ref().unwrap())
    }
}

/// The answers of a session.
struct UnderWay {
    passing: Arc<Passing>,
    session: usize,
    answers: Streaming<SessionResponse>,
    /// With the time at which each arrives, in the order of these times.
    due: VecDeque<(tokio::time::Instant, Answer)>,
}

impl UnderWay {
    /// The next answer to arrive.
    async fn next(&mut self) -> Option<SessionResponse> {
        loop {
            let first = self.due.front().map(|(at, _)| *at);
            tokio::select! {
                message = self.answers.message() => {
                    message.ok()??.answers.into_iter().for_each(|answer| self.leaves(answer));
                }
                () = async { sleep_until(first.unwrap()).await }, if first.is_some() => {
                    let (_, answer) = self.due.pop_front()?;
                    return Some(SessionResponse { answers: vec![answer] });
                }
            }
        }
    }

    fn leaves(&mut self, answer: Answer) {
        let told = answer.kind.clone().unwrap();
        let length = self.passing.answers.lock()(self.session, &told);
        let mut seen = self.passing.seen.lock();
        seen.answers.push((self.session, answer.ask_id, told));
        if let Some(length) = length {
            let at = tokio::time::Instant::now() + length;
            let place = self.due.partition_point(|(its, _)| *its <= at);
            self.due.insert(place, (at, answer));
        }
    }
}

async fn acquired(client: &Client, key: &str, lease: Duration) -> Guard {
    client.lock(key).lease(lease).acquire().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_counts_from_the_ask_and_the_ping_and_not_from_their_late_answers() {
    let scene = Scene::set().await;
    let relay = Relay::to(&scene).await;
    let client = relay.client().await;
    relay.answers(|_, _| Some(Duration::from_millis(400)));
    let guard = acquired(&client, "key", LEASE).await;
    let granted_until = guard.deadline();
    assert!(granted_until <= relay.latest_deadline());
    eventually("a ping renews it", || async {
        guard.deadline() > granted_until
    })
    .await;
    assert!(guard.deadline() <= relay.latest_deadline());
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pong_renews_no_lock_that_the_coordinator_has_not_resumed() {
    let scene = Scene::set().await;
    let relay = Relay::to(&scene).await;
    let client = relay.client().await;
    let forgotten = acquired(&client, "forgotten", LEASE).await;
    let handle = relay.grants().remove(0).handle;
    let resumed = acquired(&client, "resumed", LEASE).await;
    let before = relay.sessions();
    relay.asks(move |ask| !matches!(ask, Asked::Resume(resume) if resume.handle == handle));
    relay.cut();
    let next = scene.other.lock("forgotten");
    let next = timeout(DEADLINE, next.acquire()).await.unwrap().unwrap();
    assert!(!forgotten.is_held() && resumed.is_held());
    assert!(next.token() > forgotten.token());
    // The session whose pongs did not count.
    assert!(relay.sessions() > before && relay.pongs(before) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pong_renews_after_grants_of_later_asks() {
    let scene = Scene::set().await;
    let relay = Relay::to(&scene).await;
    let client = relay.client().await;
    relay.answers(|_, told| {
        let is_pong = matches!(told, Told::Pong(_));
        Some(Duration::from_millis(if is_pong { 300 } else { 0 }))
    });
    let lease = 5 * LEASE;
    let guard = acquired(&client, "key", lease).await;
    let granted_until = guard.deadline();
    while guard.deadline() == granted_until {
        acquired(&client, "other", lease).await.release().await;
        assert!(guard.is_held(), "no pong has renewed it");
    }
    assert!(guard.deadline() <= relay.latest_deadline());
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_whose_grant_was_lost_with_its_stream_is_granted_in_the_next_one() {
    let scene = Scene::set().await;
    let relay = Relay::to(&scene).await;
    let client = relay.client().await;
    let is_lost = AtomicBool::new(false);
    relay.answers(move |_, told| {
        let is_first = matches!(told, Told::Grant(_)) && !is_lost.swap(true, Relaxed);
        (!is_first).then_some(Duration::ZERO)
    });
    let cut = async {
        eventually("it is granted", async || relay.grants().len() == 1).await;
        relay.cut();
    };
    let lock = client.lock("key");
    let (guard, ()) = tokio::join!(lock.acquire(), cut);
    assert_eq!(guard.unwrap().token().get(), relay.grants()[0].token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_answers_is_left_before_its_locks_end() {
    let scene = Scene::set().await;
    let relay = Relay::to(&scene).await;
    let client = relay.client().await;
    let guard = acquired(&client, "key", LEASE).await;
    let silent = relay.sessions();
    relay.answers(move |session, _| (session >= silent).then_some(Duration::ZERO));
    let end = guard.deadline();
    eventually("another session renews it", async || {
        assert!(guard.is_held());
        relay.sessions() > silent && guard.deadline() > end
    })
    .await;
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

/// A way to a coordinator that can forget its connections, and its URL.
async fn forgetful_way(scene: &Scene) -> (ringfence_test_support::Relay, String) {
    let (_, port) = scene.url.rsplit_once(':').unwrap();
    let way = ringfence_test_support::Relay::in_pieces(port.parse().unwrap(), 1 << 16).await;
    let url = format!("http://127.0.0.1:{}", way.port());
    (way, url)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: until a connection that is silent is given up"]
async fn a_grant_that_is_lost_with_its_connection_is_asked_for_at_the_same_coordinator() {
    let scene = Scene::set().await;
    let other = scene.another(|_| {}).await;
    let (way, url) = forgetful_way(&scene).await;
    // The first session only learns the longest lease; the next one begins at the second coordinator.
    let client = Client::builder().coordinators(Coordinators::new([&other.url, &url]));
    let client = client.build().await.unwrap();
    let held = scene.other.lock("key").acquire().await.unwrap();
    let lock = client.lock("key");
    let lost = async {
        eventually("it waits", async || scene.waiters("key").await == 1).await;
        way.forget();
        held.release().await;
        let holder = async || scene.other.lock("key").inspect().await.unwrap().holder;
        eventually("it is granted", async || holder().await.is_some()).await;
        holder().await.unwrap().token
    };
    let (guard, token) = tokio::join!(lock.acquire(), lost);
    assert_eq!(guard.unwrap().token(), token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_went_silent_is_replaced_and_its_lock_is_kept() {
    let scene = Scene::set().await;
    let (way, url) = forgetful_way(&scene).await;
    let client = Client::builder().coordinators(Coordinators::new(&url));
    let client = client.build().await.unwrap();
    let guard = client.lock("key").acquire().await.unwrap();
    way.forget();
    // Until the silence is noticed, calls and waits end without an answer.
    eventually("served over another connection", async || {
        let other = client.lock("other").wait(LEASE).acquire().await;
        other.is_ok()
    })
    .await;
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}
