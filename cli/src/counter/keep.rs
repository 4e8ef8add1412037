//! `ringfence counter sweep`, `accept`: what somebody must do now and then.

use super::{CliError, EXIT_CODES, account::One, output::Output};

/// Give back what is past its deadline, finish transfers that were interrupted, forget old answers
///
/// Anybody may, at any time, any number at once: from a timer, for example.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Sweep {
    #[command(flatten)]
    one: One,
}

/// Take segments that are in doubt for what they are, and replace those that are lost
///
/// A server came back, and may have lost its last changes: its segments move no money until a person has
/// compared them with books of their own (ringfence counter show), and accepts them. A server came back with
/// nothing: its segments are lost, with their money, and what was reserved or on its way there. New segments
/// take their places. Requests of before the loss get "too old" there. Takes about 11 s.
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
            "{} reservations came back, {} transfers arrived, {} were returned, {} answers were forgotten",
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
