//! LockService: one call per step.

mod handle;
mod holds;
mod mode;
mod pages;
mod repeats;
mod waits;

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, Stream};
use ringfence_api::{
    Effect, Error, Reason,
    v1::{
        AcquireAndWatchResponse, AcquireRequest, AcquireResponse, DowngradeRequest,
        DowngradeResponse, InspectRequest, InspectResponse, ListRequest, ListResponse, LockHolder,
        LockWaiter, ReleaseOutcome, ReleaseRequest, ReleaseResponse, RenewRequest, RenewResponse,
        lock_service_server::LockService,
    },
};
use ringfence_client::{
    Client, DetachedLease, Guard, Holder, LeaseRef, Lock, LockMode, Preference, QueuedWaiter,
    ReleaseAnswer, Waiting,
};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

pub(crate) use handle::Handles;
pub(crate) use holds::{Holds, valid_for};
pub(crate) use waits::Told;

use crate::{
    access::{Call, Caller, admit, caller_of},
    deadline::Deadline,
    errors,
    fields::{label, length, namespace, to_length},
    traces,
};

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Receives the reasons to wait.
pub(crate) type Observe = Box<dyn Fn(Waiting) + Send + Sync>;

/// Serves LockService.
#[derive(Clone)]
pub(crate) struct Locks {
    client: Client,
    holds: Arc<Holds>,
    handles: Arc<Handles>,
    /// No new locks: the coordinator stops.
    stop: CancellationToken,
}

impl Locks {
    /// Serves locks of `client` until `stop`.
    pub(crate) fn new(
        client: Client,
        holds: Arc<Holds>,
        handles: Arc<Handles>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            client,
            holds,
            handles,
            stop,
        }
    }

    /// The lock of `handle`, if that is a handle of the caller of `request`.
    fn lock_of<T>(&self, request: &Request<T>, handle: &[u8]) -> Result<LeaseRef, Error> {
        let caller = caller_of(request)?;
        self.handles.open(handle, caller, &self.client)
    }

    /// The lease that `ask` is for.
    fn lease(&self, ask: &AcquireRequest) -> Result<Duration, Error> {
        let longest = || self.client.topology().constants.max_lease();
        Ok(length("lease", ask.lease)?.unwrap_or_else(longest))
    }

    /// Acquires the lock that `ask` is for. `observe` gets the reasons to wait.
    async fn acquired(
        &self,
        caller: &Caller,
        mut ask: AcquireRequest,
        deadline: Deadline,
        observe: Option<Observe>,
    ) -> Result<AcquireResponse, Error> {
        ask.label = label(&ask.label);
        let asked = Asked {
            caller,
            ask: &ask,
            tokens: 1,
            lease: self.lease(&ask)?,
            deadline,
            observe,
        };
        let held = acquire(&self.holds, &self.stop, asked).await?;
        Ok(AcquireResponse {
            handle: self.handles.seal(&held.reference(), caller.name()),
            token: held.token().get(),
            valid_for: Some(to_length(valid_for(&held))),
        })
    }
}

#[tonic::async_trait]
impl LockService for Locks {
    async fn acquire(
        &self,
        request: Request<AcquireRequest>,
    ) -> Result<Response<AcquireResponse>, Status> {
        let AcquireRequest { namespace, key, .. } = request.get_ref();
        let _admitted = admit(&request, Call::Acquire(namespace, key))?;
        let deadline = Deadline::of(&request);
        let caller = caller_of(&request)?.clone();
        let ask = request.into_inner();
        let granted = self.acquired(&caller, ask, deadline, None).await?;
        Ok(Response::new(granted))
    }

    type AcquireAndWatchStream = Answers<AcquireAndWatchResponse>;

    async fn acquire_and_watch(
        &self,
        request: Request<AcquireRequest>,
    ) -> Result<Response<Self::AcquireAndWatchStream>, Status> {
        let AcquireRequest { namespace, key, .. } = request.get_ref();
        let admitted = admit(&request, Call::Acquire(namespace, key))?;
        let deadline = Deadline::of(&request);
        let caller = caller_of(&request)?.clone();
        let (locks, ask) = (self.clone(), request.into_inner());
        let (latest, reasons) = watch::channel(None);
        let observe = move |waiting| _ = latest.send_replace(Some(waiting));
        let observe: Option<Observe> = Some(Box::new(observe));
        let acquisition = async move { locks.acquired(&caller, ask, deadline, observe).await };
        let events = waits::until_granted(acquisition.boxed(), reasons, admitted);
        Ok(Response::new(Box::pin(events)))
    }

