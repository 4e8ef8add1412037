//! The Lua scripts: files with headers, put together with the functions they share.

#[cfg(feature = "failpoints")]
mod without;

use std::sync::LazyLock;

#[cfg(feature = "failpoints")]
pub(crate) use without::{all as all_without, in_force};

/// What is run for `script`.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn in_force(script: &Script) -> &Script {
    script
}

/// Scripts that a test may put in the place of others.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn all_without() -> [&'static Script; 0] {
    []
}

/// A script: a library of Redis Functions with one function, under the same name.
///
/// Unlike what `EVAL` is given, a library makes its functions once, when it is loaded, not in each call.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) code: String,
    /// The function's name: another version of the script has another.
    pub(crate) function: String,
}

impl Script {
    /// `body`, whose first line is `#!lua`, with flags or without, and `shared` functions before it.
    /// Its name is that of its file.
    pub(crate) fn new(path: &'static str, shared: &[&str], body: &str) -> Self {
        let name = file_name(path);
        let (shebang, rest) = body.split_once('\n').expect("a script has lines");
        let flags = match shebang.split_once("flags=") {
            Some((_, flag)) => format!("{{'{flag}'}}"),
            None => "{}".into(),
        };
        let shared = shared.join("\n");
        let library = format!("{shared}\nlocal function run(KEYS, ARGV)\n{rest}\nend\n");
        let function = versioned(name, &[&library, &flags]);
        let code = format!(
            "#!lua name={function}\n{library}redis.register_function{{function_name = '{function}', \
             callback = run, flags = {flags}}}\n"
        );
        Self {
            name,
            code,
            function,
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// A name that hangs on what it is of.
fn versioned(name: &str, of: &[&str]) -> String {
    let hash = redis::Script::new(&of.concat());
    format!("ringfence_{name}_{}", &hash.get_hash()[..16])
}

/// Functions that scripts share.
pub(crate) mod shared {
    pub(crate) const LIFE: &str = include_str!("lua/shared/life.lua");
    pub(crate) const SLOT: &str = include_str!("lua/shared/slot.lua");
    pub(crate) const PUT_SLOT: &str = include_str!("lua/slot/put_slot.lua");
    pub(crate) const RECORD: &str = include_str!("lua/lock/record.lua");
    pub(crate) const LIVE: &str = include_str!("lua/lock/live.lua");
    pub(crate) const STATE: &str = include_str!("lua/shared/state.lua");
    pub(crate) const GUARD: &str = include_str!("lua/lock/guard.lua");
    pub(crate) const QUEUE: &str = include_str!("lua/lock/queue.lua");
    pub(crate) const TAKING: &str = include_str!("lua/lock/taking.lua");
    pub(crate) const FENCE: &str = include_str!("lua/shared/fence.lua");
    pub(crate) const TIMERS: &str = include_str!("lua/slot/timers.lua");
    pub(crate) const LIVES: &str = include_str!("lua/shared/lives.lua");
    pub(crate) const COPY: &str = include_str!("lua/shared/copy.lua");
    pub(crate) const GROUP: &str = include_str!("lua/counter/group.lua");
    pub(crate) const ASIDES: &str = include_str!("lua/counter/asides.lua");
    pub(crate) const STAMP: &str = include_str!("lua/counter/stamp.lua");
    /// The rules of segments, a file each, in an order in which each knows what it needs.
    pub(crate) const SEGMENT: &str = concat!(
        include_str!("lua/counter/segment/money.lua"),
        include_str!("lua/counter/segment/parts.lua"),
        include_str!("lua/counter/segment/checks.lua"),
        include_str!("lua/counter/segment/remember.lua"),
        include_str!("lua/counter/segment/expire.lua"),
        include_str!("lua/counter/segment/land.lua"),
        include_str!("lua/counter/segment/op.lua"),
        include_str!("lua/counter/segment/ops.lua"),
        include_str!("lua/counter/segment/doubt.lua"),
        include_str!("lua/counter/segment/load.lua"),
        include_str!("lua/counter/segment/lend.lua"),
        include_str!("lua/counter/segment/collect.lua"),
        include_str!("lua/counter/segment/refuse.lua"),
        include_str!("lua/counter/segment/confirm.lua"),
        include_str!("lua/counter/segment/cancel.lua"),
        include_str!("lua/counter/segment/credit.lua"),
        include_str!("lua/counter/segment/settle.lua"),
        include_str!("lua/counter/segment/forget.lua"),
        include_str!("lua/counter/segment/find.lua"),
        include_str!("lua/counter/segment/unfinished.lua"),
        include_str!("lua/counter/segment/prepare.lua"),
        include_str!("lua/counter/segment/close.lua"),
        include_str!("lua/counter/segment/accept.lua"),
        include_str!("lua/counter/segment/head.lua"),
    );
}

macro_rules! scripts {
    ($($constant:ident = $path:literal with [$($shared:ident),*];)+) => {
        $(pub(crate) static $constant: LazyLock<Script> = LazyLock::new(|| {
            Script::new($path, &[$(shared::$shared),*], include_str!(concat!("lua/", $path, ".lua")))
        });)+

        /// Every script named here: loaded on each new connection.
        pub(crate) fn all() -> Vec<&'static Script> {
            vec![$(&$constant),+]
        }

        /// Each script as it stands in its file.
        #[cfg(test)]
        const SOURCES: &[(&str, &str)] =
            &[$(($path, include_str!(concat!("lua/", $path, ".lua")))),+];
    };
}
pub(crate) use scripts;

scripts! {
    ACQUIRE = "lock/acquire" with [LIFE, SLOT, RECORD, STATE, QUEUE, TAKING];
    RENEW = "lock/renew" with [LIFE, SLOT, RECORD, STATE, GUARD, QUEUE];
    RELEASE = "lock/release" with [LIFE, SLOT, RECORD, STATE, QUEUE];
    ADOPT = "lock/adopt" with [LIFE, SLOT, RECORD, STATE, GUARD, QUEUE];
    REMOVE = "lock/remove" with [LIFE, SLOT, RECORD];
    INSPECT = "lock/inspect" with [LIFE, RECORD, LIVE, QUEUE];
    LIST = "lock/list" with [LIFE, RECORD, LIVE, QUEUE];
    ARM = "slot/arm" with [LIFE, SLOT, PUT_SLOT, FENCE, COPY, LIVES, TIMERS];
    ARMED = "slot/armed" with [LIFE];
    SETTLE = "slot/settle" with [LIFE, FENCE, COPY];
    RAISE = "slot/raise" with [LIFE, FENCE];
    STEP = "slot/step" with [LIFE, SLOT, PUT_SLOT, FENCE, COPY, GROUP, ASIDES];
    FORCE_OPEN = "slot/force_open" with [LIFE, SLOT, PUT_SLOT, FENCE, COPY, TIMERS];
    SCAN = "slot/scan" with [LIFE, RECORD, LIVE, QUEUE];
    TAKE_LIST = "slot/take_list" with [LIFE, SLOT, RECORD, STATE, QUEUE];
    GROUPS = "counter/groups" with [LIFE, SLOT, GROUP];
    COPY_OUT = "counter/copy_out" with [LIFE, SLOT, GROUP, STAMP, SEGMENT];
    COPY_IN = "counter/copy_in" with [LIFE, SLOT, GROUP, ASIDES];
    ARRIVE = "counter/arrive" with [LIFE, SLOT, GROUP, ASIDES, STAMP];
    DROP_GROUPS = "counter/drop_groups" with [LIFE, SLOT, GROUP, STAMP];
    ADMIT = "counter/admit" with [LIFE, SLOT, PUT_SLOT, GROUP];
    COUNTERS = "counter/counters" with [LIFE, SLOT, STATE, SEGMENT];
    STILL_HELD = "slot/still_held" with [LIFE, SLOT, RECORD, LIVE];
    RIGHTS = "shared/rights" with [LIFE];
}

#[cfg(test)]
pub(crate) mod tests {
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

    /// The header's inputs without the open-ended ones, `KEYS[5]..`, which a body reaches by
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
        check_headers(SOURCES);
    }

    pub(crate) fn check_headers(sources: &[(&str, &str)]) {
        for (path, source) in sources {
            let name = file_name(path);
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
        check_rights(&all());
    }

    pub(crate) fn check_rights(scripts: &[&Script]) {
        const OPTIONS: [&str; 6] = ["COUNT", "LIMIT", "MATCH", "SIB", "WITHSCORES", "WRONGTYPE"];
        let checked: BTreeSet<_> = RIGHTS.code.split([' ', '\'']).collect();
        for script in scripts {
            let words = script.code.split('\'');
            let upper = |word: &&str| word.bytes().all(|byte| byte.is_ascii_uppercase());
            let words = words.filter(|word| word.len() > 2 && upper(word));
            for word in words.filter(|word| !OPTIONS.contains(word)) {
                assert!(checked.contains(word), "{}: {word}", script.name);
            }
        }
    }

    #[test]
    fn only_what_adds_needs_free_memory() {
        for (path, source) in SOURCES {
            let name = file_name(path);
            let frugal = source.starts_with("#!lua flags=");
            assert_eq!(
                frugal,
                !["acquire", "copy_in", "counters"].contains(&name),
                "{name}"
            );
        }
    }
}
