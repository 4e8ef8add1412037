//! The meaning of each failure of a server, in one table.

use redis::{ErrorKind, RedisError};

use super::diagnosis;
use crate::shard::ShardError;

/// The meaning of `error`, the answer to a request that was sent, for the request and its connection.
///
/// | the server says | applied? | again? | next |
/// |---|---|---|---|
/// | no such function or script, READONLY, MASTERDOWN | no | yes | shake hands: it may be in another life |
/// | LOADING, BUSY, NOREPLICAS, MISCONF | no | yes | wait: the connection still works |
/// | NOPERM, NOAUTH, WRONGPASS, OOM, no such command | no | no | an operator must mend it |
/// | nothing: time-out, reset, cut off | unknown | yes | shake hands, which ends the former connection |
/// | anything else | unknown | no | report it |
///
/// A script is refused for all of these before its first line. That holds for one call: in a batch of several calls,
/// another may have been applied. An acquire that meets OOM gets the answer
/// [`OutOfMemory`](crate::shard::Reply::OutOfMemory).
pub(crate) fn classify(what: &'static str, error: &RedisError) -> ShardError {
    let reason = error.to_string();
    if let Some(command) = unknown_command(&reason) {
        let reason = diagnosis::lacks(command);
        return ShardError::Unusable { reason };
    }
    match (error.kind(), code(error)) {
        (_, Some("READONLY" | "MASTERDOWN")) => ShardError::Unarmed,
        _ if is_script_missing(error) => ShardError::Unarmed,
        (_, Some("LOADING" | "BUSY" | "NOREPLICAS" | "MISCONF")) => {
            ShardError::Unreachable { reason }
        }
        (_, Some("NOPERM")) => ShardError::Unusable {
            reason: format!(
                "{reason} (docs/operate/servers.md lists the ACL rights that are needed)"
            ),
        },
        (_, Some("OOM")) => ShardError::Unusable {
            reason: format!("{reason} (raise its maxmemory)"),
        },
        (_, Some("NOAUTH" | "WRONGPASS")) | (ErrorKind::AuthenticationFailed, _) => {
            ShardError::Unusable { reason }
        }
        (ErrorKind::Io | ErrorKind::Parse, _) => ShardError::NoReply { reason },
        _ => ShardError::Refused { what, reason },
    }
}

/// The command that the server does not know, by its error, which quotes it in one way or another.
fn unknown_command(error: &str) -> Option<&str> {
    let (_, rest) = error.split_once("unknown command ")?;
    let rest = rest.strip_prefix(['\'', '`'])?;
    rest.split(['\'', '`', ' ', ',']).next()
}

/// The code of an error; if a script met it at its first write, before Redis 7, the code of that.
fn code(error: &RedisError) -> Option<&str> {
    const OF_WRITES: [&str; 4] = ["OOM", "READONLY", "NOREPLICAS", "MISCONF"];
    let of_write = || {
        let detail = error.detail()?;
        let detail = detail.strip_prefix("Error running script")?;
        OF_WRITES.into_iter().find(|code| {
            detail.contains(&format!(" {code} ")) || detail.contains(&format!("-{code} "))
        })
    };
    match error.code() {
        Some("ERR") => of_write().or(Some("ERR")),
        code => code,
    }
}

/// Whether the server refused a script for lack of memory, before its first write.
pub(super) fn is_out_of_memory(error: &RedisError) -> bool {
    code(error) == Some("OOM")
}

/// Whether the server does not know the function or the script that was called: it lost it, or never had it.
pub(super) fn is_script_missing(error: &RedisError) -> bool {
    let function = error.code() == Some("ERR") && error.detail() == Some("Function not found");
    function || error.code() == Some("NOSCRIPT")
}

/// Whether the server does not know one of these commands, or refuses it to this user.
pub(super) fn lacks(error: &RedisError, commands: &[&str]) -> bool {
    let text = error.to_string();
    match error.code() {
        Some("NOPERM") => commands
            .iter()
            .any(|command| text.contains(&format!("'{command}"))),
        _ => unknown_command(&text)
            .is_some_and(|unknown| commands.contains(&&*unknown.to_lowercase())),
    }
}
