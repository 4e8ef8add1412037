//! A process that ends when it is to, or when this one does.

use std::{
    io,
    process::{Child, Command, ExitStatus},
    sync::LazyLock,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::sync::{mpsc, oneshot};

/// A child that is ended *and* reaped when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    end_by: Signal,
}

/// A process to be started, and the receiver of the result.
type Start = (Command, Signal, oneshot::Sender<io::Result<Process>>);

/// A thread that starts processes and never ends.
///
/// setpriv asks the kernel to kill the server when its parent dies, and the kernel means the
/// *thread* that started it. A test's thread, or one of a runtime, ends before the process does.
static STARTER: LazyLock<io::Result<mpsc::Sender<Start>>> = LazyLock::new(|| {
    let (sender, mut starts) = mpsc::channel::<Start>(16);
    let thread = std::thread::Builder::new().name("server starter".into());
    thread.spawn(move || {
        while let Some((mut command, end_by, reply)) = starts.blocking_recv() {
            let started = command.spawn().map(|child| Process { child, end_by });
            // Nobody waits any more: the process is dropped, and so ended.
            let _ = reply.send(started);
        }
    })?;
    Ok(sender)
});

impl Process {
    /// Starts `command`, which `end_by` ends for certain: dropping the process waits for that.
    ///
    /// If `command` is `setpriv --pdeathsig`, the program gets that signal when this process ends,
    /// not when the thread does that called this.
    ///
    /// # Errors
    ///
    /// The error of [`Command::spawn`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends what was started.
    pub async fn start(command: Command, end_by: Signal) -> io::Result<Self> {
        let starter = STARTER.as_ref().map_err(|error| error.kind())?;
        let (reply, started) = oneshot::channel();
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        if starter.send((command, end_by, reply)).await.is_err() {
            return Err(gone);
        }
        started.await.unwrap_or(Err(gone))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    ///
    /// The error of [`Child::try_wait`].
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    pub(super) fn signal(&self, signal: Signal) {
        // It can only fail if there is no such process; and there is, until it is reaped.
        let _ = kill(Pid::from_raw(self.id() as i32), signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once reaped, its number may be another's.
        if let Ok(None) = self.try_wait() {
            self.signal(self.end_by);
            let _ = self.child.wait();
        }
    }
}
