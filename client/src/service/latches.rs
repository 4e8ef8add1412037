//! Latches at coordinators.

use std::{sync::Arc, time::Duration};

use ringfence_api::{
    Reason,
    v1::{
        CountDownLatchRequest, GetLatchRequest, SetLatchRequest, WaitLatchRequest,
        latch_service_client::LatchServiceClient,
    },
};
use ringfence_segment_lock::{Account, Durability, RequestId};

use super::{
    counters::{durability, request_id},
    failed,
    reach::{Failed, Reach},
};
use crate::LatchError;

/// A coordinator asks its shards for about 5 s, and answers by then.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// One wait, of many: a connection that has broken is found out by then.
const WAIT: Duration = Duration::from_secs(10);

/// A latch.
#[derive(Debug)]
pub(crate) struct RemoteLatch {
    pub(crate) reach: Arc<Reach>,
    pub(crate) name: Account,
}

/// Makes a call of LatchService.
macro_rules! call {
    ($latch:expr, $within:expr, $method:ident, $message:expr) => {{
        let (message, reach) = ($message, &$latch.reach);
        let answer = reach.ask($within, |channel| {
            let request = reach.request(message.clone());
            async move { LatchServiceClient::new(channel).$method(request).await }
        });
        answer.await
    }};
}

impl RemoteLatch {
    pub(crate) async fn set(&self, count: u64, lasts: Durability) -> Result<(), LatchError> {
        let (durability, replicas) = durability(lasts);
        let request = SetLatchRequest {
            name: self.name.as_str().to_owned(),
            count,
            durability: durability.into(),
            replicas,
        };
        let set = call!(self, ANSWER_WITHIN, set_latch, request);
        set.map_err(|error| self.failed(error))?;
        Ok(())
    }

    pub(crate) async fn count_down(&self, id: &RequestId) -> Result<(), LatchError> {
        let request = CountDownLatchRequest {
            name: self.name.as_str().to_owned(),
            id: Some(request_id(id)),
        };
        let counted = call!(self, ANSWER_WITHIN, count_down_latch, request);
        counted.map_err(|error| self.failed(error))?;
        Ok(())
    }

    pub(crate) async fn remaining(&self) -> Result<u64, LatchError> {
        let request = GetLatchRequest {
            name: self.name.as_str().to_owned(),
        };
        let found = call!(self, ANSWER_WITHIN, get_latch, request);
        let found = found.map_err(|error| match self.failed(error) {
            LatchError::Counter(error) => LatchError::Counter(failed::of_read(error)),
            error => error,
        });
        Ok(found?.remaining)
    }

    /// Waits for a while. Returns whether it is open.
    pub(crate) async fn is_opened(&self) -> Result<bool, LatchError> {
        let request = WaitLatchRequest {
            name: self.name.as_str().to_owned(),
            wait: WAIT.try_into().ok(),
        };
        match call!(self, WAIT + ANSWER_WITHIN, wait_latch, request) {
            Ok(_) => Ok(true),
            Err(Failed { error, .. }) if error.reason == Reason::TimedOut => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, failed: Failed) -> LatchError {
        match failed.error.reason {
            Reason::SegmentLost => LatchError::Lost(self.name.clone()),
            _ => failed::counter(failed, &self.name, &[]).into(),
        }
    }
}
