//! A process that ends together with everything it started.

use std::io;

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::process::{Child, Command};

/// A process that leads a process group. Dropping it kills the group.
pub(crate) struct Group {
    pub(crate) leader: Child,
    id: Pid,
}

impl Group {
    /// Starts `command`, without standard input.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let leader = command
            .stdin(std::process::Stdio::null())
            .process_group(0)
            .spawn()?;
        let id = leader.id().expect("it was not waited for yet");
        let id = Pid::from_raw(i32::try_from(id).expect("process ids fit"));
        Ok(Self { leader, id })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // None is left after an orderly end.
        let _ = killpg(self.id, Signal::SIGKILL);
    }
}
