//! The coordinators: streams and calls.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use ringfence_api::{
    Effect, Error, Reason,
    v1::{
        ForceReleaseRequest, InspectRequest, ListRequest, SessionOpened, SessionRequest,
        SessionResponse, SessionTerms, admin_service_client::AdminServiceClient, answer::Kind,
        lock_service_client::LockServiceClient, session_service_client::SessionServiceClient,
    },
};
use ringfence_coordinator::{
    engine::{AcquireError, Ask, Connection, CoordinatorError, Coordinators, Locks},
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{Holder, Inspection},
};
use tokio::{sync::mpsc, time::timeout};
use tonic::{
    Request, Response, Status, Streaming,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

use super::{Token, coordinator::Coordinator, peer, seen, told};

/// A call without a wait is given up after this.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Messages under way to a coordinator, at most.
const MESSAGES_MAX: usize = 16;

/// Asks in one message, at most: it stays below the limit of a request.
const ASKS_MAX: usize = 64;

/// A process begins at one of so many addresses of a host, so that processes spread over its coordinators.
const FIRST_ADDRESSES: u64 = 64;

/// Coordinators, one of which is used until it fails.
#[derive(Clone)]
pub(crate) struct Reach {
    coordinators: Arc<[Coordinator]>,
    /// The position that the next call uses.
    calls_at: Arc<AtomicUsize>,
    /// The position where the next session begins.
    sessions_at: Arc<AtomicUsize>,
    /// The last one that could be read.
    header: Arc<Mutex<Option<MetadataValue<Ascii>>>>,
    /// What it was made of.
    of: super::Coordinators,
}

impl Reach {
    pub(super) fn new(of: &super::Coordinators, random: &Random) -> Result<Self, CoordinatorError> {
        if of.urls.is_empty() {
            return Err(CoordinatorError::refused("no coordinator is named"));
        }
        let header = of.token.as_ref().map(Token::header).transpose();
        let header = header.map_err(CoordinatorError::refused)?;
        let round = usize::try_from(random.below(FIRST_ADDRESSES)).unwrap_or_default();
        let position = round * of.urls.len();
        Ok(Self {
            coordinators: Self::coordinators(of)?,
            calls_at: Arc::new(AtomicUsize::new(position)),
            sessions_at: Arc::new(AtomicUsize::new(position)),
            header: Arc::new(Mutex::new(header)),
            of: of.clone(),
        })
    }

    fn coordinators(of: &super::Coordinators) -> Result<Arc<[Coordinator]>, CoordinatorError> {
        let coordinators = of.urls.iter().map(|url| Coordinator::new(url, of));
        coordinators.collect()
    }

    /// The longest lease that the coordinators grant. A coordinator that gives no answer has `attempt` of the time.
    pub(super) async fn longest_lease(
        &self,
        within: Duration,
        attempt: Duration,
    ) -> Result<Duration, CoordinatorError> {
        let attempts = async {
            loop {
                let opened = self.open_session(SessionTerms::default());
                if let Ok(opened) = timeout(attempt, opened).await {
                    return opened;
                }
            }
        };
        let opened = timeout(within, attempts).await.unwrap_or_else(|_| {
            let message = format!("no coordinator answers within {within:?}");
            Err(CoordinatorError::unreachable(message))
        })?;
        Ok(told::length(opened.terms.ttl))
    }

    pub(super) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = self.token() {
            request.metadata_mut().insert("authorization", token);
        }
        request
    }

    /// The bearer token. While its file cannot be read, as in a rotation, the last one stays.
    fn token(&self) -> Option<MetadataValue<Ascii>> {
        let mut last = self.header.lock();
        if let Some(token @ Token::File(_)) = &self.of.token
            && let Ok(header) = token.header()
        {
            *last = Some(header);
        }
        last.clone()
    }

    /// Each coordinator once, beginning with the one at the position `at`. Positions go round the hosts, and with each round
    /// to the next address of each.
    fn in_turn(&self, at: &AtomicUsize) -> impl Iterator<Item = (usize, &Coordinator)> {
        let first = at.load(Relaxed);
        // Addresses may become known meanwhile.
        let positions = (first..).take_while(move |position| position - first < self.positions());
        positions.map(|position| {
            (
                position,
                &self.coordinators[position % self.coordinators.len()],
            )
        })
    }

    /// The number of positions until each coordinator had its turn.
    fn positions(&self) -> usize {
        let addresses = self.coordinators.iter().map(Coordinator::addresses);
        self.coordinators.len() * addresses.max().unwrap_or(1)
    }

    /// A connection to the coordinator at `position`.
    fn channel(&self, position: usize) -> Channel {
        let count = self.coordinators.len();
        self.coordinators[position % count].channel(position / count)
    }

    /// Makes a call at the first coordinator that answers, for at most `within` at each.
    ///
    /// # Errors
    ///
    /// The last one.
    pub(super) async fn ask<T, Calling: Future<Output = Result<Response<T>, Status>>>(
        &self,
        within: Duration,
        call: impl Fn(Channel) -> Calling,
    ) -> Result<T, Failed> {
        let (mut last, mut repeats) = (None, false);
        for (position, coordinator) in self.in_turn(&self.calls_at) {
            let unanswered = MovesOn(&self.calls_at, position + 1);
            let answer = timeout(within, call(self.channel(position))).await;
            let answer = answer.unwrap_or_else(|_| {
                Err(Status::deadline_exceeded(format!(
                    "no answer within {within:?}"
                )))
            });
            let error = match answer.map_err(|status| Error::from_status(&status)) {
                Err(error) if is_of_another(&error) => error,
                answer => {
                    unanswered.not();
                    let answer = answer.map(Response::into_inner);
                    return answer.map_err(|error| Failed { error, repeats });
                }
            };
            repeats |= error.effect != Effect::None;
            last = Some((coordinator, error));
            coordinator.look_up().await;
        }
        let (Coordinator { name, .. }, error) = last.expect("there is a coordinator");
        let message = format!("coordinator {name}: {}", error.message);
        let error = Error { message, ..error };
        Err(Failed { error, repeats })
    }

    /// Makes a call about locks.
    pub(super) async fn call<T, Calling: Future<Output = Result<Response<T>, Status>>>(
        &self,
        call: impl Fn(Channel) -> Calling,
    ) -> Result<T, AcquireError> {
        let answer = self.ask(ANSWER_WITHIN, call).await;
        answer.map_err(|Failed { mut error, repeats }| {
            if repeats {
                error.effect = Effect::Unknown;
            }
            told::error(&error)
        })
    }

    /// Opens a session at the first coordinator that takes it.
    async fn open_session(&self, terms: SessionTerms) -> Result<Opened, CoordinatorError> {
        let mut last = None;
        for (position, coordinator) in self.in_turn(&self.sessions_at) {
            // The next session begins at another one, in case that this one is of no use. It may never answer.
            self.sessions_at.store(position + 1, Relaxed);
            coordinator.look_up().await;
            match self.open_at(position, terms.clone()).await {
                Ok(opened) => return Ok(opened),
                Err(error) if !is_of_another(&error) => {
                    let advice = peer::without_grpc(&error.message).map(|advice| {
                        CoordinatorError::refused(format!(
                            "coordinator {}: {advice}",
                            coordinator.name
                        ))
                    });
                    return Err(advice.unwrap_or_else(|| told::refusal(&error)));
                }
                Err(error) => last = Some((coordinator, error)),
            }
        }
        let (coordinator, error) = last.expect("there is a coordinator");
        let mut message = format!("coordinator {}: {}", coordinator.name, error.message);
        if error.reason == Reason::Unspecified
            && let Some(advice) = peer::advice(coordinator.url()).await
        {
            message.push_str(&format!(" ({advice})"));
        }
        Err(CoordinatorError::unreachable(message))
    }

    async fn open_at(&self, at: usize, terms: SessionTerms) -> Result<Opened, Error> {
        let (asks, messages) = mpsc::channel::<Vec<Ask>>(MESSAGES_MAX);
        let first = SessionRequest {
            terms: Some(terms),
            asks: Vec::new(),
        };
        let messages = stream::unfold(messages, async |mut messages| {
            Some((messages.recv().await?, messages))
        });
        let messages = messages.flat_map(|asks| stream::iter(requests(&asks)));
        let messages = stream::once(async { first }).chain(messages);
        let mut client = SessionServiceClient::new(self.channel(at));
        let opened = client.session(self.request(messages)).await;
        let opened = opened.map_err(|status| Error::from_status(&status))?;
        let mut answers = opened.into_inner();
        let first = answers.message().await;
        let first = first.map_err(|status| Error::from_status(&status))?;
        let first = first.and_then(|first| first.answers.into_iter().next()?.kind);
        match first {
            Some(Kind::Opened(terms)) => Ok(Opened {
                at,
                terms,
                asks,
                answers,
            }),
            _ => Err(Error::new(
                Reason::Internal,
                "a coordinator of another release",
            )),
        }
    }
}

