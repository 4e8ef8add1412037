//! `ringfence counter`: accounts of money, coins or stock.

mod account;
mod balance;
mod change;
mod create;
mod error;
mod find;
mod history;
mod keep;
mod list;
mod output;
mod show;
mod transfer;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use self::error::CliError;
use super::ring::RingError;

const EXIT_CODES: &str = "\
Exit codes:
    0  applied, now or by an earlier attempt of the same request
    1  refused: insufficient balance, ceiling reached, cancelled or expired, account closed, …
    2  invalid command line or argument
   65  the id is older than what the account remembers: a repeat is refused again, and
       cannot tell whether the request was applied; look at the balance
   69  the servers or coordinators failed, or do not let the caller do this; this
       attempt was not applied
   75  unknown outcome, also if a signal comes before the answer: repeat the
       request with the printed --id, and it takes effect once. With --id every
       failure that is not final exits 75, because an earlier attempt may have
       been applied

Requests:
  A request has an id, MILLISECONDS:NAME: its creation time (Unix time in ms) and
  a name. A repeat has the same id, and the request takes effect once. Without
  --id the request is new, and its id is printed. A name with spaces, or with a
  mark such as . or : at its end, is in quotes as in JSON: 1793000000000:\"order 7.\"

Coordinators (--coordinator):
  The requests go by way of ringfence serve. If one of several fails, they are
  repeated at the next.";

/// The commands that only read.
const READ_EXIT_CODES: &str = "\
Exit codes:
    0  printed
    1  no such account
    2  invalid command line or argument
   69  not read: a server or coordinator did not respond or does not let the
       caller read it, or a required segment is in doubt";

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
    Find(find::Find),
    History(history::History),
    List(list::List),
    Show(show::Show),
    Resegment(create::Resegment),
    Label(create::Label),
    Close(create::Close),
    Delete(create::Delete),
    Sweep(keep::Sweep),
    Accept(keep::Accept),
}

/// Runs the command and prints its result.
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
            Command::Find(args) => args.run().await,
            Command::History(args) => args.run().await,
            Command::List(args) => args.run().await,
            Command::Show(args) => args.run().await,
            Command::Resegment(args) => args.run().await,
            Command::Label(args) => args.run().await,
            Command::Close(args) => args.run().await,
            Command::Delete(args) => args.run().await,
            Command::Sweep(args) => args.run().await,
            Command::Accept(args) => args.run().await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
