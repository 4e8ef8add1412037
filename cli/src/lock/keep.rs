//! Without a command: the lock is held until stdin closes.

use std::{
    io::{self, Write},
    process::ExitCode,
    thread,
};

use ringfence_client::MultiGuard;
use tokio::sync::oneshot;

use super::{LockError, Signals};

/// Prints the tokens, and holds the lock until stdin closes or a signal comes.
pub(super) async fn until_closed(
    guard: &MultiGuard,
    signals: &mut Signals,
) -> Result<ExitCode, LockError> {
    for token in guard.tokens() {
        writeln!(io::stdout(), "{token}")?;
    }
    tokio::select! {
        biased;
        () = guard.lost() => Err(LockError::Lost),
        _ = signals.next() => Ok(ExitCode::SUCCESS),
        closed = stdin_closed()? => {
            closed.expect("the thread says so before it ends");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads stdin to its end in a thread of its own: nobody can be woken from a read of a terminal, and
/// a runtime would wait for it.
fn stdin_closed() -> io::Result<oneshot::Receiver<()>> {
    let (closed, told) = oneshot::channel();
    let thread = thread::Builder::new().name("stdin".into());
    thread.spawn(move || {
        // What cannot be read any more is as good as closed.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = closed.send(());
    })?;
    Ok(told)
}
