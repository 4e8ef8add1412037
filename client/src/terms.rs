//! The terms on which a lock, or a set of locks, is wanted.

use std::time::Duration;

use ringfence_coordinator::{
    engine::{Acquire, Owner, Wait, WaitObserver},
    name::{Label, NameError, Namespace},
};

/// The terms of an acquisition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    /// None: the default namespace.
    pub(crate) namespace: Option<Result<Namespace, NameError>>,
    pub(crate) lease: Option<Duration>,
    pub(crate) hold_at_least: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) owner: Option<Owner>,
    pub(crate) label: Option<Label>,
    pub(crate) observer: Option<WaitObserver>,
}

impl Terms {
    /// The namespace, if its name is valid.
    pub(crate) fn namespace(&self) -> Result<&Namespace, NameError> {
        match &self.namespace {
            None => Ok(Namespace::unnamed()),
            Some(namespace) => namespace.as_ref().map_err(NameError::clone),
        }
    }

    /// The request for `key` of `namespace`.
    pub(crate) fn acquire<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a [u8],
        wait: Wait,
    ) -> Acquire<'a> {
        Acquire {
            namespace,
            key,
            lease: self.lease,
            hold_for: None,
            wait,
            preferred: false,
            tokens: 1,
            owner: self.owner.as_ref(),
            label: self.label.clone(),
            observer: self.observer.as_ref(),
        }
    }
}
