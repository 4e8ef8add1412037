//! For how long a task holds the lock, without using a processor meanwhile.
//!
//! By a timer of the kernel's: tokio's sleep ends on a whole millisecond, which would hide up to one
//! of every hand-over.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, RawFd},
    time::Duration,
};

use nix::sys::{
    time::TimeSpec,
    timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
};
use tokio::io::unix::AsyncFd;

pub(crate) struct Hold(AsyncFd<Timer>);

struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Hold {
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, for descriptors that may change; a timer's does not"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Timer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        Ok(Self(AsyncFd::new(timer)?))
    }

    /// Waits for `length`; not at all if it is zero.
    pub(crate) async fn pass(&self, length: Duration) -> io::Result<()> {
        if length.is_zero() {
            return Ok(());
        }
        let once = Expiration::OneShot(TimeSpec::from(length));
        let timer = &self.0;
        timer.get_ref().0.set(once, TimerSetTimeFlags::empty())?;
        loop {
            let mut ready = timer.readable().await?;
            let waited = ready.try_io(|timer| Ok(timer.get_ref().0.wait()?));
            if let Ok(waited) = waited {
                return waited;
            }
        }
    }
}
