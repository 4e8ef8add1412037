//! `ringfence counter transfer`: from one account to others.

use ringfence_client::counter::{Amount, Legs};

use super::{
    CliError, EXIT_CODES,
    account::{LegText, Location, Under, legs},
    error::answer,
    output::Output,
};

/// Transfer money to another account of the same namespace, or to several, all or nothing, also across shards
///
/// If it is interrupted, the money is in neither account until the request is repeated, or one of
/// the accounts is swept; it is never lost.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Transfer {
    /// The account to transfer from
    from: String,
    /// The account to transfer to
    #[arg(required_unless_present = "legs", requires = "amount")]
    to: Option<String>,
    /// The amount, in the smallest unit
    amount: Option<String>,
    /// Instead of TO and AMOUNT: one of several accounts, and its amount
    #[arg(long = "to", value_name = "ACCOUNT=AMOUNT", conflicts_with = "to")]
    legs: Vec<LegText>,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    place: Location,
}

impl Transfer {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        match (&self.to, &self.amount) {
            (Some(to), Some(amount)) => self.to_one(to, amount.parse()?).await,
            _ => self.to_all(legs(&self.legs)?).await,
        }
    }

    async fn to_all(&self, legs: Legs) -> Result<(), CliError> {
        let from = &self.from;
        let opened = self.place.open().await?;
        let source = opened.counters.open(from)?;
        let id = self.under.request(&opened.counters);
        let moved = source.transfer_legs(self.under.referenced(&id), &legs);
        let moved = answer(&id, self.under.repeats(), moved).await?;
        let sentence = format!(
            "{} moved from {from} to {} accounts",
            legs.sum(),
            legs.len()
        );
        let output = Output::new(from, "transferred", sentence);
        opened.tell(output.by(&id).then(moved.balance)).await
    }

    async fn to_one(&self, to: &str, amount: Amount) -> Result<(), CliError> {
        let from = &self.from;
        if from == to {
            return Err(CliError::Usage(format!(
                "FROM and TO are both {from}: must be two accounts"
            )));
        }
        let opened = self.place.open().await?;
        let (source, destination) = (opened.counters.open(from)?, opened.counters.open(to)?);
        let id = self.under.request(&opened.counters);
        let moved = source.transfer(self.under.referenced(&id), amount, &destination);
        let moved = answer(&id, self.under.repeats(), moved).await?;
        let sentence = format!("{amount} moved from {from} to {to}");
        let output = Output::new(from, "transferred", sentence);
        opened.tell(output.by(&id).then(moved.balance)).await
    }
}
