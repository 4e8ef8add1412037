//! Why there is no server.

use std::io;

use super::READY_WITHIN;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// Redis is not installed.
    #[error("redis-server is not on PATH: apt-get install redis-server")]
    NoRedis,
    /// What ties the server's life to this process's is not installed.
    #[error("setpriv is not on PATH: apt-get install util-linux")]
    NoSetpriv,
    /// The operating system refused something.
    #[error("cannot {what}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The server ended before it answered: a setting it refuses, or a port that was taken.
    #[error("redis-server ended at once; its log:\n{log}")]
    Ended {
        /// The end of its log.
        log: String,
    },
    /// The server runs and does not answer.
    #[error("redis-server did not answer PING within {READY_WITHIN:?}; its log:\n{log}")]
    Silent {
        /// The end of its log.
        log: String,
    },
}

pub(super) fn system(what: &'static str, source: io::Error) -> SpawnError {
    SpawnError::System { what, source }
}
