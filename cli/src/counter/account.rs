//! The arguments that name an account and a request.

use std::{fmt, str::FromStr};

use ringfence_client::{
    Client, Counter, Counters, Namespace,
    counter::{Account, AmountError, Leg, Legs, Reference, Referenced, RequestId},
};

use serde::Serialize;

use super::CliError;
use crate::{
    place,
    ring::{self, RingError},
};

/// What follows an id in a text. No name ends with these here.
const CLOSING: [char; 8] = ['.', ',', ';', ':', ')', ']', '"', '\''];

/// The location of accounts, and the form of the output.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Location {
    /// The namespace of the account
    #[arg(long, value_name = "NS", default_value = "default", value_parser = Namespace::new)]
    namespace: Namespace,
    #[command(flatten)]
    place: place::Place,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One account.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct One {
    /// The name of the account: 1 to 255 bytes
    pub(super) account: String,
    #[command(flatten)]
    pub(super) place: Location,
}

/// The id of a request, and its reference.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Under {
    /// Repeat the request with this id
    #[arg(long, value_name = "MILLISECONDS:NAME")]
    id: Option<Id>,
    /// Your reference for the log of the account: 32 hexadecimal digits, such as a UUID. A repeat keeps the first one
    #[arg(long, value_name = "HEX")]
    reference: Option<Reference>,
}

/// An account, and the amount that it receives.
#[derive(Clone, Debug)]
pub(super) struct LegText(Leg);

impl FromStr for LegText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // An account may have a '=' in its name.
        let Some((to, amount)) = text.rsplit_once('=') else {
            return Err("must be ACCOUNT=AMOUNT".into());
        };
        Ok(Self(Leg {
            to: Account::new(to).map_err(|error| error.to_string())?,
            amount: amount
                .parse()
                .map_err(|error: AmountError| error.to_string())?,
        }))
    }
}

/// The legs of a transfer or a capture.
pub(super) fn legs(legs: &[LegText]) -> Result<Legs, CliError> {
    let legs = legs.iter().map(|LegText(leg)| leg.clone());
    Legs::new(legs.collect()).map_err(|error| CliError::Usage(error.to_string()))
}

/// A request's id, in its printed form.
#[derive(Clone, Debug)]
pub(super) struct Id(pub(super) RequestId);

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':');
        let parts = parts.and_then(|(time, name)| Some((time.parse().ok()?, name)));
        let Some((time_ms, name)) = parts else {
            return Err(
                "must be MILLISECONDS:NAME, as it was printed for the first attempt".into(),
            );
        };
        if name.starts_with('"') {
            let name: String = serde_json::from_str(name)
                .map_err(|error| format!("the name is not a text in quotes: {error}"))?;
            return Self::of(time_ms, &name);
        }
        // Another id is another request, which takes effect once more.
        if let Some(other) = odd(name) {
            let quoted = quoted(name);
            return Err(format!(
                "the name {quoted} has {other:?}, must be without spaces and not end with any of {CLOSING:?}: was more \
                 copied than the id? If not, put the name in quotes: {time_ms}:{quoted}"
            ));
        }
        Self::of(time_ms, name)
    }
}

impl Id {
    fn of(time_ms: u64, name: &str) -> Result<Self, String> {
        let id = RequestId::new(time_ms, name);
        id.map(Self).map_err(|error| error.to_string())
    }
}

/// An id as it is printed, and read again. A name that could be taken for another one is in quotes.
pub(super) fn id_text(id: &RequestId) -> String {
    let name = id.name();
    match name.starts_with('"') || odd(name).is_some() {
        true => format!("{}:{}", id.time_ms(), quoted(name)),
        false => id.to_string(),
    }
}

/// The character of a name that may have been copied from what surrounds it.
fn odd(name: &str) -> Option<char> {
    let mut spaces = name.chars().filter(|c| c.is_whitespace() || c.is_control());
    let last = name.chars().last().filter(|c| CLOSING.contains(c));
    spaces.next().or(last)
}

/// A name in quotes, as in JSON.
fn quoted(name: &str) -> String {
    serde_json::to_string(name).expect("a text")
}

impl Under {
    /// Whether an earlier attempt may have used the request's id.
    pub(super) fn repeats(&self) -> bool {
        self.id.is_some()
    }

    /// The request: a given one to be repeated, or a new one.
    pub(super) fn request(&self, counters: &Counters) -> RequestId {
        match &self.id {
            Some(Id(id)) => id.clone(),
            None => counters.new_request(),
        }
    }

    /// The request with its reference.
    pub(super) fn referenced<'a>(&self, id: &'a RequestId) -> Referenced<'a> {
        let reference = self.reference;
        Referenced { id, reference }
    }
}

/// The counters of a command.
pub(super) struct Opened {
    client: Client,
    pub(super) counters: Counters,
    json: bool,
}

impl Location {
    pub(super) async fn open(&self) -> Result<Opened, CliError> {
        let client = ring::connected(&self.place.named().map_err(RingError::from)?).await?;
        let counters = client.counters_of(self.namespace.as_str());
        Ok(Opened {
            counters: counters.expect("checked as it was read"),
            client,
            json: self.json,
        })
    }
}

impl One {
    pub(super) async fn open(&self) -> Result<(Opened, Counter), CliError> {
        let opened = self.place.open().await?;
        let counter = opened.counters.open(&self.account)?;
        Ok((opened, counter))
    }
}

impl Opened {
    /// Prints a part of the result: with `--json`, an object on a line of its own.
    pub(super) fn tell_part(&self, what: &(impl Serialize + fmt::Display)) -> Result<(), CliError> {
        let told = match self.json {
            true => {
                crate::show(serde_json::to_string(what).expect("numbers, texts and lists") + "\n")
            }
            false => crate::show(what),
        };
        Ok(told.map_err(RingError::Unshown)?)
    }

    pub(super) async fn close(self) {
        self.client.close().await;
    }

    /// Prints the result.
    pub(super) async fn tell(self, what: impl Serialize + fmt::Display) -> Result<(), CliError> {
        let json = self.json;
        self.close().await;
        Ok(ring::print(&what, json)?)
    }
}
