//! What becomes of the command.

use std::io;

use nix::{
    sys::wait::{WaitPidFlag, WaitStatus, waitpid},
    unistd::Pid,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Something that happened to the command, or to its job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The command was stopped.
    Stopped,
    /// It ended, and is gone.
    Ended(WaitStatus),
    /// This process was told to go on: a shell put the job into the foreground, or let it run.
    GoOn,
}

/// Tells what becomes of a child.
pub(super) struct Fate {
    some_child: Signal,
    go_on: Signal,
}

impl Fate {
    /// Listens from now on: to be called before the child is started.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            some_child: signal(SignalKind::child())?,
            go_on: signal(SignalKind::from_raw(nix::libc::SIGCONT))?,
        })
    }

    /// Waits until something happens to `child`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub(super) async fn of(&mut self, child: Pid) -> io::Result<Event> {
        loop {
            let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
            match waitpid(child, Some(flags))? {
                WaitStatus::StillAlive => {}
                WaitStatus::Stopped(..) => return Ok(Event::Stopped),
                ended => return Ok(Event::Ended(ended)),
            }
            tokio::select! {
                _ = self.some_child.recv() => {}
                _ = self.go_on.recv() => return Ok(Event::GoOn),
            }
        }
    }
}
