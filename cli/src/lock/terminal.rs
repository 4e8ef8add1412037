//! The foreground of the terminal at stdin. The process group there reads the input, and gets Ctrl-C.

use std::io::{self, stdin};

use nix::{
    sys::signal::{SigSet, Signal},
    unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp},
};

/// Whether stdin is the terminal of our session.
pub(super) fn is_there() -> bool {
    tcgetpgrp(stdin()).is_ok()
}

/// The foreground, lent to another process group. Taken back when dropped.
#[derive(Debug)]
pub(super) struct Foreground(());

impl Foreground {
    /// Lends it to `group`; `None` if this process does not have it.
    pub(super) fn lend(group: Pid) -> Option<Self> {
        let ours = tcgetpgrp(stdin()) == Ok(getpgrp());
        if ours && set(group).is_ok() {
            Some(Self(()))
        } else {
            None
        }
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // A terminal that hung up has no foreground.
        let _ = set(getpgrp());
    }
}

/// A process that does this from the background is stopped, unless it has SIGTTOU blocked.
fn set(group: Pid) -> io::Result<()> {
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGTTOU);
    let before = blocked.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
    let set = tcsetpgrp(stdin(), group);
    before.thread_set_mask()?;
    Ok(set?)
}
