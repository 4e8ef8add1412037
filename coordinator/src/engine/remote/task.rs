//! The task of a session: one stream after the other.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::{
    Remote,
    last::UntilDone,
    messages::{Connection, CoordinatorError, Told},
    session::Session,
};
use crate::{backoff::Backoff, clock::Instant};

/// First and longest pause before another stream is opened.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// A coordinator has at least this long to open a session.
const OPEN_MIN: Duration = Duration::from_secs(1);

/// A session without locks ends after this long.
const KEPT_UNUSED: Duration = Duration::from_secs(10);

/// When the engine stops, releases may take this long.
const STOP_WITHIN: Duration = Duration::from_millis(500);

/// Opens streams, and exchanges messages, until `session` has no locks any more, or the engine stops.
pub(super) async fn run(remote: Arc<Remote>, session: Arc<Session>) {
    let until_done = UntilDone::of(&remote, &session);
    serve(&remote, &session).await;
    until_done.done();
}

async fn serve(remote: &Arc<Remote>, session: &Arc<Session>) {
    let around = &remote.requests.around;
    let mut pauses = Backoff::new(RETRY.0, RETRY.1);
    loop {
        let (lease, label) = &session.terms;
        let opened = timeout(
            OPEN_MIN.max(*lease / 6),
            remote.coordinators.open(*lease, label),
        );
        let opened = tokio::select! {
            biased;
            () = around.stop.cancelled() => return,
            opened = opened => opened,
        };
        let end = match opened {
            Ok(Ok(connection)) => {
                session.begin_stream();
                let began = session.now();
                let end = exchange(remote, session, connection).await;
                if session.now() > began + RETRY.1 {
                    pauses.reset();
                }
                end
            }
            Ok(Err(error)) => End::Broken(error),
            Err(_) => End::Broken(CoordinatorError::unreachable("no coordinator answers")),
        };
        match end {
            End::Over => return,
            End::Broken(error) => session.end_stream(&error.into()),
        }
        session.look();
        tokio::select! {
            () = around.stop.cancelled() => return,
            () = sleep(pauses.next(&around.random)) => {}
        }
        if session.is_empty() && remote.end(session) {
            return;
        }
    }
}

/// The reason why a stream is not used any more.
pub(super) enum End {
    /// So is the session.
    Over,
    Broken(CoordinatorError),
}

pub(super) async fn exchange(
    remote: &Remote,
    session: &Arc<Session>,
    connection: Connection,
) -> End {
    let Connection { asks, mut answers } = connection;
    let stop = &remote.requests.around.stop;
    let mut looks = interval(session.every());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stops_at = None;
    let mut unused_since: Option<Instant> = None;
    loop {
        let has_asks = session.has_asks();
        tokio::select! {
            biased;
            () = stop.cancelled(), if stops_at.is_none() => {
                stops_at = Some(session.now() + STOP_WITHIN);
            }
            // Before the messages, which may come without end: pings are due here.
            _ = looks.tick() => {
                if session.look() {
                    let message = "the coordinator gives no answers";
                    return End::Broken(CoordinatorError::unreachable(message));
                }
            }
            permit = asks.reserve(), if has_asks => match permit {
                Ok(permit) => {
                    let asks = session.take_asks();
                    if !asks.is_empty() {
                        permit.send(asks);
                    }
                }
                Err(_) => return End::Broken(ended()),
            },
            () = session.wake.notified(), if !has_asks => {}
            told = answers.next() => match told {
                Some(Ok(told)) => {
                    let drains = told.iter().any(|told| matches!(told, Told::Drains));
                    told.into_iter().for_each(|told| session.told(told));
                    if drains && remote.coordinators.has_others() {
                        return End::Broken(CoordinatorError::unreachable("the coordinator stops"));
                    }
                }
                Some(Err(error)) => return End::Broken(error),
                None => return End::Broken(ended()),
            },
        }
        let now = session.now();
        if stops_at.is_some_and(|at| now >= at || session.releasing() == 0) {
            return End::Over;
        }
        if !session.is_empty() {
            unused_since = None;
        } else if now >= *unused_since.get_or_insert(now) + KEPT_UNUSED && remote.end(session) {
            return End::Over;
        }
    }
}

fn ended() -> CoordinatorError {
    CoordinatorError::unreachable("the stream of the session has ended")
}