    async fn renew(
        &self,
        request: Request<RenewRequest>,
    ) -> Result<Response<RenewResponse>, Status> {
        let lease = self.lock_of(&request, &request.get_ref().handle)?;
        let deadline = Deadline::of(&request);
        let held = deadline
            .run(self.holds.renew(&lease, caller_of(&request)?))
            .await??;
        Ok(Response::new(RenewResponse {
            valid_for: Some(to_length(valid_for(&held))),
            stopping: self.stop.is_cancelled(),
        }))
    }

    async fn release(
        &self,
        request: Request<ReleaseRequest>,
    ) -> Result<Response<ReleaseResponse>, Status> {
        let lease = self.lock_of(&request, &request.get_ref().handle)?;
        let deadline = Deadline::of(&request);
        let answer = deadline
            .run(self.holds.release(&lease, caller_of(&request)?))
            .await??;
        Ok(Response::new(ReleaseResponse {
            outcome: outcome(answer).into(),
        }))
    }

    async fn downgrade(
        &self,
        request: Request<DowngradeRequest>,
    ) -> Result<Response<DowngradeResponse>, Status> {
        let lease = self.lock_of(&request, &request.get_ref().handle)?;
        let caller = caller_of(&request)?.clone();
        let deadline = Deadline::of(&request);
        let held = deadline
            .run(self.holds.downgrade(&lease, &caller))
            .await??;
        Ok(Response::new(DowngradeResponse {
            handle: self.handles.seal(&held.reference(), caller.name()),
            valid_for: Some(to_length(valid_for(&held))),
        }))
    }

    async fn inspect(
        &self,
        request: Request<InspectRequest>,
    ) -> Result<Response<InspectResponse>, Status> {
        let InspectRequest { namespace: of, key } = request.get_ref();
        let _admitted = admit(&request, Call::Read(of, key))?;
        let deadline = Deadline::of(&request);
        let InspectRequest { namespace: of, key } = request.into_inner();
        let lock = self.client.lock(&key).namespace(namespace(&of));
        let inspected = deadline.run(lock.inspect()).await?;
        let inspected = inspected.map_err(|error| errors::lock(&error))?;
        Ok(Response::new(InspectResponse {
            holder: inspected.holder.as_ref().map(holder),
            waiters: inspected.waiters.iter().map(waiter).collect(),
            others: inspected.others.iter().map(holder).collect(),
        }))
    }

    type ListStream = Answers<ListResponse>;

    async fn list(
        &self,
        request: Request<ListRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let of = &*request.get_ref().namespace;
        let of = Some(of).filter(|of| !of.is_empty());
        let admitted = admit(&request, Call::List(of))?;
        let caller = caller_of(&request)?.clone();
        let locks = self
            .client
            .locks(of)
            .map_err(|error| errors::name(&error))?;
        Ok(Response::new(Box::pin(pages::of(locks, caller, admitted))))
    }
}

/// A request for a lock.
pub(crate) struct Asked<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) ask: &'a AcquireRequest,
    pub(crate) tokens: u32,
    pub(crate) lease: Duration,
    pub(crate) deadline: Deadline,
    /// Gets the reasons to wait.
    pub(crate) observe: Option<Observe>,
}

/// Acquires a lock, and keeps it. A repeat of a request gets the lock of the first one.
pub(crate) async fn acquire(
    holds: &Holds,
    stop: &CancellationToken,
    asked: Asked<'_>,
) -> Result<Arc<DetachedLease>, Error> {
    let (deadline, wait) = (asked.deadline, length("wait", asked.ask.wait)?);
    let acquisition = holds.repeats.of(asked.caller.name(), asked.ask)?;
    let room = asked.caller.room()?;
    let Some(acquisition) = acquisition else {
        let guard = grant(&holds.client, stop, asked, deadline.limit(wait)).await?;
        return Ok(holds.add(guard.detach(), Some(room), None));
    };
    let began = holds.clock.now();
    // A first request that asks once gets its answer soon.
    let until = deadline.limit(wait.filter(|wait| !wait.is_zero()));
    let first = acquisition.granted.lock();
    let mut granted = match until {
        Some(until) => timeout(until, first).await.map_err(|_| waits(until))?,
        None => first.await,
    };
    if let Some(held) = &*granted
        && deadline.run(held.renew()).await?.is_ok()
    {
        return Ok(held.clone());
    }
    let waited = holds.clock.now().since(began);
    let left = deadline.limit(wait).map(|left| left.saturating_sub(waited));
    // If the call is dropped until here, the lock is released; from here on nothing is awaited.
    let guard = grant(&holds.client, stop, asked, left).await?;
    let held = holds.add(guard.detach(), Some(room), Some(acquisition.clone()));
    *granted = Some(held.clone());
    Ok(held)
}

