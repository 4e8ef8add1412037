//! The output of commands, for people and for programs.

use std::fmt;

use ringfence_client::counter::{BalanceAfter, RequestId};
use serde::Serialize;

use super::account::id_text;

/// The result of a command.
#[derive(Debug, Default, Serialize)]
pub(super) struct Output {
    account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<After>,
    #[serde(skip)]
    sentence: String,
}

/// The balance after it. Amounts are texts: many programs round such great numbers.
#[derive(Debug, Serialize)]
struct After {
    ledger: String,
    available: String,
    held: String,
}

impl Output {
    /// `outcome` is one word, for programs; `sentence` says the same, for people.
    pub(super) fn new(account: &str, outcome: &str, sentence: String) -> Self {
        Self {
            account: account.into(),
            request: None,
            outcome: outcome.into(),
            balance: None,
            sentence,
        }
    }

    /// Adds the balance, if it is known.
    pub(super) fn then(mut self, balance: Option<BalanceAfter>) -> Self {
        self.balance = balance.map(|after| After {
            ledger: after.ledger.to_string(),
            available: after.available.to_string(),
            held: after.held.to_string(),
        });
        self
    }

    /// Adds the id of the request.
    pub(super) fn by(mut self, id: &RequestId) -> Self {
        self.request = Some(id_text(id));
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.sentence)?;
        if let Some(After {
            available, held, ..
        }) = &self.balance
        {
            writeln!(out, "{available} to spend, {held} set aside")?;
        }
        match &self.request {
            Some(id) => writeln!(out, "request:\n{id}"),
            None => Ok(()),
        }
    }
}
