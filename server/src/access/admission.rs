//! Whether a caller may make a call now.

use std::{sync::Arc, time::Duration};

use ringfence_api::{Error, Reason};
use ringfence_client::Clock;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Request;

use super::{Roles, Scope, audit, rate::Rate};
use crate::{
    connections::{Numbers, Places},
    fields::namespace,
};

/// A call that finds no place on its connection may be repeated after this time.
const PLACE_AFTER: Duration = Duration::from_millis(50);

/// The caller of a request.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Its name in the settings; none: callers need no identity.
    name: Option<String>,
    roles: Roles,
    rate: Rate,
    /// None: no limit.
    new_accounts: Option<Rate>,
    clock: Arc<dyn Clock>,
    pub(crate) numbers: Numbers,
}

/// A call that needs a role.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call<'a> {
    /// Acquires the lock with this key.
    Acquire(&'a str, &'a [u8]),
    /// Changes the account of this name.
    Change(&'a str, &'a [u8]),
    /// The same, and may make it.
    Create(&'a str, &'a [u8]),
    /// Moves money from the first of these accounts to the second.
    Transfer(&'a str, [&'a [u8]; 2]),
    /// Opens a session: any role will do, because clients learn the longest lease by one.
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
        Self {
            name,
            roles,
            rate: Rate::new(per_second),
            new_accounts: None,
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
        Self {
            name: self.name.clone(),
            roles: self.roles.clone(),
            rate: self.rate.anew(),
            new_accounts: None,
            clock: self.clock.clone(),
            numbers: self.numbers.clone(),
        }
    }

    /// Its name in the settings; none: callers need no identity.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Lets `call` pass, if the caller is within its rate, and has the role. A call without the role counts, too.
    pub(crate) fn admit(&self, call: Call<'_>) -> Result<(), Error> {
        let counted = self.rate.count(self.clock.now());
        counted.map_err(|wait| {
            self.numbers.refused("rate");
            limited("more calls per second than limits.rate", wait)
        })?;
        if !self.allows(call) {
            let name = self.name.as_deref().unwrap_or_default();
            return Err(Error::new(Reason::NotAllowed, refusal(name, call)));
        }
        match (call, &self.new_accounts) {
            (Call::Create(..), Some(rate)) => rate.count(self.clock.now()).map_err(|wait| {
                let name = self.name.as_deref().unwrap_or_default();
                let limit = format!("more accounts than principals.{name}.accounts_per_hour");
                limited(&limit, wait)
            }),
            _ => Ok(()),
        }
    }

    fn allows(&self, call: Call<'_>) -> bool {
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
        match call {
            Call::Acquire(of, key) => has(acquire, of, key),
            Call::Change(of, name) | Call::Create(of, name) => has(change, of, name),
            Call::Transfer(of, [from, to]) => {
                has(change, of, from) && (has(receive, of, to) || has(change, of, to))
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
/// Renewals and releases are not admitted: they need no role but the handle, and no place. So a
/// caller whose calls are refused keeps its locks.
pub(crate) fn admit<T>(request: &Request<T>, call: Call<'_>) -> Result<Admitted, Error> {
    let caller = caller_of(request)?;
    caller.admit(call).inspect_err(|error| {
        if error.reason == Reason::NotAllowed {
            audit::refused(caller.name(), request.extensions().get(), error);
        }
    })?;
    place(request).inspect_err(|_| caller.numbers.refused("streams"))
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

fn limited(message: &str, retry_after: Duration) -> Error {
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
fn refusal(name: &str, call: Call<'_>) -> String {
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
