//! Whether a caller may make a call now.

use std::{sync::Arc, time::Duration};

use ringfence_api::{Error, Reason};
use ringfence_client::Clock;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};
use tonic::Request;

use super::{Roles, Scope, audit, rate::Rate};
use crate::{
    bounds::Kind,
    connections::{Numbers, Places},
    fields::namespace,
};

/// A call that finds no place on its connection may be repeated after this time.
pub(crate) const PLACE_AFTER: Duration = Duration::from_millis(50);

/// Calls of one caller at a time, over all its connections, by their kind.
const KEEPING_MAX: usize = 4096;
const WITH_LONG_ANSWERS_MAX: usize = 64;
const OTHERS_MAX: usize = 16_384;

/// Pages of one caller's lists that are read at a time. A shard reads a page at a stretch: others wait for as long.
const PAGES_MAX: usize = 2;

/// Locks of one caller that this coordinator holds, or that it waits for.
const LOCKS_MAX: usize = 65_536;

/// Asks of one caller that its sessions have received, and not looked at yet. Each takes up to fifty times its length.
const ASKS_MAX: usize = 131_072;

/// The caller of a request.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Its name in the settings; none: callers need no identity.
    name: Option<String>,
    roles: Roles,
    rate: Rate,
    /// Of its calls for locks that are over.
    over: Rate,
    /// None: no limit.
    new_accounts: Option<Rate>,
    keeping: Arc<Semaphore>,
    with_long_answers: Arc<Semaphore>,
    others: Arc<Semaphore>,
    pages: Semaphore,
    locks: Arc<Semaphore>,
    asks: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    pub(crate) numbers: Numbers,
}

/// A call that needs a role.
#[derive(Clone, Debug)]
pub(crate) enum Call<'a> {
    /// Acquires the lock with this key.
    Acquire(&'a str, &'a [u8]),
    /// Changes the account of this name.
    Change(&'a str, &'a [u8]),
    /// The same, and may make it.
    Create(&'a str, &'a [u8]),
    /// Moves money from this account to the others.
    Transfer(&'a str, &'a [u8], Vec<&'a [u8]>),
    /// Opens a session, or asks for many calls at once: any role will do. Clients learn the longest lease by a session, and
    /// each of the calls is let pass, or not, by itself.
    Session,
    /// Reads the state of the lock or the account.
    Read(&'a str, &'a [u8]),
    /// Lists the locks of a namespace, or of all.
    List(Option<&'a str>),
    /// Takes the lock from its holder.
    ForceRelease(&'a str, &'a [u8]),
    /// Sees or changes the topology.
    Admin,
}

/// A call that was let pass. It has its place on the connection until this value is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Admitted {
    _place: Option<OwnedSemaphorePermit>,
}

impl Caller {
    pub(crate) fn new(
        name: Option<String>,
        roles: Roles,
        per_second: u32,
        clock: Arc<dyn Clock>,
        numbers: Numbers,
    ) -> Self {
        Self::with(name, roles, Rate::new(per_second), (clock, numbers))
    }

    fn with(
        name: Option<String>,
        roles: Roles,
        rate: Rate,
        (clock, numbers): (Arc<dyn Clock>, Numbers),
    ) -> Self {
        let places = |max| Arc::new(Semaphore::new(max));
        Self {
            name,
            roles,
            over: rate.anew(),
            rate,
            new_accounts: None,
            keeping: places(KEEPING_MAX),
            with_long_answers: places(WITH_LONG_ANSWERS_MAX),
            others: places(OTHERS_MAX),
            pages: Semaphore::new(PAGES_MAX),
            locks: places(LOCKS_MAX),
            asks: places(ASKS_MAX),
            clock,
            numbers,
        }
    }

    /// The same caller, who creates at most so many accounts.
    pub(super) fn with_accounts_per_hour(self, accounts: Option<u32>) -> Self {
        let hour = Duration::from_secs(3600);
        Self {
            new_accounts: accounts.map(|accounts| Rate::per(hour, accounts)),
            ..self
        }
    }

    /// The same caller, whose calls are counted apart.
    pub(crate) fn with_own_rate(&self) -> Self {
        let (name, roles) = (self.name.clone(), self.roles.clone());
        let (clock, numbers) = (self.clock.clone(), self.numbers.clone());
        Self::with(name, roles, self.rate.anew(), (clock, numbers))
    }

