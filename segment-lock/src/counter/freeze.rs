//! What a call has frozen. It thaws on every way out: also with an error, or when the call is dropped.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{Counter, CounterError, balance_reads::BalanceReads};
use crate::{
    Caller, Manifest,
    segment::{Request, Thaw},
};

/// The freezes of one call.
pub(super) struct Freezes<'a> {
    counter: &'a Counter,
    caller: Caller,
    /// The layout of what may be frozen.
    manifest: Option<Arc<Manifest>>,
}

impl<'a> Freezes<'a> {
    /// None yet.
    pub(super) fn of(counter: &'a Counter, caller: Caller) -> Self {
        Self {
            counter,
            caller,
            manifest: None,
        }
    }

    /// A read of every segment, freezing each.
    pub(super) async fn freeze_all(
        &mut self,
        manifest: &Arc<Manifest>,
    ) -> Result<BalanceReads, CounterError> {
        self.manifest = Some(Arc::clone(manifest));
        self.counter.freeze_all(manifest, self.caller).await
    }

    /// Thaws, if anything may be frozen.
    pub(super) async fn end(&mut self) {
        if let Some(manifest) = self.manifest.clone() {
            // Seldom: a call that freezes nothing needs no room for it.
            Box::pin(self.counter.thaw(&manifest, self.caller)).await;
            self.manifest = None;
        }
    }
}

impl Drop for Freezes<'_> {
    /// Outside a runtime nothing can be sent: freezes then end by themselves.
    fn drop(&mut self) {
        if let Some(manifest) = self.manifest.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let Counter {
                storage, account, ..
            } = self.counter;
            let counter = Counter::open(storage.clone(), account.clone());
            let caller = self.caller;
            runtime.spawn(async move { counter.thaw(&manifest, caller).await });
        }
    }
}

impl Counter {
    /// Ends the freezes of a call. They end by themselves as well.
    async fn thaw(&self, manifest: &Manifest, caller: Caller) {
        let thaws = (0..manifest.segments()).map(|index| (index, Request::Thaw(Thaw { caller })));
        // Nothing relies on it.
        let _ = self.ask_all(manifest, thaws).await;
    }
}
