//! `ringfence counter find`: what was decided on a request.

use std::fmt;

use ringfence_client::counter::{Found, Leg, segment::State};
use serde::Serialize;

use super::{
    CliError, READ_EXIT_CODES,
    account::{Id, One, id_text},
};

/// Find out what was decided on a request
///
/// Prints whether the request with that id was applied or refused, is open (a reservation that is
/// held, a transfer on its way), was never seen, or is forgotten: its id is older than what the
/// account remembers. It may have been a deposit, a deduction, a reservation or a transfer. Nothing
/// is decided by the question: a request that was never seen may still arrive
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_CODES)]
pub(crate) struct Find {
    #[command(flatten)]
    one: One,
    /// The id of the request, as it was printed
    #[arg(value_name = "MILLISECONDS:NAME")]
    id: Id,
}

#[derive(Debug, Serialize)]
struct Shown {
    account: String,
    request: String,
    /// One of `applied`, `refused`, `open`, `never seen`, `forgotten`.
    outcome: &'static str,
    #[serde(flatten)]
    detail: Detail,
    #[serde(skip)]
    sentence: String,
}

/// Amounts are texts: many programs round such great numbers.
#[derive(Debug, Default, Serialize)]
struct Detail {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten_until_ms: Option<u64>,
}

impl Find {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let found = counter.find(&self.id.0).await?;
        opened.tell(self.shown(found)).await
    }

    fn shown(&self, found: Found) -> Shown {
        let account = &self.one.account;
        let id = &self.id.0;
        let mut detail = Detail::default();
        let (outcome, sentence) = match found {
            Found::Decided(state) => decided(account, state, &mut detail),
            Found::NeverSeen => {
                let sentence = format!(
                    "it may be on its way: repeat it with this --id, or have it refused when it arrives: \
                     ringfence counter cancel {account} --id {}",
                    id_text(id)
                );
                ("never seen", sentence)
            }
            Found::Forgotten { mark_ms } => {
                detail.forgotten_until_ms = Some(mark_ms);
                let sentence = format!(
                    "the account remembers requests created after {mark_ms} ms since 1970: this one was applied, \
                     refused, or never seen"
                );
                ("forgotten", sentence)
            }
        };
        Shown {
            account: account.clone(),
            request: id_text(id),
            outcome,
            detail,
            sentence,
        }
    }
}

/// The outcome of a decided request, and a sentence about it.
fn decided(account: &str, state: State, detail: &mut Detail) -> (&'static str, String) {
    let (name, outcome, sentence) = match state {
        State::Done => ("done", "applied", "now or before".into()),
        State::Confirmed => ("confirmed", "applied", "what was set aside is spent".into()),
        State::Delivered => ("delivered", "applied", "the transfer has arrived".into()),
        State::Insufficient => (
            "insufficient",
            "refused",
            "the balance was insufficient".into(),
        ),
        State::Cancelled => ("cancelled", "refused", "it was cancelled".into()),
        State::Expired => (
            "expired",
            "refused",
            "the money came back at the deadline".into(),
        ),
        State::Returned => {
            let sentence = "the destination refused the transfer, and the money is back";
            ("returned", "refused", sentence.into())
        }
        State::Held {
            amount,
            deadline_ms,
        } => {
            detail.amount = Some(amount.to_string());
            detail.deadline_ms = Some(deadline_ms);
            let sentence = format!("{amount} set aside until {deadline_ms} ms since 1970");
            ("held", "open", sentence)
        }
        State::Committed(committed) => {
            let leg = |leg: &Leg| format!("{} to {}", leg.amount, leg.to);
            let legs: Vec<_> = committed.legs.iter().map(leg).collect();
            let sentence = format!(
                "{} on the way; to finish it: ringfence counter sweep {account}",
                legs.join(", ")
            );
            detail.amount = Some(committed.legs.sum().to_string());
            ("committed", "open", sentence)
        }
        State::Sent { amount, to } => {
            let sentence = format!(
                "{amount} on the way to {to}; to finish the transfer: ringfence counter sweep {account}"
            );
            detail.amount = Some(amount.to_string());
            detail.to = Some(to.to_string());
            ("sent", "open", sentence)
        }
    };
    detail.state = Some(name);
    (outcome, sentence)
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}: {}", self.outcome, self.sentence)
    }
}