    /// Its name in the settings; none: callers need no identity.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Lets `call` pass, if the caller is within its rate, and has the role. A call without the role counts, too.
    pub(crate) fn admit(&self, call: Call<'_>) -> Result<(), Error> {
        self.count(1)?;
        if !self.allows(&call) {
            let name = self.name.as_deref().unwrap_or_default();
            return Err(Error::new(Reason::NotAllowed, refusal(name, &call)));
        }
        match (&call, &self.new_accounts) {
            (Call::Create(..), Some(rate)) => rate.count(1, self.clock.now()).map_err(|wait| {
                let name = self.name.as_deref().unwrap_or_default();
                let message = format!("more accounts than principals.{name}.accounts_per_hour");
                self.limited("accounts_per_hour", &message, wait)
            }),
            _ => Ok(()),
        }
    }

    /// Counts `calls`, if the caller is within its rate.
    pub(crate) fn count(&self, calls: u32) -> Result<(), Error> {
        let counted = self.rate.count(calls, self.clock.now());
        counted.map_err(|wait| self.limited("rate", "more calls per second than limits.rate", wait))
    }

    /// Runs `read`, which reads a page, once the caller is within its rate, and its other pages leave room. It counts as a call.
    pub(crate) async fn page<T>(&self, read: impl Future<Output = T>) -> T {
        let _turn = self.pages.acquire().await;
        while let Err(wait) = self.rate.count(1, self.clock.now()) {
            sleep(wait).await;
        }
        read.await
    }

    /// Lets a call pass that asks a shard about a lock that this coordinator does not hold. Those of locks that another one
    /// holds are free; those of locks that are over have `limits.rate` for themselves.
    pub(crate) fn may_ask(&self) -> Result<(), Error> {
        let within = self.over.count(0, self.clock.now());
        within.map_err(|wait| {
            let message = "more calls per second for locks that are over than limits.rate";
            self.limited("rate", message, wait)
        })
    }

    /// Counts a call for a lock that is over.
    pub(crate) fn asked_in_vain(&self) {
        // Calls that were under way at the same time may be too many.
        let _ = self.over.count(1, self.clock.now());
    }

    /// A place for a call.
    pub(super) fn place(&self, kind: Kind) -> Result<OwnedSemaphorePermit, Error> {
        let (places, max) = match kind {
            Kind::KeepsLock => (&self.keeping, KEEPING_MAX),
            Kind::HasLongAnswer => (&self.with_long_answers, WITH_LONG_ANSWERS_MAX),
            Kind::Other => (&self.others, OTHERS_MAX),
        };
        places.clone().try_acquire_owned().map_err(|_| {
            let message = format!(
                "more calls of this kind at a time than {max}, as many as a caller may make"
            );
            self.limited("calls", &message, PLACE_AFTER)
        })
    }

    /// Room for a lock.
    pub(crate) fn room(&self) -> Result<OwnedSemaphorePermit, Error> {
        let room = self.locks.clone().try_acquire_owned();
        room.map_err(|_| {
            self.numbers.refused("locks");
            let message = format!(
                "the caller holds or waits for {LOCKS_MAX} locks, as many as it may at one coordinator"
            );
            Error {
                is_retryable: true,
                ..Error::new(Reason::TooManyHeld, message)
            }
        })
    }

    /// Room for `count` asks of a session.
    pub(crate) fn room_for_asks(&self, count: usize) -> Result<OwnedSemaphorePermit, Error> {
        // 64 KiB are the longest message.
        let room = self.asks.clone().try_acquire_many_owned(count as u32);
        room.map_err(|_| {
            let message = format!(
                "more than {ASKS_MAX} asks of the caller wait in sessions whose answers are not read"
            );
            self.limited("asks", &message, PLACE_AFTER)
        })
    }

    /// The refusal of a call for `limit`.
    fn limited(&self, limit: &'static str, message: &str, retry_after: Duration) -> Error {
        self.numbers.refused(limit);
        limited(message, retry_after)
    }

    fn allows(&self, call: &Call<'_>) -> bool {
        let Roles {
            acquire,
            change,
            receive,
            read,
            force_release,
            admin,
        } = &self.roles;
        let has = |scopes: &[Scope], of, key| {
            let of = namespace(of);
            scopes.iter().any(|scope| scope.has(of, key))
        };
        match *call {
            Call::Acquire(of, key) => has(acquire, of, key),
            Call::Change(of, name) | Call::Create(of, name) => has(change, of, name),
            Call::Transfer(of, from, ref to) => {
                let receives = |to| has(receive, of, to) || has(change, of, to);
                has(change, of, from) && to.iter().copied().all(receives)
            }
            Call::Session => {
                let scopes = [acquire, change, receive, read, force_release];
                *admin || scopes.iter().any(|scopes| !scopes.is_empty())
            }
            Call::Read(of, key) => has(read, of, key),
            Call::List(of) => read.iter().any(|scope| scope.has_all_of(of)),
            Call::ForceRelease(of, key) => has(force_release, of, key),
            Call::Admin => *admin,
        }
    }
}

