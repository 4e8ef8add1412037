//! Releases that no task of the engine can send any more, because its last handle was dropped or
//! its runtime ends. A thread sends them over its own connections, and the drop waits for it: the
//! process may end right after.
//!
//! ```text
//! drop ─► thread: take the lanes over ─► connect, which ends their connections ─► release
//! ```

use std::{
    collections::HashMap,
    future::Future,
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::{self, ThreadId},
    time::Duration,
};

use futures_util::future::{join_all, try_join_all};
use ringfence_ring::ShardId;
use tokio::{
    runtime,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use super::unsent::{Unsent, request};
use crate::{
    limits::BATCH_MAX,
    shard::{LockLane, LockLink, Request, ShardError},
};

/// How long releases delay the drop of the last handle, and the end of the runtime.
pub(crate) const WITHIN: Duration = Duration::from_millis(250);

/// Has a thread of its own run `sending`. `None`: it cannot be had.
pub(crate) fn on_thread(sending: impl Future<Output = ()> + Send + 'static) -> Option<ThreadId> {
    let started = start(sending).inspect_err(|error| {
        tracing::warn!(%error, "last releases not sent; the locks expire");
    });
    started.ok()
}

fn start(sending: impl Future<Output = ()> + Send + 'static) -> io::Result<ThreadId> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let thread = thread::Builder::new().name("ringfence-last".into());
    let thread = thread.spawn(move || runtime.block_on(sending))?;
    Ok(thread.thread().id())
}

/// Waits for the end of `is_done`, at most `within`.
pub(crate) fn wait(is_done: &Receiver<()>, within: Duration) {
    if is_done.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
        tracing::warn!(
            "last releases take longer than {WITHIN:?}; the locks may last until their leases end"
        );
    }
}

/// A thread that sends releases. It ends once this is dropped and everything is sent.
#[derive(Debug)]
pub(crate) struct LastReleases {
    jobs: UnboundedSender<Job>,
    thread: ThreadId,
}

#[derive(Debug)]
struct Job {
    unsent: Vec<Unsent>,
    /// Dropped when the job is done.
    done: mpsc::Sender<()>,
}

impl LastReleases {
    pub(crate) fn start() -> Option<Self> {
        let (jobs, to_do) = unbounded_channel();
        let thread = on_thread(send_all(to_do))?;
        Some(Self { jobs, thread })
    }

    /// Sends each of `unsent` once, and waits for that, at most `within`.
    pub(crate) fn send(&self, unsent: Vec<Unsent>, within: Duration) {
        let (done, is_done) = mpsc::channel();
        // If the thread panicked, the job is dropped, and so counts as done.
        let _ = self.jobs.send(Job { unsent, done });
        // A request that the thread refuses may itself release something.
        if thread::current().id() != self.thread {
            wait(&is_done, within);
        }
    }
}

async fn send_all(mut to_do: UnboundedReceiver<Job>) {
    let mut links: HashMap<ShardId, Box<dyn LockLink>> = HashMap::new();
    while let Some(Job { unsent, done }) = to_do.recv().await {
        let mut by_shard: HashMap<ShardId, Vec<Unsent>> = HashMap::new();
        for unsent in unsent {
            let shard = unsent.at.driver.id().clone();
            by_shard.entry(shard).or_default().push(unsent);
        }
        let sending = by_shard.into_iter().map(|(shard, unsent)| {
            let link = links.remove(&shard);
            async move {
                let sent = send_to_one(link, &unsent).await;
                let sent = sent.inspect_err(|error| {
                    tracing::warn!(%shard, %error, "last releases not sent; the locks expire");
                });
                sent.ok().map(|link| (shard, link))
            }
        });
        let sent: Vec<_> = sending.collect();
        links.extend(join_all(sent).await.into_iter().flatten());
        drop(done);
    }
}

/// Sends releases to one shard.
async fn send_to_one(
    link: Option<Box<dyn LockLink>>,
    unsent: &[Unsent],
) -> Result<Box<dyn LockLink>, ShardError> {
    let driver = &unsent[0].at.driver;
    let mut link = match link {
        Some(link) => link,
        None => {
            // Not before all of these have ended: a late acquisition or renewal would put a record
            // back.
            let ending = driver.take_over().into_iter();
            let ending = ending.map(|(lane, last)| driver.shard().connect_locks(lane, Some(last)));
            match try_join_all(ending).await?.pop() {
                Some(link) => link,
                None => driver.shard().connect_locks(LockLane::Work, None).await?,
            }
        }
    };
    let requests = unsent
        .iter()
        .map(|Unsent { lease, at, .. }| request(lease, at).into());
    let requests: Vec<Request> = requests.collect();
    for batch in requests.chunks(BATCH_MAX) {
        let around = &unsent[0].at.around;
        if !around.view.is_believed(around.clock.now()) || !driver.counts(link.life()) {
            return Err(ShardError::Unarmed);
        }
        link.call(batch).await?;
    }
    Ok(link)
}
