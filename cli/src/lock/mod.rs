//! `ringfence lock`: a command runs while a lock is held.
//!
//! ```text
//! shell ─► ringfence: asks, renews, passes signals on, ends the command before the lease ends
//!             ├─► guardian: leads the command's process group; ends it if ringfence cannot
//!             └─► CMD, in the guardian's group
//! ```
//!
//! | file | content |
//! |---|---|
//! | `args.rs` | the command line |
//! | `ask.rs` | connects and acquires |
//! | `reasons.rs` | explains the wait on stderr |
//! | `work.rs` | runs the command for as long as the lock is held |
//! | `end.rs` | the time when the command must have ended |
//! | `keep.rs` | without a command: holds the lock until stdin closes |
//! | `group.rs`, `guardian.rs` | the command's process group, and its leader |
//! | `terminal.rs` | the terminal's foreground |
//! | `../signals.rs`, `fate.rs` | signals that are passed on, and the fate of the command |
//! | `error.rs` | errors, and their exit codes |

mod args;
mod ask;
mod end;
mod error;
mod fate;
mod group;
mod guardian;
mod keep;
mod reasons;
mod terminal;
mod work;

use std::{process::ExitCode, time::Duration};

use humantime::format_duration;
use ringfence_client::{BootClock, Client, Clock as _, MultiGuard};
use ringfence_coordinator::clock::sleep_until;
use tokio::{runtime, time::timeout};

pub(crate) use args::Args;
use args::Asked;
use ask::Ask;
use error::LockError;
use group::Group;
pub(crate) use guardian::{NAME as GUARDIAN, run as guardian};

use super::{say, signals::Signals};

/// Longest wait for the release at the end.
const GIVE_BACK_WITHIN: Duration = Duration::from_secs(3);

/// Runs the command while the lock is held; its exit code, or 128 and the signal it died by.
pub(crate) fn run(args: &Args) -> Result<ExitCode, LockError> {
    let asked = args.check()?;
    match held(&asked) {
        Err(error) if args.quiet && error.is_conflict() => Ok(error.code(args).into()),
        ran => ran,
    }
}

/// Acquires the lock, and goes on until it is released.
fn held(asked: &Asked<'_>) -> Result<ExitCode, LockError> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ran = runtime.block_on(hold(asked));
    // The end of the process must not wait for a name server that does not answer.
    runtime.shutdown_background();
    ran
}

/// From the first request to the release.
async fn hold(asked: &Asked<'_>) -> Result<ExitCode, LockError> {
    // First all that can fail before anything is held.
    let group = match asked.command.is_empty() {
        true => None,
        false => Some(Group::start()?),
    };
    let mut signals = Signals::listen()?;
    let ask = Ask::new(asked);
    let client = tokio::select! {
        biased;
        signal = signals.next() => return Err(LockError::Interrupted(signal)),
        connected = ask.connect() => connected?,
    };
    let acquired = tokio::select! {
        biased;
        signal = signals.next() => Err(LockError::Interrupted(signal)),
        acquired = ask.acquire(&client) => acquired,
    };
    let acquired_at = BootClock.now();
    let guard = match acquired {
        Ok(guard) => guard,
        Err(error) => {
            // An unanswered request may have been granted.
            let _ = timeout(GIVE_BACK_WITHIN, client.close()).await;
            return Err(error);
        }
    };
    let ran = match group {
        Some(group) => work::run(asked, group, &guard, &mut signals).await,
        None => keep::until_closed(&guard, &mut signals).await,
    };
    if let Some(at_least) = asked.args.hold_at_least
        && !matches!(&ran, Err(error) if error.is_before_start())
    {
        tokio::select! {
            () = sleep_until(&BootClock, acquired_at + at_least) => {}
            _ = signals.next() => {}
            () = guard.lost() => {}
        }
    }
    let left = guard.remaining();
    let given_back = give_back(&client, guard).await;
    if !given_back && !matches!(ran, Err(LockError::Lost)) {
        let left = format_duration(Duration::from_secs(left.as_secs() + 1));
        say(&format!(
            "the server does not answer: the lock ends with its lease, in {left}"
        ));
    }
    ran
}

/// Releases the lock. Returns whether that was answered in time.
async fn give_back(client: &Client, guard: MultiGuard) -> bool {
    let given_back = timeout(GIVE_BACK_WITHIN, async {
        guard.release().await;
        client.close().await
    });
    matches!(given_back.await, Ok(0))
}
