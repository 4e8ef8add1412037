//! The output of commands, for people and for programs.

use std::fmt;

use ringfence_client::counter::RequestId;
use serde::Serialize;

/// The result of a command.
#[derive(Debug, Default, Serialize)]
pub(super) struct Output {
    account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    outcome: String,
    #[serde(skip)]
    sentence: String,
}

impl Output {
    /// `outcome` is one word, for programs; `sentence` says the same, for people.
    pub(super) fn new(account: &str, outcome: &str, sentence: String) -> Self {
        Self {
            account: account.into(),
            request: None,
            outcome: outcome.into(),
            sentence,
        }
    }

    /// Adds the id of the request.
    pub(super) fn by(mut self, id: &RequestId) -> Self {
        self.request = Some(id.to_string());
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.request {
            Some(id) => writeln!(out, "{}\nrequest:\n{id}", self.sentence),
            None => writeln!(out, "{}", self.sentence),
        }
    }
}
