//! `ringfence counter sweep`, `accept`: the regular work on accounts.

use super::{CliError, EXIT_CODES, account::One, output::Output};

/// Expire reservations, finish interrupted transfers, forget old answers
///
/// It may run at any time, from any number of processes at once: from a timer, for example.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Sweep {
    #[command(flatten)]
    one: One,
}

/// Accept segments in doubt as they are, and replace lost segments
///
/// If a server restarted and may have lost its last changes, its segments are in doubt: they move
/// no money until a person compares them with other books (ringfence counter show) and accepts
/// them. If a server came back empty, its segments are lost, with their money, their reservations
/// and the transfers to them. New segments replace them; requests from before the loss are refused
/// there as too old. Takes about 11 s.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Accept {
    #[command(flatten)]
    one: One,
}

impl Sweep {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let mut swept = counter.sweep().await?;
        if !swept.errors.is_empty() {
            return Err(swept.errors.swap_remove(0).into());
        }
        let sentence = format!(
            "{} reservations expired, {} transfers delivered, {} transfers returned, {} answers forgotten",
            swept.expired, swept.delivered, swept.returned, swept.purged
        );
        opened
            .tell(Output::new(&self.one.account, "swept", sentence))
            .await
    }
}

impl Accept {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let before = counter.accept().await?;
        let account = &self.one.account;
        let sentence = match before.lost.0.is_empty() {
            true => format!("{account} is taken for what it is"),
            false => format!(
                "{account} lost {}; it goes on without that money",
                before.lost
            ),
        };
        opened
            .tell(Output::new(account, "accepted", sentence))
            .await
    }
}