fn waits(waited: Duration) -> Error {
    let message = format!("after {waited:?}, the first request with this nonce still waits");
    Error {
        is_retryable: true,
        effect: Effect::Unknown,
        ..Error::new(Reason::TimedOut, message)
    }
}

/// A place in the queue of waiters for at most `limit`, and the grant.
async fn grant(
    client: &Client,
    stop: &CancellationToken,
    asked: Asked<'_>,
    limit: Option<Duration>,
) -> Result<Guard, Error> {
    let Asked {
        ask,
        tokens,
        lease,
        observe,
        ..
    } = asked;
    traces::shard(client, namespace(&ask.namespace), &ask.key);
    let mut lock = share(client, ask)?
        .namespace(namespace(&ask.namespace))
        .tokens(tokens)
        .lease(lease);
    if let Some(hold_for) = length("hold_for", ask.hold_for)? {
        lock = lock.hold_for(hold_for);
    }
    if !ask.label.is_empty() {
        lock = lock.label(&ask.label);
    }
    if let Some(observe) = observe {
        lock = lock.on_wait(observe);
    }
    let wait = length("wait", ask.wait)?;
    let granted = async {
        match (wait, limit) {
            (Some(Duration::ZERO), _) => lock.try_acquire().await,
            (_, None) => lock.acquire().await,
            (_, Some(wait)) => lock.wait(wait).acquire().await,
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(errors::stopping()),
        granted = granted => granted.map_err(|error| errors::lock(&error)),
    }
}

/// The share of a key that is asked for.
fn share(client: &Client, ask: &AcquireRequest) -> Result<Lock, Error> {
    let key = &*ask.key;
    let table = |side| match ask.preferred {
        true => client.rw_lock(key).prefer(side),
        false => client.rw_lock(key),
    };
    Ok(match mode::of(ask)? {
        LockMode::Exclusive => client.lock(key),
        LockMode::Read => table(Preference::Readers).read(),
        LockMode::Write => table(Preference::Writers).write(),
        LockMode::Permits { count, capacity } => client.semaphore(key, capacity).permits(count),
    })
}

/// The answer to a release.
pub(crate) fn outcome(answer: ReleaseAnswer) -> ReleaseOutcome {
    match answer {
        ReleaseAnswer::Held => ReleaseOutcome::Held,
        ReleaseAnswer::Lost => ReleaseOutcome::Lost,
        ReleaseAnswer::Unknown => ReleaseOutcome::Unknown,
    }
}

/// A holder, for an answer.
pub(crate) fn holder(holder: &Holder) -> LockHolder {
    LockHolder {
        label: holder.label.to_string(),
        first_token: holder.token.get(),
        tokens: holder.tokens,
        remaining: Some(to_length(holder.remaining)),
        kind: mode::kind(holder.kind).into(),
        permits: mode::permits_of(holder.kind, holder.shares),
        exclusive: mode::is_exclusive(holder.kind, holder.shares),
        held_for: Some(to_length(holder.held_for)),
    }
}

fn waiter(waiter: &QueuedWaiter) -> LockWaiter {
    let (kind, shares) = (waiter.mode.kind(), waiter.mode.shares());
    LockWaiter {
        label: waiter.label.to_string(),
        callers: waiter.callers,
        kind: mode::kind(kind).into(),
        permits: mode::permits_of(kind, shares),
        capacity: mode::permits_of(kind, waiter.mode.capacity()),
        exclusive: mode::is_exclusive(kind, shares),
    }
}

#[cfg(test)]
mod tests {
    use ringfence_client::BootClock;
    use tonic::Code;

    use super::*;
    use crate::{Roles, connections::Numbers};

    #[tokio::test]
    async fn an_expired_deadline_is_told_with_the_reason_to_wait() {
        let client = Client::builder().embedded(1).build().await.unwrap();
        let held = client.lock("key").label("worker 7").acquire().await;
        let holds = Holds::new(client.clone(), Arc::new(BootClock));
        let handles = Arc::new(Handles::new(&[]));
        let caller = Caller::new(
            None,
            Roles::all(),
            10,
            Arc::new(BootClock),
            Numbers::default(),
        );
        let locks = Locks::new(client.clone(), holds, handles, CancellationToken::new());
        let mut request = Request::new(AcquireRequest {
            key: "key".into(),
            ..AcquireRequest::default()
        });
        request.set_timeout(Duration::from_millis(50));
        request.extensions_mut().insert(Arc::new(caller));
        let status = locks.acquire(request).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        let error = Error::from_status(&status);
        assert_eq!(error.reason, Reason::TimedOut);
        assert!(error.message.contains("worker 7"), "{}", error.message);
        drop(held);
    }
}
