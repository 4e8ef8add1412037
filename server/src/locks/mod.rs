//! LockService: one call per step.

mod holds;
mod pages;

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::Stream;
use ringfence_api::{
    Error,
    v1::{
        AcquireRequest, AcquireResponse, InspectRequest, InspectResponse, ListRequest,
        ListResponse, LockHolder, LockWaiter, ReleaseOutcome, ReleaseRequest, ReleaseResponse,
        RenewRequest, RenewResponse, lock_service_server::LockService,
    },
};
use ringfence_client::{Client, Guard, Holder, ReleaseAnswer};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

pub(crate) use holds::Holds;

use crate::{
    access::{Call, admit},
    deadline::Deadline,
    errors,
    fields::{length, namespace, to_length},
};

/// Serves LockService.
pub(crate) struct Locks {
    client: Client,
    holds: Arc<Holds>,
    /// No new locks: the coordinator stops.
    stop: CancellationToken,
}

impl Locks {
    /// Serves locks of `client` until `stop`.
    pub(crate) fn new(client: Client, holds: Arc<Holds>, stop: CancellationToken) -> Self {
        Self {
            client,
            holds,
            stop,
        }
    }

    async fn grant(
        &self,
        ask: &AcquireRequest,
        lease: Duration,
        deadline: Deadline,
    ) -> Result<Guard, Error> {
        let mut lock = self
            .client
            .lock(&ask.key)
            .namespace(namespace(&ask.namespace))
            .lease(lease);
        if let Some(hold_for) = length("hold_for", ask.hold_for)? {
            lock = lock.hold_for(hold_for);
        }
        if !ask.label.is_empty() {
            lock = lock.label(&ask.label);
        }
        let wait = length("wait", ask.wait)?;
        let granted = async {
            match (wait, deadline.limit(wait)) {
                (Some(Duration::ZERO), _) => lock.try_acquire().await,
                (_, None) => lock.acquire().await,
                (_, Some(wait)) => lock.wait(wait).acquire().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(errors::stopping()),
            granted = granted => granted.map_err(|error| errors::lock(&error)),
        }
    }

    /// The lease that `ask` is for.
    fn lease(&self, ask: &AcquireRequest) -> Result<Duration, Error> {
        let longest = || self.client.topology().constants.max_lease();
        Ok(length("lease", ask.lease)?.unwrap_or_else(longest))
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
        let ask = request.into_inner();
        let lease = self.lease(&ask)?;
        // If the call is dropped until here, the lock is released; from here on nothing is awaited.
        let guard = self.grant(&ask, lease, deadline).await?;
        let token = guard.token().get();
        let (handle, valid_for) = self.holds.add(guard, lease);
        Ok(Response::new(AcquireResponse {
            handle,
            token,
            valid_for: Some(to_length(valid_for)),
        }))
    }

    async fn renew(
        &self,
        request: Request<RenewRequest>,
    ) -> Result<Response<RenewResponse>, Status> {
        let valid_for = self.holds.renew(&request.get_ref().handle)?;
        Ok(Response::new(RenewResponse {
            valid_for: Some(to_length(valid_for)),
        }))
    }

    async fn release(
        &self,
        request: Request<ReleaseRequest>,
    ) -> Result<Response<ReleaseResponse>, Status> {
        let deadline = Deadline::of(&request);
        let outcome = match self.holds.take(&request.get_ref().handle)? {
            None => ReleaseOutcome::Lost,
            Some(guard) => match deadline.run(guard.release()).await? {
                ReleaseAnswer::Held => ReleaseOutcome::Held,
                ReleaseAnswer::Lost => ReleaseOutcome::Lost,
                ReleaseAnswer::Unknown => ReleaseOutcome::Unknown,
            },
        };
        Ok(Response::new(ReleaseResponse {
            outcome: outcome.into(),
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
        let waiters = inspected.waiters.iter().map(|waiter| LockWaiter {
            label: waiter.label.to_string(),
        });
        Ok(Response::new(InspectResponse {
            holder: inspected.holder.as_ref().map(holder),
            waiters: waiters.collect(),
        }))
    }

    type ListStream = Pin<Box<dyn Stream<Item = Result<ListResponse, Status>> + Send>>;

    async fn list(
        &self,
        request: Request<ListRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let of = &*request.get_ref().namespace;
        let of = Some(of).filter(|of| !of.is_empty());
        let admitted = admit(&request, Call::List(of))?;
        let locks = self
            .client
            .locks(of)
            .map_err(|error| errors::name(&error))?;
        Ok(Response::new(Box::pin(pages::of(locks, admitted))))
    }
}

/// A holder, for an answer.
pub(crate) fn holder(holder: &Holder) -> LockHolder {
    LockHolder {
        label: holder.label.to_string(),
        first_token: holder.token.get(),
        tokens: holder.tokens,
        remaining: Some(to_length(holder.remaining)),
    }
}

#[cfg(test)]
mod tests {
    use ringfence_api::Reason;
    use ringfence_client::BootClock;
    use tonic::Code;

    use super::*;
    use crate::{Roles, access::Caller};

    #[tokio::test]
    async fn an_expired_deadline_is_told_with_the_reason_to_wait() {
        let client = Client::builder().embedded(1).build().await.unwrap();
        let held = client.lock("key").label("worker 7").acquire().await;
        let holds = Holds::new(Arc::new(BootClock));
        let caller = Caller::new(None, Roles::all(), 10, Arc::new(BootClock));
        let locks = Locks::new(client.clone(), holds, CancellationToken::new());
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
