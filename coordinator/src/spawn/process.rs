//! A process that ends when it is to, or when this one does.

use std::{
    io,
    process::{Child, Command},
    sync::LazyLock,
};

use tokio::sync::{mpsc, oneshot};

use super::error::{SpawnError, system};

/// A child that is killed *and* reaped when it is dropped.
#[derive(Debug)]
pub(super) struct Process(pub(super) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process to be started, and who is told.
type Start = (Command, oneshot::Sender<io::Result<Process>>);

/// A thread that starts processes and never ends.
///
/// setpriv asks the kernel to kill the server when its parent dies, and the kernel means the
/// *thread* that started it. A test's thread, or one of a runtime, ends before the process does.
static STARTER: LazyLock<io::Result<mpsc::Sender<Start>>> = LazyLock::new(|| {
    let (sender, mut starts) = mpsc::channel::<Start>(16);
    let thread = std::thread::Builder::new().name("redis starter".into());
    thread.spawn(move || {
        while let Some((mut command, reply)) = starts.blocking_recv() {
            // Nobody waits any more: the process is dropped, and so killed.
            let _ = reply.send(command.spawn().map(Process));
        }
    })?;
    Ok(sender)
});

/// Starts `command`, which is to be killed if the future is dropped.
pub(super) async fn start(command: Command) -> Result<Process, SpawnError> {
    const WHAT: &str = "start redis-server";
    let starter = STARTER
        .as_ref()
        .map_err(|error| system(WHAT, error.kind().into()))?;
    let (reply, started) = oneshot::channel();
    let gone = |_| system(WHAT, io::ErrorKind::BrokenPipe.into());
    starter.send((command, reply)).await.map_err(|_| gone(()))?;
    match started.await.map_err(|_| gone(()))? {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SpawnError::NoSetpriv),
        started => started.map_err(|source| system(WHAT, source)),
    }
}