/// Has the next call begin at that position, also if this call is dropped: its caller may not wait as long as a coordinator
/// has for its answer.
struct MovesOn<'a>(&'a AtomicUsize, usize);

impl MovesOn<'_> {
    /// The coordinator has answered.
    fn not(self) {
        std::mem::forget(self);
    }
}

impl Drop for MovesOn<'_> {
    fn drop(&mut self) {
        self.0.store(self.1, Relaxed);
    }
}

/// The error of a call.
pub(super) struct Failed {
    pub(super) error: Error,
    /// An earlier attempt, at another coordinator, may have taken effect.
    pub(super) repeats: bool,
}

/// A session that a coordinator has taken.
struct Opened {
    /// The position of the coordinator.
    at: usize,
    terms: SessionOpened,
    asks: mpsc::Sender<Vec<Ask>>,
    answers: Streaming<SessionResponse>,
}

/// The messages that have `asks`.
fn requests(asks: &[Ask]) -> Vec<SessionRequest> {
    let message = |asks: &[Ask]| SessionRequest {
        terms: None,
        asks: asks.iter().map(told::ask).collect(),
    };
    asks.chunks(ASKS_MAX).map(message).collect()
}

#[async_trait]
impl Coordinators for Reach {
    async fn open(&self, lease: Duration, label: &Label) -> Result<Connection, CoordinatorError> {
        let terms = SessionTerms {
            ttl: lease.try_into().ok(),
            label: label.to_string(),
        };
        let opened = self.open_session(terms).await?;
        let Opened {
            at, asks, answers, ..
        } = opened;
        let (sessions_at, mut has_served) = (self.sessions_at.clone(), false);
        let answers = answers.inspect(move |told| match told {
            Ok(_) => has_served = true,
            // The connection broke. A grant may be lost with it, which a repeat of its ask gets there.
            Err(_) if has_served => sessions_at.store(at, Relaxed),
            Err(_) => {}
        });
        let answers = answers.map_ok(told::told);
        let answers = answers.map_err(|status| told::refusal(&Error::from_status(&status)));
        Ok(Connection {
            asks,
            answers: answers.boxed(),
        })
    }

