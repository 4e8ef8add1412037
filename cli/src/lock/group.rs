//! The process group that the command runs in.

use std::{
    env,
    io::{self, Read},
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use ringfence_client::Instant;
use tokio::net::unix::pipe;

use super::guardian;

/// A process group, led by its guardian: so it exists before the command does, its id stays
/// reserved as long as this value lives, and no death of this process comes at a moment that leaves
/// the command behind. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Group {
    id: Pid,
    guardian: Child,
    /// Only this process has this end: it closes with us, however we end.
    orders: pipe::Sender,
    left: bool,
}

impl Group {
    /// A group with nobody in it but its guardian, on its guard. To be called in a runtime.
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new(this_program()?);
        command
            .arg(guardian::NAME)
            .env_clear()
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut guardian = command.spawn()?;
        let orders = OwnedFd::from(guardian.stdin.take().expect("piped"));
        let mut ready = guardian.stdout.take().expect("piped");
        let group = Self {
            id: Pid::from_raw(guardian.id() as i32),
            guardian,
            orders: pipe::Sender::from_owned_fd(orders)?,
            left: false,
        };
        // Until it blocks signals, one sent to the group could end it.
        ready.read_exact(&mut [0])?;
        Ok(group)
    }

    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Starts `command` in the group. The process that starts another waits for its end.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Pid> {
        let child = command.process_group(self.id.as_raw()).spawn()?;
        Ok(Pid::from_raw(child.id() as i32))
    }

    /// Has the guardian kill the group at `at`, unless it hears of another time before.
    pub(super) fn kill_at(&self, at: Instant) {
        // If it does not listen, as it is stopped or gone, there is still us.
        let _ = self.orders.try_write(&at.as_nanos().to_le_bytes());
    }

    /// Sends `signal` to all in it. The guardian heeds only those that nobody can help.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = killpg(self.id, signal);
    }

    /// Ends the guardian alone: what else is in the group goes on.
    pub(super) fn leave(mut self) {
        let _ = self.guardian.kill();
        self.left = true;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.left {
            self.signal(Signal::SIGKILL);
        }
        // Only now is the group's id anybody's.
        let _ = self.guardian.wait();
    }
}

/// Not by name on Linux: this starts this very program, even if it was replaced or deleted meanwhile.
fn this_program() -> io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok("/proc/self/exe".into()),
        false => env::current_exe(),
    }
}
