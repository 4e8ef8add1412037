//! What each failure of a server means: one table.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::shard::ShardError;

/// What `error`, met by a request that was sent, means for it and for its connection.
///
/// | the server says | the request | next |
/// |---|---|---|
/// | NOSCRIPT, READONLY, MASTERDOWN | not applied | shake hands |
/// | LOADING, BUSY, TRYAGAIN, CLUSTERDOWN | not applied | back off |
/// | NOPERM, NOAUTH, WRONGPASS | not applied | a person mends it |
/// | nothing: time-out, reset, closed | unknown | shake hands, repeat |
/// | anything else | unknown | report |
pub(crate) fn classify(what: &'static str, error: &RedisError) -> ShardError {
    let reason = error.to_string();
    match error.kind() {
        ErrorKind::Server(kind) => match kind {
            ServerErrorKind::NoScript | ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown => {
                ShardError::Unarmed
            }
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown => ShardError::Unreachable { reason },
            ServerErrorKind::NoPerm => ShardError::Unusable {
                reason: format!("{reason} (the README lists the ACL rights that are needed)"),
            },
            _ => by_code(what, error),
        },
        ErrorKind::AuthenticationFailed => ShardError::Unusable { reason },
        ErrorKind::Io => ShardError::NoReply { reason },
        _ => ShardError::Refused { what, reason },
    }
}

fn by_code(what: &'static str, error: &RedisError) -> ShardError {
    let reason = error.to_string();
    match error.code() {
        Some("BUSY") => ShardError::Unreachable { reason },
        Some("NOAUTH" | "WRONGPASS") => ShardError::Unusable { reason },
        _ => ShardError::Refused { what, reason },
    }
}

/// Whether the server refused a script for want of memory, before its first write.
pub(super) fn is_out_of_memory(error: &RedisError) -> bool {
    error.code() == Some("OOM")
}