    fn afresh(&self) -> Result<Arc<dyn Coordinators>, CoordinatorError> {
        let latest = self.sessions_at.load(Relaxed).saturating_sub(1);
        Ok(Arc::new(Self {
            coordinators: Self::coordinators(&self.of)?,
            sessions_at: Arc::new(AtomicUsize::new(latest)),
            ..self.clone()
        }))
    }

    fn has_others(&self) -> bool {
        self.positions() > 1
    }

    async fn inspect(&self, key: &LockKey) -> Result<Inspection, AcquireError> {
        let found = self.call(|channel| {
            let request = self.request(InspectRequest {
                namespace: key.namespace().to_owned(),
                key: key.key().to_vec(),
            });
            async move { LockServiceClient::new(channel).inspect(request).await }
        });
        Ok(seen::inspection(found.await?))
    }

    async fn force_release(
        &self,
        key: &LockKey,
        reason: &str,
    ) -> Result<Vec<Holder>, AcquireError> {
        let released = self.call(|channel| {
            let request = self.request(ForceReleaseRequest {
                namespace: key.namespace().to_owned(),
                key: key.key().to_vec(),
                reason: reason.to_owned(),
            });
            async move {
                AdminServiceClient::new(channel)
                    .force_release(request)
                    .await
            }
        });
        let holders = released.await?.holders.into_iter();
        Ok(holders.map(seen::holder).collect())
    }

    fn locks(&self, namespace: Option<Namespace>) -> Locks {
        let (reach, namespace) = (self.clone(), namespace.map(|name| name.to_string()));
        let pages = async move {
            let request = ListRequest {
                namespace: namespace.unwrap_or_default(),
            };
            let pages = reach.call(|channel| {
                let request = reach.request(request.clone());
                async move { LockServiceClient::new(channel).list(request).await }
            });
            pages.await
        };
        seen::locks(pages)
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.coordinators.iter().map(|its| &its.name);
        formatter.debug_list().entries(names).finish()
    }
}

/// Whether another coordinator may serve the call.
fn is_of_another(error: &Error) -> bool {
    // Without a reason, it is from the connection.
    error.is_retryable
        && matches!(
            error.reason,
            Reason::Unspecified | Reason::Deadline | Reason::Stopping
        )
}
