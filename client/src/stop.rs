//! An orderly stop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::Client;

impl Client {
    /// Does `work` until it ends, or until this process gets SIGINT or SIGTERM, and [closes](Self::close) the client: others
    /// get the locks of `work` at once, and not after their leases. Returns the result of `work`; none: a signal came, and
    /// `work` was dropped, with its guards.
    ///
    /// Neither signal ends the process any more: return from `main` then. What `work` has spawned ends when its handle is
    /// dropped, as that of a `JoinSet` is, or with the runtime.
    ///
    /// # Errors
    ///
    /// The system refuses to handle the signals. `work` was not begun.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`, and leaves the client open.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn lead(_: ringfence_client::Token) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = ringfence_client::Client::builder().embedded(3).build().await?;
    /// let work = async {
    ///     let guard = client.lock("scheduler").acquire().await?;
    ///     guard.run_while_held(lead(guard.token())).await?;
    ///     Ok::<_, ringfence_client::Error>(())
    /// };
    /// match client.until_signal(work).await? {
    ///     Some(ended) => ended?,
    ///     None => println!("stopped by a signal"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn until_signal<Work: IntoFuture>(
        &self,
        work: Work,
    ) -> io::Result<Option<Work::Output>> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let ended = tokio::select! {
            biased;
            _ = interrupt.recv() => None,
            _ = terminate.recv() => None,
            ended = work.into_future() => Some(ended),
        };
        // What did not end was dropped by now.
        self.close().await;
        Ok(ended)
    }
}
