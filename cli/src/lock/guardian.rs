//! The leader of the command's process group: a process of its own that kills the group when
//! `ringfence` cannot, because it was killed, or stopped for longer than its lease.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    process::ExitCode,
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{SigSet, Signal, kill},
    unistd::{Pid, getpgrp, getpid},
};
use ringfence_client::{BootClock, Clock, Instant};

use super::say;
use crate::USAGE;

/// The subcommand it is started by.
pub(crate) const NAME: &str = "guard-process-group";

/// The clock is looked at again after this: timers stand still while the machine is suspended.
const LOOK: Duration = Duration::from_secs(1);

/// Guards the group it leads, and ends with it.
pub(crate) fn run() -> ExitCode {
    if getpid() != getpgrp() {
        say("only `ringfence lock` starts this");
        return ExitCode::from(USAGE);
    }
    // Signals to the group are meant for the command.
    let guarded = SigSet::all().thread_block().map_err(io::Error::from);
    if let Err(error) = guarded.and_then(|()| until_it_is_time()) {
        say(&format!("the guardian cannot go on: {error}"));
    }
    // All of the group, this process too.
    let _ = kill(Pid::from_raw(0), Signal::SIGKILL);
    ExitCode::FAILURE
}

/// Waits until stdin closes, or for the last time that it named: nanoseconds on the clock that goes
/// on in suspend.
fn until_it_is_time() -> io::Result<()> {
    let mut orders = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    io::stdout().write_all(b"\n")?;
    io::stdout().flush()?;
    let mut kill_at = None;
    // An order that is there goes before the time that has come: this process may have been stopped.
    while is_ordered(&orders, kill_at)? {
        let mut order = [0; 8];
        if orders.read_exact(&mut order).is_err() {
            break;
        }
        kill_at = Some(Instant::from_nanos(u64::from_le_bytes(order)));
    }
    Ok(())
}

/// Waits for an order, the end of orders being one; false if none comes until `kill_at`.
fn is_ordered(orders: &File, kill_at: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = kill_at.map(|at| at.since(BootClock.now()));
        let look = left.map_or(PollTimeout::NONE, |left| {
            // Rounded up: a millisecond early would be a turn for nothing.
            let millis = left.min(LOOK).as_micros().div_ceil(1000);
            PollTimeout::from(millis as u16)
        });
        let mut order = [PollFd::new(orders.as_fd(), PollFlags::POLLIN)];
        match poll(&mut order, look) {
            Ok(0) if left.is_some_and(|left| left.is_zero()) => return Ok(false),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
