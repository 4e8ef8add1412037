//! The Lua scripts: files with headers, and the library of Redis Functions that is made of them.

#[cfg(feature = "failpoints")]
mod without;

use std::sync::LazyLock;

#[cfg(feature = "failpoints")]
pub(crate) use without::in_force;

/// The function to call for `script`.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn in_force(script: &Script) -> &str {
    &script.function
}

/// A script: one function of the library.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    /// Its file. The first line is `#!lua`, with or without flags.
    pub(crate) source: &'static str,
    pub(crate) function: LazyLock<String>,
    pub(crate) evaluated: LazyLock<Evaluated>,
}

/// A script as `EVALSHA` runs it, on servers without Redis Functions.
#[derive(Debug)]
pub(crate) struct Evaluated {
    pub(crate) text: String,
    pub(crate) hash: String,
}

impl Evaluated {
    /// The script with what the scripts of its folder share.
    fn new(folder: &str, source: &str) -> Self {
        let (_, body) = source.split_once('\n').expect("a script has lines");
        let more = match folder {
            "counter" => SEGMENTS,
            _ => "",
        };
        // Before Redis 7, a script that has read the time writes nothing unless it says so first.
        let text = format!(
            "redis.replicate_commands()\n{BASE}{more}local function run(KEYS, ARGV)\n{body}\nend\nreturn run(KEYS, ARGV)\n"
        );
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }
}

/// All scripts of this release in one library of Redis Functions. A server compiles it once, when it is loaded.
///
/// The names of the library and of its functions contain a hash of its text: releases share a server, and a
/// library of the same name has the same text.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) name: String,
    pub(crate) code: String,
    hash: String,
}

pub(crate) static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let mut text = SHARED.clone();
    for script in all() {
        text += &registered(script.name, script.source);
    }
    #[cfg(feature = "failpoints")]
    {
        text += &without::registered();
    }
    Library::new(&text)
});

impl Library {
    fn new(text: &str) -> Self {
        let hash = redis::Script::new(text).get_hash()[..16].to_owned();
        let name = format!("ringfence_{hash}");
        let code = format!("#!lua name={name}\nlocal VERSION = '{hash}'\n{text}");
        Self { name, code, hash }
    }

    /// The full name of the function `name`.
    fn function(&self, name: &str) -> String {
        format!("ringfence_{name}_{}", self.hash)
    }
}

/// The lines that register a script as a function.
fn registered(name: &str, source: &str) -> String {
    let (shebang, body) = source.split_once('\n').expect("a script has lines");
    let flags = match shebang.split_once("flags=") {
        Some((_, flag)) => format!("{{'{flag}'}}"),
        None => "{}".into(),
    };
    format!(
        "do\nlocal function run(KEYS, ARGV)\n{body}\nend\nredis.register_function{{function_name = \
         'ringfence_{name}_' .. VERSION, callback = run, flags = {flags}}}\nend\n"
    )
}

/// Functions that scripts share, in an order in which each follows those that it calls. Lua allows 200 of them.
static SHARED: LazyLock<String> = LazyLock::new(|| [BASE, SEGMENTS].concat());

/// Those of all scripts.
const BASE: &str = concat!(
    include_str!("lua/shared/life.lua"),
    include_str!("lua/shared/slot.lua"),
    include_str!("lua/shared/state.lua"),
    include_str!("lua/shared/lives.lua"),
    include_str!("lua/lock/record.lua"),
    include_str!("lua/lock/shares.lua"),
    include_str!("lua/lock/live.lua"),
    include_str!("lua/lock/guard.lua"),
    include_str!("lua/lock/queue.lua"),
    include_str!("lua/lock/taking.lua"),
    include_str!("lua/lock/sharing.lua"),
    include_str!("lua/counter/group.lua"),
    include_str!("lua/counter/asides.lua"),
    include_str!("lua/counter/stamp.lua"),
    include_str!("lua/shared/whole.lua"),
);

/// Those of the scripts of accounts alone.
const SEGMENTS: &str = concat!(
    include_str!("lua/counter/segment/money.lua"),
    include_str!("lua/counter/segment/parts.lua"),
    include_str!("lua/counter/segment/checks.lua"),
    include_str!("lua/counter/segment/log.lua"),
    include_str!("lua/counter/segment/remember.lua"),
    include_str!("lua/counter/segment/expire.lua"),
    include_str!("lua/counter/segment/land.lua"),
    include_str!("lua/counter/segment/legs.lua"),
    include_str!("lua/counter/segment/op.lua"),
    include_str!("lua/counter/segment/ops.lua"),
    include_str!("lua/counter/segment/doubt.lua"),
    include_str!("lua/counter/segment/load.lua"),
    include_str!("lua/counter/segment/lend.lua"),
    include_str!("lua/counter/segment/collect.lua"),
    include_str!("lua/counter/segment/refuse.lua"),
    include_str!("lua/counter/segment/confirm.lua"),
    include_str!("lua/counter/segment/cancel.lua"),
    include_str!("lua/counter/segment/capture.lua"),
    include_str!("lua/counter/segment/credit.lua"),
    include_str!("lua/counter/segment/finish_transfer.lua"),
    include_str!("lua/counter/segment/forget.lua"),
    include_str!("lua/counter/segment/find.lua"),
    include_str!("lua/counter/segment/unfinished.lua"),
    include_str!("lua/counter/segment/prepare.lua"),
    include_str!("lua/counter/segment/close.lua"),
    include_str!("lua/counter/segment/remove.lua"),
    include_str!("lua/counter/segment/accept.lua"),
    include_str!("lua/counter/segment/manifest.lua"),
);

