//! `ringfence counter deposit`, `deduct`, `reserve`, `confirm`, `cancel`.

use std::time::Duration;

use ringfence_client::counter::{Amount, Ended, Reserved};

use super::{
    CliError, EXIT_CODES,
    account::{Id, LegText, One, Under, legs},
    error::answer,
    output::Output,
};

/// Deposit into an account
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Deposit {
    #[command(flatten)]
    one: One,
    /// The amount, in the smallest unit
    amount: String,
    #[command(flatten)]
    under: Under,
}

/// Deduct from an account, from any of its segments
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Deduct {
    #[command(flatten)]
    one: One,
    /// The amount, in the smallest unit
    amount: String,
    #[command(flatten)]
    under: Under,
}

/// Reserve money until it is confirmed, cancelled, or expires
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Reserve {
    #[command(flatten)]
    one: One,
    /// The amount, in the smallest unit
    amount: String,
    /// When the reservation expires, counted from the creation of the request
    #[arg(long = "for", value_name = "LENGTH", default_value = "15m", value_parser = crate::length)]
    length: Duration,
    #[command(flatten)]
    under: Under,
}

/// Confirm a reservation: the money is spent, or a part of it, or other accounts receive it
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Confirm {
    #[command(flatten)]
    one: One,
    /// The id of the reservation
    #[arg(long, value_name = "MILLISECONDS:NAME")]
    id: Id,
    /// Spend only this amount, in the smallest unit; the rest is available again
    #[arg(long)]
    amount: Option<String>,
    /// An account that receives this amount of it: all of them or none, and the rest is available again. If one refuses,
    /// the reservation is still held
    #[arg(long = "to", value_name = "ACCOUNT=AMOUNT", conflicts_with = "amount")]
    legs: Vec<LegText>,
}

/// Cancel a reservation: the money is available again. If the reservation arrives later, it is
/// refused
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cancel {
    #[command(flatten)]
    one: One,
    /// The id of the reservation
    #[arg(long, value_name = "MILLISECONDS:NAME")]
    id: Id,
}

impl Deposit {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let amount: Amount = self.amount.parse()?;
        let (opened, counter) = self.one.open().await?;
        let id = self.under.request(&opened.counters);
        let deposit = counter.deposit(self.under.referenced(&id), amount);
        let deposited = answer(&id, self.under.repeats(), deposit).await?;
        let sentence = format!("{amount} added to {}", self.one.account);
        let output = Output::new(&self.one.account, "deposited", sentence);
        opened.tell(output.by(&id).then(deposited.balance)).await
    }
}

impl Deduct {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let amount: Amount = self.amount.parse()?;
        let (opened, counter) = self.one.open().await?;
        let id = self.under.request(&opened.counters);
        let deduct = counter.deduct(self.under.referenced(&id), amount);
        let deducted = answer(&id, self.under.repeats(), deduct).await?;
        let sentence = format!("{amount} taken from {}", self.one.account);
        let output = Output::new(&self.one.account, "deducted", sentence);
        opened.tell(output.by(&id).then(deducted.balance)).await
    }
}

impl Reserve {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let amount: Amount = self.amount.parse()?;
        if self.length.is_zero() {
            return Err(CliError::Usage("--for is 0s, must be at least 1ms".into()));
        }
        let (opened, counter) = self.one.open().await?;
        let id = self.under.request(&opened.counters);
        let length_ms = u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX);
        // Counted from the request: a repeat has the same deadline.
        let deadline_ms = id.time_ms().saturating_add(length_ms);
        let reserve = counter.reserve(self.under.referenced(&id), amount, deadline_ms);
        let reserved = answer(&id, self.under.repeats(), reserve).await?;
        let (outcome, what) = match reserved.outcome {
            Reserved::Held => ("held", "set aside in"),
            Reserved::Ended(ended @ Ended::Confirmed) => words(ended),
            Reserved::Ended(ended) => {
                let (outcome, _) = words(ended);
                return Err(CliError::Ended { id, outcome });
            }
        };
        let sentence = format!("{amount} {what} {}", self.one.account);
        let output = Output::new(&self.one.account, outcome, sentence);
        opened.tell(output.by(&id).then(reserved.balance)).await
    }
}

impl Confirm {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let Id(id) = &self.id;
        let ended = match (&self.amount, &self.legs[..]) {
            (Some(amount), _) => {
                let part = counter.confirm_part(id, amount.parse()?);
                answer(id, true, part).await?
            }
            (None, []) => answer(id, true, counter.confirm(id)).await?,
            (None, to) => {
                let (capture, legs) = (opened.counters.new_request(), legs(to)?);
                answer(id, true, counter.capture(id, &capture, &legs)).await?
            }
        };
        let (outcome, what) = words(ended.outcome);
        if ended.outcome != Ended::Confirmed {
            return Err(CliError::Ended {
                id: id.clone(),
                outcome,
            });
        }
        let sentence = format!("the reservation was {what} {}", self.one.account);
        let output = Output::new(&self.one.account, outcome, sentence);
        opened.tell(output.by(id).then(ended.balance)).await
    }
}

impl Cancel {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let Id(id) = &self.id;
        let ended = answer(id, true, counter.cancel(id)).await?;
        let (outcome, what) = words(ended.outcome);
        if ended.outcome == Ended::Confirmed {
            return Err(CliError::Ended {
                id: id.clone(),
                outcome,
            });
        }
        let sentence = format!("the reservation was {what} {}", self.one.account);
        let output = Output::new(&self.one.account, outcome, sentence);
        opened.tell(output.by(id).then(ended.balance)).await
    }
}

/// The result for programs and for people.
fn words(ended: Ended) -> (&'static str, &'static str) {
    match ended {
        Ended::Confirmed => ("confirmed", "spent from"),
        Ended::Cancelled => ("cancelled", "given back to"),
        Ended::Expired => ("expired", "given back, at its deadline, to"),
    }
}
