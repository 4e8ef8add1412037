//! What a server's errors mean.

use tokio_postgres::{Error, error::SqlState};

use crate::shard::{ShardError, docs::sql::SCHEMA_VERSION, tls};

/// The meaning of an error that a statement called `what` met.
pub(super) fn classify(what: &'static str, address: &str, error: &Error) -> ShardError {
    let Some(db) = error.as_db_error() else {
        return ShardError::NoReply {
            reason: format!("{address}: {error}"),
        };
    };
    let code = db.code();
    let said = format!("{address}: {}", db.message());
    let is_missing = [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INVALID_SCHEMA_NAME,
    ];
    if is_missing.contains(code) {
        return ShardError::Unusable {
            reason: format!(
                "{said}: it lacks the tables, or the functions of version {SCHEMA_VERSION}; as their owner, run: \
                 ringfence schema postgres | psql"
            ),
        };
    }
    let is_unprepared = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
    ];
    if is_unprepared.contains(code) {
        return ShardError::Unusable {
            reason: format!(
                "{said}: if that is a pooler, the URL needs `direct=host:port` of the server behind it"
            ),
        };
    }
    let is_standby = [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    ];
    let (class, shuts_down) = (&code.code()[..2], code.code().starts_with("57"));
    match class {
        _ if is_standby.contains(code) => ShardError::Unreachable {
            reason: format!("{said} (a standby)"),
        },
        // A pooler's own errors: it lost the server, or does not reach it.
        "08" => ShardError::NoReply { reason: said },
        // It ends, or was not waited for any longer.
        _ if shuts_down || *code == SqlState::LOCK_NOT_AVAILABLE => {
            ShardError::NoReply { reason: said }
        }
        _ if *code == SqlState::TOO_MANY_CONNECTIONS => ShardError::Unreachable {
            reason: format!("{said} (raise its max_connections)"),
        },
        // No room.
        "53" => ShardError::Unreachable { reason: said },
        // Wrong password, no such database, no right.
        "28" | "3D" | "42" => ShardError::Unusable { reason: said },
        // Of our own functions.
        _ if *code == SqlState::INAPPROPRIATE_ISOLATION_LEVEL_FOR_BRANCH_TRANSACTION => {
            ShardError::Unusable { reason: said }
        }
        _ => ShardError::Refused { what, reason: said },
    }
}

/// Whether a commit was undone because another one was first.
pub(super) fn is_conflict(error: &Error) -> bool {
    let conflicts = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|code| conflicts.contains(code))
}

/// Whether client and server do not agree on TLS: on a certificate, or on its use.
pub(super) fn is_refused_by_tls(error: &Error) -> bool {
    let Some(cause) = std::error::Error::source(error) else {
        return false;
    };
    let by_tls = cause.downcast_ref().is_some_and(tls::is_refusal);
    // The client library has no kind of error for it.
    by_tls || cause.to_string() == "server does not support TLS"
}