macro_rules! scripts {
    ($($constant:ident = $folder:literal / $name:literal;)+) => {
        $(pub(crate) static $constant: Script = Script {
            name: $name,
            source: include_str!(concat!("lua/", $folder, "/", $name, ".lua")),
            function: LazyLock::new(|| LIBRARY.function($name)),
            evaluated: LazyLock::new(|| Evaluated::new($folder, $constant.source)),
        };)+

        /// Every script.
        pub(crate) fn all() -> impl Iterator<Item = &'static Script> {
            [$(&$constant),+].into_iter()
        }
    };
}

scripts! {
    ACQUIRE = "lock" / "acquire";
    SHARE = "lock" / "share";
    RENEW = "lock" / "renew";
    CONFIRM = "lock" / "confirm";
    RELEASE = "lock" / "release";
    ADOPT = "lock" / "adopt";
    REMOVE = "lock" / "remove";
    INSPECT = "lock" / "inspect";
    LIST = "lock" / "list";
    SCAN = "slot" / "scan";
    STILL_HELD = "slot" / "still_held";
    GROUPS = "counter" / "groups";
    COPY_OUT = "counter" / "copy_out";
    COPY_OPEN = "counter" / "copy_open";
    COPY_IN = "counter" / "copy_in";
    ARRIVE = "counter" / "arrive";
    DROP_GROUPS = "counter" / "drop_groups";
    COUNTERS = "counter" / "counters";
    RIGHTS = "shared" / "rights";
    READ = "whole" / "read";
    COMMIT = "whole" / "commit";
    CLAIM = "whole" / "claim";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The inputs named in `text`: `KEYS[3]`, `ARGV[2]`; and those it takes by computed index.
    fn inputs(text: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for table in ["KEYS[", "ARGV["] {
            for (at, _) in text.match_indices(table) {
                let index: String = text[at + table.len()..]
                    .chars()
                    .take_while(char::is_ascii_digit)
                    .collect();
                let closed = text[at + table.len() + index.len()..].starts_with(']');
                if !index.is_empty() && closed {
                    found.insert(format!("{table}{index}]"));
                }
            }
        }
        found
    }

    /// The header's inputs without the open-ended ones, `KEYS[5]..`, which a body accesses by
    /// computed indices.
    fn named(header: &str) -> BTreeSet<String> {
        let open_ended = |input: &String| header.contains(&format!("{input}.."));
        inputs(header)
            .into_iter()
            .filter(|input| !open_ended(input))
            .collect()
    }

    #[test]
    fn a_header_names_exactly_what_its_body_uses() {
        for Script { name, source, .. } in all() {
            let (header, body) = source.split_once("]]").expect("a header");
            assert_eq!(named(header), inputs(body), "{name}");
            assert!(
                header.contains(&format!("{name}: ")),
                "{name}: header starts with its name"
            );
            assert!(
                header.contains("\nReturns "),
                "{name}: header says what it returns"
            );
            let mut lines = body.lines().filter(|line| !line.is_empty());
            let first = lines.next().expect("a script does something");
            assert!(
                first.contains("same_life(ARGV[1])"),
                "{name}: what a call before this one left is forgotten first: {first}"
            );
        }
    }

    #[test]
    fn every_command_of_a_script_is_checked_in_the_handshake() {
        const OPTIONS: [&str; 6] = ["COUNT", "LIMIT", "MATCH", "SIB", "WITHSCORES", "WRONGTYPE"];
        let checked: BTreeSet<_> = RIGHTS.source.split([' ', '\'']).collect();
        let words = LIBRARY.code.split('\'');
        let upper = |word: &&str| word.bytes().all(|byte| byte.is_ascii_uppercase());
        let words = words.filter(|word| word.len() > 2 && upper(word));
        for word in words.filter(|word| !OPTIONS.contains(word)) {
            assert!(checked.contains(word), "{word}");
        }
    }

    #[test]
    fn only_what_adds_needs_free_memory() {
        for Script { name, source, .. } in all() {
            let frugal = source.starts_with("#!lua flags=");
            assert_eq!(
                frugal,
                !["acquire", "share", "copy_in", "counters", "claim"].contains(name),
                "{name}"
            );
        }
    }
}
