//! The Lua scripts that keep the topology on servers.

use std::sync::LazyLock;

use crate::shard::redis::{Script, scripts};

mod shared {
    pub(super) use crate::shard::redis::shared::{COPY, FENCE, LIFE, LIVES};
    pub(super) const HEADER: &str = include_str!("lua/header.lua");
    pub(super) const NEWS: &str = include_str!("lua/news.lua");
}

scripts! {
    TRACE = "trace" with [LIFE];
    CLAIM = "claim" with [LIFE];
    JOIN = "join" with [LIFE];
    LEAVE = "leave" with [LIFE];
    RETIRE = "retire" with [LIFE, FENCE, HEADER];
    SWAP = "swap" with [LIFE, FENCE, HEADER, NEWS];
    VOID = "void" with [LIFE, HEADER];
    COPY = "copy" with [LIFE, FENCE, COPY];
    RAISE_FENCE = "fence" with [LIFE, HEADER];
    RESTORE = "restore" with [LIFE, HEADER, LIVES, NEWS];
    READ = "read" with [LIFE];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::redis::{check_headers, check_rights};

    #[test]
    fn a_header_names_exactly_what_its_body_uses() {
        check_headers(SOURCES);
    }

    #[test]
    fn every_command_of_a_script_is_checked_in_the_handshake() {
        check_rights(&all());
    }

    #[test]
    fn only_claim_needs_free_memory() {
        for (name, source) in SOURCES {
            assert_eq!(
                source.starts_with("#!lua flags="),
                *name != "claim",
                "{name}"
            );
        }
    }
}
