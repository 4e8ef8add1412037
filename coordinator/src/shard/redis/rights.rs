//! Checks whether the user of a connection may run the commands of the scripts.

use redis::{RedisResult, Value, from_redis_value};

use super::{RedisOptions, answers::text, connection::Server, scripts, wire::Wire};

/// The reason why the user is refused: a script would fail after its first write without this right, or no message
/// would arrive.
pub(super) async fn missing(
    wire: &mut Wire,
    options: &RedisOptions,
    server: &Server,
) -> RedisResult<Option<String>> {
    let (prefix, address) = (&options.prefix, &options.address);
    let mut command = server.call(&scripts::RIGHTS, 0);
    command.arg(&server.replid).arg(format!("{prefix}:rights"));
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

/// The rules of a user with exactly the rights that Ringfence needs.
fn needed(prefix: &str) -> String {
    format!(
        "~{prefix}:* &{prefix}:* +@read +@write +@scripting +@connection +info +time +publish +subscribe \
         +client|id +client|kill +client|setname +config|get"
    )
}
