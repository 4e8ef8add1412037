//! Open accounts: an account in use does not read its manifest again with every call.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use ringfence_api::{Error, v1::Account};
use ringfence_client::{Client, Counter, Counters};

use crate::{errors, fields::namespace};

/// Accounts that stay open. When one more is opened, all are closed.
const OPEN_MAX: usize = 16_384;

/// The accounts of a client.
pub(super) struct Accounts {
    client: Client,
    /// By namespace and name.
    open: Mutex<HashMap<(String, String), Arc<Counter>>>,
}

impl Accounts {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            open: Mutex::default(),
        }
    }

    /// The counters in the namespace of `account`.
    pub(super) fn namespace(&self, account: &Account) -> Result<Counters, Error> {
        let counters = self.client.counters_of(namespace(&account.namespace));
        counters.map_err(|error| errors::name(&error))
    }

    /// The account of a request.
    pub(super) fn open(&self, account: Option<Account>) -> Result<Arc<Counter>, Error> {
        let account = account.unwrap_or_default();
        let place = (
            namespace(&account.namespace).to_owned(),
            account.name.clone(),
        );
        if let Some(counter) = self.open.lock().get(&place) {
            return Ok(counter.clone());
        }
        let opened = self.namespace(&account)?.open(&account.name);
        let counter = Arc::new(opened.map_err(|error| errors::counter(&error))?);
        let mut open = self.open.lock();
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        open.insert(place, counter.clone());
        Ok(counter)
    }
}
