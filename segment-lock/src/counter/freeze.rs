//! What a call has frozen. It thaws on every way out: also with an error, or when the call is dropped.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{Counter, CounterError, balance_reads::BalanceReads};
use crate::{
    Caller, Head,
    segment::{Request, Thaw},
};

/// The freezes of one call.
pub(super) struct Freezes<'a> {
    counter: &'a Counter,
    caller: Caller,
    /// The layout of what may be frozen.
    head: Option<Arc<Head>>,
}

impl<'a> Freezes<'a> {
    /// None yet.
    pub(super) fn of(counter: &'a Counter, caller: Caller) -> Self {
        Self {
            counter,
            caller,
            head: None,
        }
    }

    /// A read of every segment, freezing each.
    pub(super) async fn freeze_all(
        &mut self,
        head: &Arc<Head>,
    ) -> Result<BalanceReads, CounterError> {
        self.head = Some(Arc::clone(head));
        self.counter.freeze_all(head, self.caller).await
    }

    /// Thaws, if anything may be frozen.
    pub(super) async fn end(&mut self) {
        if let Some(head) = self.head.clone() {
            // Seldom: a call that freezes nothing needs no room for it.
            Box::pin(self.counter.thaw(&head, self.caller)).await;
            self.head = None;
        }
    }
}

impl Drop for Freezes<'_> {
    /// Outside a runtime nothing can be sent: freezes then end by themselves.
    fn drop(&mut self) {
        if let Some(head) = self.head.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let Counter {
                storage, account, ..
            } = self.counter;
            let counter = Counter::open(storage.clone(), account.clone());
            let caller = self.caller;
            runtime.spawn(async move { counter.thaw(&head, caller).await });
        }
    }
}

impl Counter {
    /// Ends the freezes of a call. They end by themselves as well.
    async fn thaw(&self, head: &Head, caller: Caller) {
        let thaws = (0..head.segments()).map(|index| (index, Request::Thaw(Thaw { caller })));
        // Nothing relies on it.
        let _ = self.ask_all(head, thaws).await;
    }
}
