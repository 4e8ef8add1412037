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

/// Listens to the engines of this process. Renewals go into the history at once; what is known of a
/// grant waits for whoever asked for it.
#[derive(Clone, Debug)]
pub struct Tap {
    recorder: Arc<Recorder>,
    granted: Arc<Mutex<HashMap<(String, u64), Granted>>>,
}

/// What the engine knows of a grant, and its guard does not show.
#[derive(Clone, Debug)]
pub struct Granted {
    /// Which acquisition.
    pub nonce: String,
    /// When the request that was granted had left.
    pub sent_ns: u64,
    /// Until when the engine believes in it.
    pub deadline_ns: u64,
}

impl Tap {
    /// A tap that writes to `recorder`.
    pub fn new(recorder: Arc<Recorder>) -> Self {
        Self {
            recorder,
            granted: Arc::default(),
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

    fn renewal(&self, said: &Said, phase: Phase, answer: Option<Answer>) {
        let deed = Deed {
            key: Some(said.key.clone()),
            nonce: Some(said.nonce.clone()),
            token: Some(Token::from_number(said.token).into()),
            sent_ns: said.sent,
            deadline_ns: said.deadline,
            answer,
            ..Deed::ended(self.recorder.next_op(), Kind::Renew, phase)
        };
        let judged = said.judged.unwrap_or_else(|| self.recorder.now());
        self.recorder.record_at(judged, deed);
    }
}

impl<S: Subscriber> Layer<S> for Tap {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let reclaimed = said.reclaimed;
        match said.message.as_str() {
            "granted" => {
                let granted = Granted {
                    nonce: said.nonce,
                    sent_ns: said.sent.unwrap_or_default(),
                    deadline_ns: said.deadline.unwrap_or_default(),
                };
                self.granted.lock().insert((said.key, said.token), granted);
            }
            "renewed" if reclaimed => self.renewal(&said, Phase::Ok, Some(Answer::Reclaimed)),
            "renewed" => self.renewal(&said, Phase::Ok, Some(Answer::Renewed)),
            "lost" => self.renewal(&said, Phase::Fail, Some(Answer::Lost)),
            "not renewed" => self.renewal(&said, Phase::Info, None),
            _ => {}
        }
    }
}

/// An event's fields.
#[derive(Debug, Default)]
struct Said {
    message: String,
    key: String,
    nonce: String,
    token: u64,
    sent: Option<u64>,
    judged: Option<u64>,
    deadline: Option<u64>,
    reclaimed: bool,
}

impl Visit for Said {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "token" => self.token = value,
            "sent" => self.sent = Some(value),
            "judged" => self.judged = Some(value),
            "deadline" => self.deadline = Some(value),
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "reclaimed" {
            self.reclaimed = value;
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = match field.name() {
            "message" => &mut self.message,
            "key" => &mut self.key,
            "nonce" => &mut self.nonce,
            _ => return,
        };
        *text = format!("{value:?}");
    }
}
