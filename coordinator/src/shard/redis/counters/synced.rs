//! Whether a server puts every write on its disk before it answers.

use redis::{InfoDict, RedisResult, Value, from_redis_value};

use crate::shard::{
    ShardError,
    redis::{Connection, classify},
};

/// The settings with which a server syncs every write, also while it rewrites its log.
const SETTINGS: [(&str, &str); 3] = [
    ("appendonly", "yes"),
    ("appendfsync", "always"),
    ("no-appendfsync-on-rewrite", "no"),
];

/// What may switch a server's log off or on, as INFO names it: a replica begins its log anew when it has copied its
/// primary.
const SWITCHES: [&str; 5] = [
    // Before Redis 7 it counts what is asked here, too: there a log counts as begun only while it is not rewritten.
    "cmdstat_config",
    "cmdstat_config|set",
    "cmdstat_config|resetstat",
    "cmdstat_replicaof",
    "cmdstat_slaveof",
];

/// The log of a server, as far as one connection has seen it.
#[derive(Debug, Default)]
pub(in crate::shard::redis) struct Log {
    /// What may have switched it, when it was certainly begun. Nothing: it was begun with the server.
    begun: Vec<String>,
}

impl Log {
    /// Whether the server syncs every write: it has these settings, and its log is begun. If it does not answer that, it
    /// counts as one that does not.
    pub(in crate::shard::redis) async fn is_synced(
        &mut self,
        connection: &mut Connection,
    ) -> Result<bool, ShardError> {
        // One setting and one section at a time: before Redis 7 there is no other way.
        let mut asked = redis::pipe();
        for (name, _) in SETTINGS {
            asked.cmd("CONFIG").arg("GET").arg(name);
        }
        for section in ["persistence", "replication", "commandstats"] {
            asked.cmd("INFO").arg(section);
        }
        let answers = connection.run(&asked).await?;
        let answers: RedisResult<Vec<Value>> =
            answers.into_iter().map(Value::extract_error).collect();
        let mut answers = match answers.map_err(|error| classify("the log's state", &error)) {
            // Where CONFIG may not be used, nothing tells.
            Err(ShardError::Unusable { .. }) => return Ok(false),
            answers => answers?,
        };
        let info = Value::Array(answers.split_off(SETTINGS.len()));
        let info: Vec<String> = from_redis_value(info).unwrap_or_default();
        let is_set = |(answer, (name, value)): (Value, (&str, &str))| {
            let set: Result<(String, String), _> = from_redis_value(answer);
            set.is_ok_and(|set| (&*set.0, &*set.1) == (name, value))
        };
        let is_set = answers.into_iter().zip(SETTINGS).all(is_set);
        Ok(is_set && self.is_begun(&InfoDict::new(&info.concat())))
    }

    /// Whether the log is begun. A log that is switched on begins with a rewrite, and a kill before the end of that loses
    /// all writes since. A log that is rewritten later is begun: nothing has switched it since it was.
    fn is_begun(&mut self, info: &InfoDict) -> bool {
        let is = |name: &str, value: &str| info.get::<String>(name).is_some_and(|is| is == value);
        let promoted = info.get::<String>("second_repl_offset");
        let promoted = promoted.filter(|offset| offset != "-1");
        let switches = SWITCHES.iter().filter_map(|name| info.get::<String>(name));
        let switches: Vec<String> = switches.chain(promoted).collect();
        let is_rewritten = is("aof_rewrite_in_progress", "1") || is("aof_rewrite_scheduled", "1");
        if !is_rewritten {
            self.begun.clone_from(&switches);
        }
        is("aof_enabled", "1") && self.begun == switches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_begun_when_its_first_rewrite_is_over_and_stays_so() {
        let state = |rewritten: u8, enabled: u8, more: &str| {
            let info = format!(
                "aof_enabled:{enabled}\r\naof_rewrite_in_progress:{rewritten}\r\naof_rewrite_scheduled:0\r\n\
                 second_repl_offset:-1\r\n{more}"
            );
            InfoDict::new(&info)
        };
        let switched = "cmdstat_config|set:calls=1,usec=9\r\n";
        let mut log = Log::default();
        // Begun with the server, and rewritten now.
        assert!(log.is_begun(&state(1, 1, "")));
        assert!(!log.is_begun(&state(0, 0, switched)));
        let again = "cmdstat_config|set:calls=2,usec=18\r\n";
        assert!(!log.is_begun(&state(1, 1, again)));
        assert!(log.is_begun(&state(0, 1, again)));
        assert!(log.is_begun(&state(1, 1, again)));
        // Another connection does not know when.
        assert!(!Log::default().is_begun(&state(1, 1, again)));
        assert!(!Log::default().is_begun(&state(1, 1, "cmdstat_slaveof:calls=1,usec=9\r\n")));
        // Before Redis 7: what is asked changes the count.
        let asked = |calls: u8| format!("cmdstat_config:calls={calls},usec=9\r\n");
        let mut log = Log::default();
        assert!(log.is_begun(&state(0, 1, &asked(3))));
        assert!(!log.is_begun(&state(1, 1, &asked(6))));
        assert!(log.is_begun(&state(0, 1, &asked(9))));
    }
}
