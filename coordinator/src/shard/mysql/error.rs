//! What a server's errors mean.

use mysql_async::Error;

use crate::shard::{ShardError, docs::sql::SCHEMA_VERSION};

/// The meaning of an error that a statement called `what` met.
pub(super) fn classify(what: &'static str, address: &str, error: &Error) -> ShardError {
    let Error::Server(server) = error else {
        return ShardError::NoReply {
            reason: format!("{address}: {error}"),
        };
    };
    let said = format!("{address}: {}", server.message);
    match server.code {
        // No such table, procedure or function.
        1146 | 1305 => ShardError::Unusable {
            reason: format!(
                "{said}: it lacks the tables, or the procedures of version {SCHEMA_VERSION}; as their owner, run: \
                 ringfence schema mysql | mariadb"
            ),
        },
        // Wrong password, no such database, no right; names that are too long; what a procedure refuses; TLS is required.
        1044 | 1045 | 1049 | 1142 | 1227 | 1370 | 1698 | 1059 | 1644 | 3159 => {
            ShardError::Unusable { reason: said }
        }
        // Read only.
        1290 | 1792 | 1836 => ShardError::Unreachable {
            reason: format!("{said} (a replica)"),
        },
        // Too many connections.
        1040 | 1203 | 1226 => ShardError::Unreachable {
            reason: format!("{said} (raise its max_connections, or the limit of the user)"),
        },
        // No room.
        1021 | 1041 | 1114 => ShardError::Unreachable { reason: said },
        // It ends, or was not waited for any longer.
        1053 | 1317 | 1927 | 1969 => ShardError::NoReply { reason: said },
        _ => ShardError::Refused { what, reason: said },
    }
}

/// Whether a request was undone because others were first: a deadlock, or a lock that was not given in time.
pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Server(server) if matches!(server.code, 1205 | 1213))
}
