//! The signals that this process handles.

use std::{
    fs,
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// Signals that other programs or people send to a command.
const HEEDED: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// The signals that this process gets.
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Handles them from now on: none of them ends this process any more. A signal that was ignored at the start
    /// (`nohup`) stays ignored, by the command too.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored()?;
        let heeded = HEEDED
            .into_iter()
            .filter(|signal| ignored & (1 << (*signal as u64 - 1)) == 0);
        let listen = |signal_| {
            let kind = SignalKind::from_raw(signal_ as i32);
            Ok((signal_, signal(kind)?))
        };
        heeded.map(listen).collect::<io::Result<_>>().map(Self)
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Signal> {
        let polled = self
            .0
            .iter_mut()
            .find_map(|(signal, stream)| stream.poll_recv(context).is_ready().then_some(*signal));
        polled.map_or(Poll::Pending, Poll::Ready)
    }
}

/// The signals that this process ignores, a bit each: the lowest is signal 1. Only Linux tells.
fn ignored() -> io::Result<u64> {
    if !cfg!(target_os = "linux") {
        return Ok(0);
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.ok_or_else(|| io::Error::other("/proc/self/status has no SigIgn"))
}
