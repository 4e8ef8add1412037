//! `ringfence counter transfer`: from one account to another.

use ringfence_client::counter::Amount;

use super::{
    CliError, EXIT_CODES,
    account::{Location, Under},
    error::answer,
    output::Output,
};

/// Transfer money to another account of the same namespace, also across shards
///
/// If it is interrupted, the money is in neither account until the request is repeated, or one of
/// the accounts is swept; it is never lost.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Transfer {
    /// The account to transfer from
    from: String,
    /// The account to transfer to
    to: String,
    /// The amount, in the smallest unit
    amount: String,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    place: Location,
}

impl Transfer {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let Self { from, to, .. } = self;
        let amount: Amount = self.amount.parse()?;
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
