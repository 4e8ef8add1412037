//! A server that the tests that run now share: it ends with the last of them.

use std::sync::{Arc, Weak};

use tokio::sync::Mutex;

pub(crate) struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::const_new(Weak::new()))
    }

    /// The server that runs; else the one that `spawn` starts.
    pub(crate) async fn get(&self, spawn: impl AsyncFnOnce() -> T) -> Arc<T> {
        let mut shared = self.0.lock().await;
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(spawn().await);
        *shared = Arc::downgrade(&server);
        server
    }
}
