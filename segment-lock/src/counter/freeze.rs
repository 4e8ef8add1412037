//! The freezes of a call. The call ends them in each case: after an error, and when it is dropped.

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
    /// The layout whose segments may be frozen.
    manifest: Option<Arc<Manifest>>,
}

impl<'a> Freezes<'a> {
    /// No freeze yet.
    pub(super) fn of(counter: &'a Counter, caller: Caller) -> Self {
        Self {
            counter,
            caller,
            manifest: None,
        }
    }

    /// Reads every segment and freezes it.
    pub(super) async fn freeze_all(
        &mut self,
        manifest: &Arc<Manifest>,
    ) -> Result<BalanceReads, CounterError> {
        self.manifest = Some(Arc::clone(manifest));
        self.counter.freeze_all(manifest, self.caller).await
    }

    /// Ends the freezes, if there may be any.
    pub(super) async fn end(&mut self) {
        if let Some(manifest) = self.manifest.clone() {
            // Boxed because it is rare: most calls freeze nothing.
            Box::pin(self.counter.thaw(&manifest, self.caller)).await;
            self.manifest = None;
        }
    }
}

impl Drop for Freezes<'_> {
    /// Outside a runtime nothing can be sent: then the freezes expire.
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
    /// Ends the freezes of a call. Without this request they expire.
    async fn thaw(&self, manifest: &Manifest, caller: Caller) {
        let thaws = (0..manifest.segments()).map(|index| (index, Request::Thaw(Thaw { caller })));
        // An unanswered request does no harm.
        let _ = self.ask_all(manifest, thaws).await;
    }
}
