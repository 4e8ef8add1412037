//! Sessions of attackers.

use std::time::Duration;

use futures_util::{Stream, StreamExt, future::join_all, stream};
use ringfence_api::v1::{
    AcquireAsk, Ask, PingAsk, ResumeAsk, SessionRequest, SessionTerms, ask::Kind,
    session_service_client::SessionServiceClient,
};
use tokio::time::sleep;

use super::{
    attacker::{AttackerArgs, Tally, with},
    calls::ended,
    target::{ATTACKER, OUTSIDER},
};

/// Connections, and sessions on each.
const SESSIONS: (usize, usize) = (32, 8);
/// A session that ended is opened again after this time.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Asks in a message.
const ASKS: u64 = 1000;

/// Keeps sessions open, each of which sends the messages of `asks`, one after the other without end. `reads`: it reads the
/// answers.
async fn hold<S>(
    at: &AttackerArgs,
    tally: &Tally,
    (token, reads): (&str, bool),
    asks: impl Fn(usize) -> S,
) where
    S: Stream<Item = Vec<Ask>> + Send + 'static,
{
    let (connections, on_each) = SESSIONS;
    tally.height(connections * on_each);
    let channels: Vec<_> = (0..connections).map(|number| at.channel(number)).collect();
    let sessions = (0..connections * on_each).map(async |number| {
        let channel = &channels[number / on_each];
        loop {
            let counts = tally.clone();
            let first = SessionRequest {
                terms: Some(SessionTerms::default()),
                asks: Vec::new(),
            };
            let more = asks(number).map(move |asks| {
                counts.sent();
                SessionRequest { terms: None, asks }
            });
            let messages = stream::iter([first]).chain(more);
            let mut sessions = SessionServiceClient::new(channel.clone());
            if let Ok(answers) = sessions.session(with(token, messages)).await {
                let mut answers = answers.into_inner();
                if !reads {
                    return std::future::pending::<()>().await;
                }
                while let Ok(Some(_)) = answers.message().await {}
            }
            sleep(AGAIN_AFTER).await;
        }
    });
    join_all(sessions).await;
}

/// Messages without end; an ask gets its kind from its id.
fn endless(kind: impl Fn(u64) -> Kind + Send + 'static) -> impl Stream<Item = Vec<Ask>> + Send {
    stream::iter(0..).map(move |message: u64| {
        let ids = message * ASKS + 1..=(message + 1) * ASKS;
        ids.map(|id| ask(id, kind(id))).collect()
    })
}

fn ask(id: u64, kind: Kind) -> Ask {
    let kind = Some(kind);
    Ask { id, kind }
}

fn acquire(session: usize, id: u64) -> Kind {
    Kind::Acquire(AcquireAsk {
        namespace: "attack".into(),
        key: format!("session/{session}/{id}").into(),
        ..AcquireAsk::default()
    })
}

/// Each ask is refused, and the refusals are not read.
pub(super) async fn asks_without_role(at: &AttackerArgs, tally: &Tally) {
    let asks = |number| endless(move |id| acquire(number, id));
    hold(at, tally, (OUTSIDER, false), asks).await;
}

/// Locks whose grants are not read.
pub(super) async fn unread(at: &AttackerArgs, tally: &Tally) {
    let asks = |number| endless(move |id| acquire(number, id));
    hold(at, tally, (ATTACKER, false), asks).await;
}

/// As many asks as a message has room for, whose answers are not read.
pub(super) async fn unread_pings(at: &AttackerArgs, tally: &Tally) {
    let asks = |_| endless(|_| Kind::Ping(PingAsk {})).map(|asks| vec![asks; 6].concat());
    hold(at, tally, (ATTACKER, false), asks).await;
}

/// Pings of sessions with locks. The answers are read.
pub(super) async fn pings(at: &AttackerArgs, tally: &Tally) {
    let asks = |number| {
        endless(move |id| match id {
            ..=ASKS => acquire(number, id),
            _ => Kind::Ping(PingAsk {}),
        })
    };
    hold(at, tally, (ATTACKER, true), asks).await;
}

/// Resumptions of a lock that has ended. The answers are read.
pub(super) async fn resumptions(at: &AttackerArgs, tally: &Tally) {
    let handle = ended(at).await;
    let asks = |_| {
        let handle = handle.clone();
        endless(move |_| {
            let handle = handle.clone();
            Kind::Resume(ResumeAsk { handle })
        })
        // 64 KiB are the longest message.
        .map(|asks| asks.into_iter().take(200).collect())
    };
    hold(at, tally, (ATTACKER, true), asks).await;
}
