//! The limit of open files, which each connection counts against.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use ringfence_server::Config;

/// Files that are not connections of callers: those to servers, of the monitor, the log, the runtime.
const OTHERS: u64 = 512;

/// Raises this process's limit as far as the system lets it.
pub(super) fn raise() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Warns if the system allows fewer open files than the connections of `config` need.
pub(super) fn check(config: &Config) {
    let connections = config.limits.connections;
    let needed = connections as u64 + OTHERS;
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && hard < needed
    {
        tracing::warn!(
            "limits.connections is {connections}, needs {needed} open files with those of the coordinator itself; the \
             system allows {hard} (ulimit -Hn, LimitNOFILE of a systemd unit)"
        );
    }
}
