//! The contenders. Each acquires and releases a lock with one verb, `pair`.

mod batched;
mod plain;
mod ringfence;
mod rslock;
mod scripts;

use async_trait::async_trait;
use ringfence_client::Client;

use crate::{Failure, LEASE};

/// A way to take and give back locks.
#[async_trait]
pub(crate) trait Contender: Send + Sync {
    fn name(&self) -> &'static str;
    /// What it is, for a reader of the report.
    fn what(&self) -> &'static str;
    /// Workers that have `locks` different keys between them. Not timed.
    async fn workers(&self, locks: usize) -> Result<Vec<Box<dyn Worker>>, Failure>;
}

/// A task's work. The boxed future a turn costs is the same for everybody.
#[async_trait]
pub(crate) trait Worker: Send {
    /// How many locks a turn takes and gives back.
    fn locks(&self) -> usize;
    /// One turn: acquires and releases each of its locks once, and checks that it could.
    async fn pair(&mut self) -> Result<(), Failure>;
}

/// Everybody, on the server at `url`: new, and nobody else's.
pub(crate) async fn all(url: &str) -> Result<Vec<Box<dyn Contender>>, Failure> {
    let client = || Client::builder().redis([url]).servers_are_new(true).build();
    let (first, second) = (client().await?, client().await?);
    let shard = scripts::OneShard::of(&first)?;
    Ok(vec![
        Box::new(ringfence::Ringfence::new("ringfence", first)),
        Box::new(ringfence::Ringfence::new("ringfence-again", second)),
        Box::new(batched::Batched::new(url, shard.clone())?),
        Box::new(scripts::Scripts::pipelined(url, shard.clone()).await?),
        Box::new(scripts::Scripts::single(url, shard).await?),
        Box::new(rslock::Rslock::new(url)),
        Box::new(plain::Plain::new(url).await?),
    ])
}

/// One worker for each of `locks` keys.
fn one_each<W: Worker + 'static>(
    locks: usize,
    worker: impl Fn(usize) -> Result<W, Failure>,
) -> Result<Vec<Box<dyn Worker>>, Failure> {
    (0..locks)
        .map(|lock| Ok(Box::new(worker(lock)?) as Box<dyn Worker>))
        .collect()
}
