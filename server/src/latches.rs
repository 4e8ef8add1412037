//! LatchService: one call per step. All waits for a latch share its reads.

use std::time::Duration;

use ringfence_api::{
    Error,
    v1::{
        CountDownLatchRequest, CountDownLatchResponse, GetLatchRequest, GetLatchResponse,
        SetLatchRequest, SetLatchResponse, WaitLatchRequest, WaitLatchResponse,
        latch_service_server::LatchService,
    },
};
use ringfence_client::{Client, Latch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::{
    access::{Admitted, Call, Caller, admit, caller_of},
    counters::{durability, id},
    deadline::Deadline,
    errors, fields,
};

/// The namespace of latches in the roles of callers.
const NAMESPACE: &str = "latch";

/// A wait counts as this many calls per second against the rate of its caller: so often it has the latch read.
const READS_PER_SECOND: u32 = 5;

/// Serves LatchService.
pub(crate) struct Latches {
    client: Client,
    /// Waits end: the coordinator stops.
    stopping: CancellationToken,
}

impl Latches {
    /// Serves latches of `client`.
    pub(crate) fn new(client: Client, stopping: CancellationToken) -> Self {
        Self { client, stopping }
    }

    fn open(&self, name: &str) -> Result<Latch, Error> {
        let latch = self.client.latch(name);
        latch.map_err(|error| errors::latch(&error))
    }
}

/// Lets a change of the latch called `name` pass.
fn change<T>(request: &Request<T>, name: &str) -> Result<Admitted, Error> {
    admit(request, Call::Acquire(NAMESPACE, name.as_bytes()))
}

/// Lets a caller see the latch called `name`.
fn read<T>(request: &Request<T>, name: &str) -> Result<Admitted, Error> {
    admit(request, Call::Read(NAMESPACE, name.as_bytes()))
}

/// Counts the reads of a wait until they are too many.
async fn beyond_rate(caller: &Caller) -> Error {
    let second = Duration::from_secs(1);
    // The call itself counts for its first read.
    sleep(second / READS_PER_SECOND).await;
    loop {
        if let Err(limited) = caller.count(READS_PER_SECOND) {
            return limited;
        }
        sleep(second).await;
    }
}

#[tonic::async_trait]
impl LatchService for Latches {
    async fn set_latch(
        &self,
        request: Request<SetLatchRequest>,
    ) -> Result<Response<SetLatchResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().name)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let durability = durability(ask.durability, ask.replicas)?;
        let latch = self.open(&ask.name)?;
        let set = deadline.run(latch.set(ask.count, durability)).await?;
        set.map_err(|error| errors::latch(&error))?;
        Ok(Response::new(SetLatchResponse {}))
    }

    async fn count_down_latch(
        &self,
        request: Request<CountDownLatchRequest>,
    ) -> Result<Response<CountDownLatchResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().name)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let id = id(ask.id)?;
        let latch = self.open(&ask.name)?;
        let counted = deadline.run(latch.count_down(&id)).await?;
        counted.map_err(|error| errors::latch(&error))?;
        Ok(Response::new(CountDownLatchResponse {}))
    }

    async fn get_latch(
        &self,
        request: Request<GetLatchRequest>,
    ) -> Result<Response<GetLatchResponse>, Status> {
        let _admitted = read(&request, &request.get_ref().name)?;
        let deadline = Deadline::of(&request);
        let latch = self.open(&request.get_ref().name)?;
        let remaining = deadline.run(latch.remaining()).await?;
        let remaining = remaining.map_err(|error| errors::latch(&error))?;
        Ok(Response::new(GetLatchResponse { remaining }))
    }

    async fn wait_latch(
        &self,
        request: Request<WaitLatchRequest>,
    ) -> Result<Response<WaitLatchResponse>, Status> {
        let _admitted = read(&request, &request.get_ref().name)?;
        let deadline = Deadline::of(&request);
        let caller = caller_of(&request)?.clone();
        let ask = request.into_inner();
        let wait = fields::length("wait", ask.wait)?;
        let latch = self.open(&ask.name)?;
        let opened = async {
            match deadline.limit(wait) {
                Some(length) => latch.opened_within(length).await,
                None => latch.opened().await,
            }
        };
        let opened = tokio::select! {
            biased;
            () = self.stopping.cancelled() => return Err(errors::stopping().into()),
            opened = opened => opened,
            limited = beyond_rate(&caller) => return Err(limited.into()),
        };
        opened.map_err(|error| errors::latch(&error))?;
        Ok(Response::new(WaitLatchResponse {}))
    }
}
