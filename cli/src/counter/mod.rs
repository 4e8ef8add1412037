//! `ringfence counter`: accounts of money, coins or stock.

mod account;
mod balance;
mod change;
mod create;
mod error;
mod keep;
mod output;
mod show;
mod transfer;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use self::error::CliError;
use super::ring::RingError;

const EXIT_CODES: &str = "\
Exit codes:
    0  done, now or by an earlier attempt of the same request
    1  refused for good: there is too little, or it was cancelled, or closed, …
    2  the command line, or what it names, cannot be used
   69  the servers could not do it; nothing was done by this attempt
   75  it may have been done; repeat it with the --id that is printed, and it
       takes effect once. With --id every failure that is not final exits 75:
       an earlier attempt may have done it

Requests:
  A request has an id, MILLISECONDS:NAME: when it was created, since 1970, and a
  name of your own. Whoever repeats it, repeats its id, and it takes effect once.
  Without --id it is a new request; its id is printed.";

/// Of the commands that only read.
const READ_EXIT_CODES: &str = "\
Exit codes:
    0  it is printed
    1  there is no such account
    2  the command line, or what it names, cannot be used
   69  it could not be read: a server did not answer, or a segment that is needed
       for it is in doubt";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Create(create::Create),
    Deposit(change::Deposit),
    Deduct(change::Deduct),
    Balance(balance::Balance),
    Transfer(transfer::Transfer),
    Reserve(change::Reserve),
    Confirm(change::Confirm),
    Cancel(change::Cancel),
    Show(show::Show),
    Resegment(create::Resegment),
    Close(create::Close),
    Sweep(keep::Sweep),
    Accept(keep::Accept),
}

/// Does it, and says so.
pub(crate) fn run(command: &Command) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RingError::Runtime)?;
    runtime.block_on(async {
        match command {
            Command::Create(args) => args.run().await,
            Command::Deposit(args) => args.run().await,
            Command::Deduct(args) => args.run().await,
            Command::Balance(args) => args.run().await,
            Command::Transfer(args) => args.run().await,
            Command::Reserve(args) => args.run().await,
            Command::Confirm(args) => args.run().await,
            Command::Cancel(args) => args.run().await,
            Command::Show(args) => args.run().await,
            Command::Resegment(args) => args.run().await,
            Command::Close(args) => args.run().await,
            Command::Sweep(args) => args.run().await,
            Command::Accept(args) => args.run().await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
