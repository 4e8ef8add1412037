//! SessionService: many locks of one caller over one stream.
//!
//! ```text
//! asks ─► session: waits, locks ─► work: acquisitions, renewals, releases, losses
//!                     answers ◄──┘
//! ```
//!
//! A session is the stream of its answers: it runs while the caller reads them. So a caller that does
//! not read has no answers piling up, its asks stay in the connection, and its locks end with their
//! leases. The end of the stream drops the session, with all its waits.
//!
//! | file | content |
//! |---|---|
//! | `session.rs` | one session: its locks and waits, their events, and the answers |
//! | `asks.rs` | the asks of a caller |
//! | `work.rs` | the work that a session waits for |

mod asks;
mod session;
mod work;

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use ringfence_api::v1::{SessionRequest, SessionResponse, session_service_server::SessionService};
use ringfence_client::Client;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use self::session::Session;
use crate::{
    Limits,
    access::{Call, admit, caller_of},
    locks::{Handles, Holds},
};

/// The parts that the sessions of a coordinator share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) holds: Arc<Holds>,
    pub(crate) handles: Arc<Handles>,
    pub(crate) limits: Limits,
    pub(crate) grace: Duration,
    /// No new locks: the coordinator stops.
    pub(crate) stopping: CancellationToken,
    /// All sessions end.
    pub(crate) closing: CancellationToken,
}

/// Serves SessionService.
pub(crate) struct Sessions(pub(crate) Arc<Shared>);

type Answers = Pin<Box<dyn Stream<Item = Result<SessionResponse, Status>> + Send>>;

#[tonic::async_trait]
impl SessionService for Sessions {
    type SessionStream = Answers;

    async fn session(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let admitted = admit(&request, Call::Session)?;
        let caller = caller_of(&request)?.clone();
        let counted = (admitted, caller.numbers.session());
        let session = Session::new(self.0.clone(), caller, request.into_inner());
        let answers = stream::unfold(Some((session, counted)), |open| async {
            let (mut session, counted) = open?;
            match session.next().await {
                Ok(Some(answers)) => Some((Ok(answers), Some((session, counted)))),
                Ok(None) => None,
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }
}
