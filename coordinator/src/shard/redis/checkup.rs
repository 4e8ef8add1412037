//! What a server says of itself, for a person who sets it up.

use std::time::Duration;

use redis::{FromRedisValue, InfoDict, Value, from_redis_value};
use serde::Serialize;

use super::{Connection, RedisOptions, wire::Wire};
use crate::clock::Clock;

/// What a server says of itself. None: it does not tell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Checkup {
    /// The version of Redis, or the one that it is like.
    pub version: Option<String>,
    /// `master` or `slave`.
    pub role: Option<String>,
    /// What it does when its memory is full.
    pub eviction: Option<String>,
    /// Whether it has an append-only file, and when that is synced.
    pub persistence: Option<String>,
    /// How the scripts are called: `FCALL`, or `EVALSHA` where it has no Redis Functions: slower, and permits are not
    /// renewed while its memory is full.
    pub scripts: Option<&'static str>,
    /// How far its clock is ahead of this machine's, in ms; negative if it is behind.
    pub clock_ahead_ms: Option<i64>,
    /// How many more connections it takes.
    pub connections_left: Option<u64>,
    /// Why no lock can be on it, and the cure.
    pub problem: Option<String>,
}

/// Asks the server at `options`. Loads the functions, as any process does that uses it.
///
/// # Cancel safety
///
/// Dropping the future closes the connections.
pub async fn checkup(options: &RedisOptions, clock: &dyn Clock) -> Checkup {
    match Wire::open(options, Wire::config(options)).await {
        Ok(wire) => told(wire, options, clock).await,
        Err(problem) => Checkup {
            problem: Some(problem.to_string()),
            ..Checkup::default()
        },
    }
}

async fn told(mut wire: Wire, options: &RedisOptions, clock: &dyn Clock) -> Checkup {
    let sent = clock.unix();
    let mut asked = redis::pipe();
    asked.cmd("TIME");
    asked.cmd("INFO");
    asked.cmd("CONFIG").arg("GET").arg("appendfsync");
    let answers = wire.run(&asked).await.unwrap_or_default();
    let halfway = sent + clock.unix().saturating_sub(sent) / 2;
    let [time, info, fsync] = [0, 1, 2].map(|place| answers.get(place).cloned());
    let info: Option<InfoDict> = read(info);
    let text = |name: &str| info.as_ref().and_then(|info| info.get::<String>(name));
    let number = |name: &str| info.as_ref().and_then(|info| info.get::<u64>(name));
    let fsync = read(fsync).map(|(_, fsync): (String, String)| fsync);
    let persistence = match (text("aof_enabled").as_deref(), fsync) {
        (Some("1"), Some(fsync)) => Some(format!("appendonly, appendfsync {fsync}")),
        (Some("1"), None) => Some("appendonly".to_owned()),
        (Some(_), _) => Some("none".to_owned()),
        (None, _) => None,
    };
    let (scripts, problem) = match Connection::open(options, "doctor", None).await {
        Ok(connection) => (Some(connection.server.calls.verb()), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Checkup {
        version: text("redis_version"),
        role: text("role"),
        eviction: text("maxmemory_policy"),
        persistence,
        scripts,
        clock_ahead_ms: read(time).map(|time| ahead_ms(time, halfway)),
        connections_left: number("maxclients")
            .zip(number("connected_clients"))
            .map(|(most, now)| most.saturating_sub(now)),
        problem,
    }
}

/// An answer, unless it is an error or something else.
fn read<T: FromRedisValue>(answer: Option<Value>) -> Option<T> {
    let answer = answer?.extract_error().ok()?;
    from_redis_value(answer).ok()
}

/// How far seconds and microseconds are ahead of `unix`.
fn ahead_ms((seconds, micros): (u64, u64), unix: Duration) -> i64 {
    let time = Duration::from_secs(seconds) + Duration::from_micros(micros);
    time.as_millis() as i64 - unix.as_millis() as i64
}
