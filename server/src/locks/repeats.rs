//! Acquisitions that have a nonce of their caller: a repeat of the request gets the lock that the first one got.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use parking_lot::Mutex;
use prost::Message;
use ringfence_api::{Error, v1::AcquireRequest};
use ringfence_client::DetachedLease;

/// The longest nonce, in bytes.
const NONCE_MAX: usize = 64;

/// A principal, and its request without the wait.
type Name = (Option<String>, Vec<u8>);

/// The acquisitions that are under way or hold a lock.
#[derive(Default)]
pub(super) struct Repeats(Mutex<HashMap<Name, Weak<Acquisition>>>);

/// One acquisition, which a request and its repeats have together. It ends with the last of them, or with its lock.
pub(super) struct Acquisition {
    name: Name,
    all: Arc<Repeats>,
    /// Locked by the request that acquires it.
    pub(super) granted: tokio::sync::Mutex<Option<Arc<DetachedLease>>>,
}

impl Repeats {
    /// The acquisition of `ask`. None: it has no nonce.
    pub(super) fn of(
        self: &Arc<Self>,
        caller: Option<&str>,
        ask: &AcquireRequest,
    ) -> Result<Option<Arc<Acquisition>>, Error> {
        let length = ask.nonce.len();
        if length > NONCE_MAX {
            let (value, limit) = (
                format!("{length} bytes"),
                format!("at most {NONCE_MAX} bytes"),
            );
            return Err(Error::invalid("nonce", value, limit));
        }
        if length == 0 {
            return Ok(None);
        }
        let terms = AcquireRequest {
            wait: None,
            ..ask.clone()
        };
        let name = (caller.map(str::to_owned), terms.encode_to_vec());
        let mut all = self.0.lock();
        if let Some(first) = all.get(&name).and_then(Weak::upgrade) {
            return Ok(Some(first));
        }
        let acquisition = Arc::new(Acquisition {
            name: name.clone(),
            all: self.clone(),
            granted: tokio::sync::Mutex::default(),
        });
        all.insert(name, Arc::downgrade(&acquisition));
        Ok(Some(acquisition))
    }
}

impl Drop for Acquisition {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        // A repeat that came meanwhile has begun another one.
        if all
            .get(&self.name)
            .is_some_and(|its| its.strong_count() == 0)
        {
            all.remove(&self.name);
        }
    }
}
