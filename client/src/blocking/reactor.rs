//! The thread on which a client's tasks run, and how other threads wait for them.

use std::{
    future::Future,
    io,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, JoinHandle, Thread},
};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::coop::unconstrained,
};

/// A thread with a runtime. Dropping it ends both.
#[derive(Debug)]
pub(super) struct Reactor {
    handle: Handle,
    /// The thread ends when this is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Reactor {
    /// # Errors
    ///
    /// The system has no thread, or no file descriptor, left.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("ringfence".into());
        let thread = thread.spawn(move || {
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Blocks this thread until `future` is done. The runtime's thread serves its timers and
    /// connections.
    ///
    /// `Handle::block_on` would panic in a task of another runtime. There, without `unconstrained`,
    /// a long call would use up that task's budget, and never go on.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        let _entered = self.handle.enter();
        let mut future = pin!(unconstrained(future));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => thread::park(),
            }
        }
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The last handle may be in a callback, on the thread itself.
        let thread = self.thread.take();
        let thread = thread.filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = thread {
            // A panic of that thread was reported by it.
            let _ = thread.join();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