/// Lets `call` pass, if the caller of `request` is within its rate, has the role, and has a place on
/// its connection.
///
/// Renewals and releases are not admitted: they need no role but the handle, and no place on the connection. So a caller whose
/// calls are refused keeps its locks.
pub(crate) fn admit<T>(request: &Request<T>, call: Call<'_>) -> Result<Admitted, Error> {
    let caller = admit_within(request, call)?;
    place(request).inspect_err(|_| caller.numbers.refused("streams"))
}

/// As [`admit`], for one of several calls that `request` stands for: it takes no place. Returns the caller.
pub(crate) fn admit_within<'a, T>(
    request: &'a Request<T>,
    call: Call<'_>,
) -> Result<&'a Arc<Caller>, Error> {
    let caller = caller_of(request)?;
    caller.admit(call).inspect_err(|error| {
        if error.reason == Reason::NotAllowed {
            audit::refused(caller.name(), request.extensions().get(), error);
        }
    })?;
    Ok(caller)
}

/// Gives `request` a place on its connection.
fn place<T>(request: &Request<T>) -> Result<Admitted, Error> {
    let places = request.extensions().get::<Places>();
    let place = places.map(|places| places.calls.clone().try_acquire_owned());
    let place = place.transpose().map_err(|_| {
        let message = "more calls at a time on the connection than limits.streams";
        limited(message, PLACE_AFTER)
    })?;
    Ok(Admitted { _place: place })
}

/// The refusal of a call that comes too early, or of too many.
pub(crate) fn limited(message: &str, retry_after: Duration) -> Error {
    Error {
        is_retryable: true,
        retry_after: Some(retry_after),
        ..Error::new(Reason::RateLimited, message)
    }
}

/// The caller of `request`.
pub(crate) fn caller_of<T>(request: &Request<T>) -> Result<&Arc<Caller>, Error> {
    let caller = request.extensions().get::<Arc<Caller>>();
    caller.ok_or_else(|| Error::new(Reason::Internal, "the call has no caller"))
}

/// Without the key: it may be a secret of others.
fn refusal(name: &str, call: &Call<'_>) -> String {
    let (role, what) = match call {
        Call::Acquire(..) => ("acquire", "the key"),
        Call::Change(..) | Call::Create(..) => ("change", "the account"),
        Call::Transfer(..) => {
            return format!(
                "principals.{name}.change does not include the payer, or neither receive nor change includes the payee"
            );
        }
        Call::Session => return format!("principals.{name} has no role"),
        Call::Read(..) => ("read", "the key"),
        Call::List(Some(_)) => ("read", "the whole namespace"),
        Call::List(None) => ("read", "all namespaces"),
        Call::ForceRelease(..) => ("force_release", "the key"),
        Call::Admin => return format!("the call needs principals.{name}.admin = true"),
    };
    format!("principals.{name}.{role} does not include {what}")
}

#[cfg(test)]
mod tests {
    use ringfence_client::BootClock;

    use super::*;

    #[test]
    fn a_caller_has_bounds_of_its_own() {
        let caller = Caller::new(
            None,
            Roles::all(),
            10,
            Arc::new(BootClock),
            Numbers::default(),
        );
        let other = caller.with_own_rate();
        let rooms: Vec<_> = (0..LOCKS_MAX).map(|_| caller.room().unwrap()).collect();
        let full = caller.room().unwrap_err();
        assert!(full.reason == Reason::TooManyHeld && full.is_retryable);
        let place = |kind| caller.place(kind).unwrap();
        let lists: Vec<_> = (0..WITH_LONG_ANSWERS_MAX)
            .map(|_| place(Kind::HasLongAnswer))
            .collect();
        let calls: Vec<_> = (0..OTHERS_MAX).map(|_| place(Kind::Other)).collect();
        for kind in [Kind::HasLongAnswer, Kind::Other] {
            let full = caller.place(kind).unwrap_err();
            assert!(full.reason == Reason::RateLimited && full.is_retryable);
        }
        // Its locks are kept.
        drop(place(Kind::KeepsLock));
        let asks = caller.room_for_asks(ASKS_MAX).unwrap();
        let full = caller.room_for_asks(1).unwrap_err();
        assert!(full.reason == Reason::RateLimited && full.is_retryable);
        drop(asks);
        drop(caller.room_for_asks(1).unwrap());
        drop((other.room().unwrap(), other.place(Kind::Other).unwrap()));
        drop((rooms, lists, calls));
        drop((caller.room().unwrap(), place(Kind::Other)));
    }
}
