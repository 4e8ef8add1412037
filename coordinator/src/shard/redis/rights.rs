//! Whether the user of a connection may run what scripts run.

use redis::{RedisResult, Value, from_redis_value};

use super::{RedisOptions, answers::text, connection::fcall, scripts, wire::Wire};

/// Why the user may not be used: a right that a script may miss after its first write, or without which no message is
/// heard.
pub(super) async fn missing(
    wire: &mut Wire,
    options: &RedisOptions,
    replid: &str,
) -> RedisResult<Option<String>> {
    let (prefix, address) = (&options.prefix, &options.address);
    let mut command = fcall(&scripts::RIGHTS, 0);
    command.arg(replid).arg(format!("{prefix}:rights"));
    command.arg(format!("{prefix}:turn:{}", options.client));
    command.arg(format!("{prefix}:topology"));
    let answer: Vec<Value> = from_redis_value(wire.run_one(&command).await?)?;
    let refused: Vec<_> = answer.iter().skip(1).map(text).collect();
    if refused.is_empty() {
        return Ok(None);
    }
    let (user, refused) = (address.user(), refused.join(", "));
    Ok(Some(format!(
        "{address}: the ACL user {user:?} may not run {refused}; run: ACL SETUSER {user} {}",
        needed(prefix.as_str())
    )))
}

/// The rules of a user that may run everything Ringfence needs, and nothing else.
fn needed(prefix: &str) -> String {
    format!(
        "~{prefix}:* &{prefix}:* +@read +@write +@scripting +@connection +info +time +publish +subscribe \
         +client|id +client|kill +client|setname +config|get"
    )
}
