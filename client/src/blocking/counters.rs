//! Counters of callers without tokio.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ringfence_segment_lock::{
    Account, Amount, Balance, Changed, CounterError, Ended, Found, Inspection, Referenced,
    RequestId, Reserved, Swept, Terms,
};

use super::reactor::Reactor;

/// The counters of a namespace: [`Counters`](crate::Counters). Made by [`Client::counters`](super::Client::counters). Cheap
/// to clone.
#[derive(Clone, Debug)]
pub struct Counters {
    // Dropped first: it may be the last handle of its client.
    counters: crate::Counters,
    reactor: Arc<Reactor>,
}

/// One account: [`Counter`](crate::Counter). Made by [`Counters`].
///
/// # Errors
///
/// Those of the asynchronous calls. [`CounterError::effect`] has for each error whether the request may have been applied.
#[derive(Debug)]
pub struct Counter {
    // Dropped first: it may be the last handle of its client.
    counter: crate::Counter,
    reactor: Arc<Reactor>,
}

impl Counters {
    pub(super) fn new(counters: crate::Counters, reactor: &Arc<Reactor>) -> Self {
        let reactor = reactor.clone();
        Self { counters, reactor }
    }

    /// Creates an account of `segments` segments, or finds it: [`Counters::create`](crate::Counters::create).
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call.
    pub fn create(
        &self,
        account: &str,
        terms: Terms,
        segments: u32,
    ) -> Result<Counter, CounterError> {
        let create = self.counters.create(account, terms, segments);
        Ok(self.counter(self.reactor.wait(create)?))
    }

    /// Opens an account. Its existence is checked by its first use.
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    pub fn open(&self, account: &str) -> Result<Counter, CounterError> {
        Ok(self.counter(self.counters.open(account)?))
    }

    /// The id of a new request, created now: [`Counters::request`](crate::Counters::request).
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    pub fn request(&self, name: &str) -> Result<RequestId, CounterError> {
        self.counters.request(name)
    }

    /// The id of a new request, created now, with a unique name.
    pub fn new_request(&self) -> RequestId {
        self.counters.new_request()
    }

    /// A deadline for a reservation, `length` from now, in ms since 1970.
    pub fn deadline_in(&self, length: Duration) -> u64 {
        self.counters.deadline_in(length)
    }

    fn counter(&self, counter: crate::Counter) -> Counter {
        let reactor = self.reactor.clone();
        Counter { counter, reactor }
    }
}

/// Methods that wait for the asynchronous ones.
macro_rules! calls {
    ($($method:ident$(<$of:lifetime>)?($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl Counter {
            $(
                #[doc = concat!("[`Counter::", stringify!($method), "`](crate::Counter::", stringify!($method), ").")]
                ///
                /// # Errors
                ///
                /// Those of the asynchronous call.
                pub fn $method$(<$of>)?(&self $(, $argument: $type)*) -> Result<$result, CounterError> {
                    self.reactor.wait(self.counter.$method($($argument),*))
                }
            )*
        }
    };
}

calls! {
    deposit<'r>(request: impl Into<Referenced<'r>>, amount: Amount) -> Changed;
    deduct<'r>(request: impl Into<Referenced<'r>>, amount: Amount) -> Changed;
    reserve<'r>(request: impl Into<Referenced<'r>>, amount: Amount, deadline_ms: u64) -> Changed<Reserved>;
    confirm(id: &RequestId) -> Changed<Ended>;
    cancel(id: &RequestId) -> Changed<Ended>;
    find(id: &RequestId) -> Found;
    balance() -> Balance;
    exact_balance() -> Balance;
    segments() -> u32;
    inspect() -> Inspection;
    resegment(segments: u32) -> ();
    label(labels: &BTreeMap<String, Option<String>>) -> ();
    close() -> ();
    delete() -> ();
    sweep() -> Swept;
    accept() -> Inspection;
    accept_now() -> (Inspection, Duration);
}

impl Counter {
    /// Its name.
    pub fn account(&self) -> &Account {
        self.counter.account()
    }

    /// Moves `amount` to another account of the same namespace, once: [`Counter::transfer`](crate::Counter::transfer).
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call.
    pub fn transfer<'r>(
        &self,
        request: impl Into<Referenced<'r>>,
        amount: Amount,
        to: &Self,
    ) -> Result<Changed, CounterError> {
        self.reactor
            .wait(self.counter.transfer(request, amount, &to.counter))
    }
}
