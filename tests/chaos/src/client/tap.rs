//! What the engine says of grants, as it judges shards' answers, put into the history.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use ringfence_client::Token;
use tracing::{
    Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

use crate::history::{Answer, Deed, Kind, Phase, Recorder};

/// The target of the engine's events that are of interest.
const TARGET: &str = "ringfence::lease";

/// Listens to the engines of this process. Their requests and answers go into the history at once.
/// The facts about a grant also wait for the task that requested it.
#[derive(Clone, Debug)]
pub struct Tap {
    recorder: Arc<Recorder>,
    /// Whether coordinators grant the locks. Then the process knows no shard, and no grant is a turn to it.
    pub(super) over_the_service: bool,
    granted: Arc<Mutex<HashMap<(String, u64), Granted>>>,
}

/// What the engine knows of a grant, and its guard does not show.
#[derive(Clone, Debug)]
pub struct Granted {
    /// Which acquisition.
    pub nonce: String,
    /// When the request that its deadline counts from had left.
    pub sent_ns: u64,
    /// When the engine knew, or handed it on.
    pub judged_ns: u64,
    /// Until when the engine believes in it.
    pub deadline_ns: u64,
    /// Handed on within this process.
    pub handed: bool,
    /// Its ticket's turn came.
    pub turn: bool,
}

impl Tap {
    /// A tap that writes to `recorder`.
    pub fn new(recorder: Arc<Recorder>) -> Self {
        Self {
            recorder,
            over_the_service: false,
            granted: Arc::default(),
        }
    }

    /// The same, of engines whose locks coordinators grant.
    pub fn over_the_service(recorder: Arc<Recorder>) -> Self {
        Self {
            over_the_service: true,
            ..Self::new(recorder)
        }
    }

    /// What the engine said of the grant of `key` with `token`, once.
    ///
    /// # Panics
    ///
    /// If it said nothing: then this is not a layer of the subscriber.
    pub fn granted(&self, key: &str, token: Token) -> Granted {
        let granted = self.granted.lock().remove(&(key.to_owned(), token.get()));
        granted.expect("the engine says so before it hands out a guard")
    }

    fn heard(&self, said: Said) {
        let sent = said.sent;
        match said.message.as_str() {
            _ if said.replica.is_some() => self.of_replica(said),
            "asking" => self.record(&said, sent, Kind::Ask, Phase::Ok, None),
            // Without a place there is no ticket.
            "queued" if said.position.is_some() => {
                self.record(
                    &said,
                    said.judged,
                    Kind::Queue,
                    Phase::Ok,
                    Some(Answer::Held),
                );
            }
            "moving" => self.record(&said, said.judged, Kind::Moving, Phase::Ok, None),
            "gave up" => self.record(&said, None, Kind::GiveUp, Phase::Ok, None),
            "granted" => self.grant(said),
            "renewed" if said.reclaimed => {
                self.renewal(&said, Phase::Ok, Some(Answer::Reclaimed));
            }
            "renewed" => self.renewal(&said, Phase::Ok, Some(Answer::Renewed)),
            "lost" => self.renewal(&said, Phase::Fail, Some(Answer::Lost)),
            "not renewed" => self.renewal(&said, Phase::Info, None),
            _ => {}
        }
    }

    fn grant(&self, said: Said) {
        self.record(&said, said.judged, Kind::Grant, Phase::Ok, None);
        let granted = Granted {
            nonce: said.nonce,
            sent_ns: said.sent.unwrap_or_default(),
            judged_ns: said.judged.unwrap_or_else(|| self.recorder.now()),
            deadline_ns: said.deadline.unwrap_or_default(),
            handed: said.handed,
            turn: said.turn,
        };
        let token = said.token.unwrap_or_default();
        self.granted.lock().insert((said.key, token), granted);
    }

    /// What is said of one replica, under the nonce of the lock.
    fn of_replica(&self, mut said: Said) {
        let (t_ns, kind) = match said.message.as_str() {
            "asking" => (said.sent, Kind::Ask),
            "renewed" | "replica granted" => (said.judged, Kind::Replica),
            "queued" if said.position.is_some() => (said.judged, Kind::Queue),
            "moving" => (said.judged, Kind::Moving),
            "gave up" => (None, Kind::GiveUp),
            // The rest of what is done at the replicas shows in what comes of the lock.
            _ => return,
        };
        let of = said.of.take().unwrap_or_default();
        let nonce = std::mem::replace(&mut said.nonce, of);
        let replica = said.replica.map(|rank| (rank, nonce));
        let deed = Deed {
            replica,
            ..self.deed(&said, kind, Phase::Ok, None)
        };
        self.recorder
            .record_at(t_ns.unwrap_or_else(|| self.recorder.now()), deed);
    }

    fn renewal(&self, said: &Said, phase: Phase, answer: Option<Answer>) {
        self.record(said, said.judged, Kind::Renew, phase, answer);
    }

    /// Records what was said as a deed at `t_ns`, or now.
    fn record(
        &self,
        said: &Said,
        t_ns: Option<u64>,
        kind: Kind,
        phase: Phase,
        answer: Option<Answer>,
    ) {
        let deed = self.deed(said, kind, phase, answer);
        self.recorder
            .record_at(t_ns.unwrap_or_else(|| self.recorder.now()), deed);
    }

    fn deed(&self, said: &Said, kind: Kind, phase: Phase, answer: Option<Answer>) -> Deed {
        Deed {
            key: Some(said.key.clone()),
            nonce: Some(said.nonce.clone()),
            token: said.token.map(|token| Token::from_number(token).into()),
            preferred: said.preferred,
            sent_ns: said.sent,
            deadline_ns: said.deadline,
            handed: said.handed,
            turn: said.turn,
            place: said.position,
            answer,
            ..Deed::ended(self.recorder.next_op(), kind, phase)
        }
    }
}

impl<S: Subscriber> Layer<S> for Tap {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        said.turn &= !self.over_the_service;
        self.heard(said);
    }
}

/// An event's fields.
#[derive(Debug, Default)]
struct Said {
    message: String,
    key: String,
    nonce: String,
    /// Of a replica: the nonce of the lock, and the rank.
    of: Option<String>,
    replica: Option<u64>,
    token: Option<u64>,
    position: Option<u64>,
    sent: Option<u64>,
    judged: Option<u64>,
    deadline: Option<u64>,
    preferred: bool,
    reclaimed: bool,
    handed: bool,
    turn: bool,
}

impl Visit for Said {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "rank" => self.replica = Some(value),
            "token" => self.token = Some(value),
            "position" => self.position = Some(value),
            "sent" => self.sent = Some(value),
            "judged" => self.judged = Some(value),
            "deadline" => self.deadline = Some(value),
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        match field.name() {
            "preferred" => self.preferred = value,
            "reclaimed" => self.reclaimed = value,
            "handed" => self.handed = value,
            "turn" => self.turn = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = match field.name() {
            "message" => &mut self.message,
            "key" => &mut self.key,
            "nonce" => &mut self.nonce,
            "of" => self.of.get_or_insert_default(),
            _ => return,
        };
        *text = format!("{value:?}");
    }
}
