//! Logs to stderr, as text or as JSON; the traces of a coordinator to a collector, if there is one.

use std::{
    io::{self, IsTerminal},
    sync::OnceLock,
};

use ringfence_server::{Log, Traces};
use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, fmt, layer::SubscriberExt, registry, reload,
    util::SubscriberInitExt,
};

use super::{Command, Failure};
use crate::serve::MISCONFIGURED;

type Filter = reload::Handle<EnvFilter, Registry>;

/// Which lines are printed as text, and which as JSON.
static FILTERS: OnceLock<[Filter; 2]> = OnceLock::new();

/// Starts the logs of `command`, and the traces.
pub(super) fn start(command: &Command) -> Result<Option<Traces>, Failure> {
    let (text, text_filter) = reload::Layer::new(filter(command.log_level()));
    let (json, json_filter) = reload::Layer::new(EnvFilter::new("off"));
    let text = fmt::layer()
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .with_filter(text);
    let json = fmt::layer()
        .json()
        .flatten_event(true)
        .with_writer(io::stderr)
        .with_filter(json);
    FILTERS.get_or_init(|| [text_filter, json_filter]);
    let logs = registry().with(vec![text.boxed(), json.boxed()]);
    let traces = match command {
        Command::Serve(_) | Command::Dev(_) => {
            Traces::from_env().map_err(|error| Failure::new(MISCONFIGURED, error))?
        }
        _ => None,
    };
    logs.with(traces.as_ref().map(Traces::layer)).init();
    Ok(traces)
}

/// Puts the settings of a coordinator's log into force.
pub(super) fn put(log: Log) {
    let named = match log.level {
        Level::ERROR => "error".to_owned(),
        level => format!("{level},zookeeper_client=warn"),
    };
    let (printed, other) = (filter(&named), EnvFilter::new("off"));
    let filters = match log.json {
        true => [other, printed],
        false => [printed, other],
    };
    let present = FILTERS.get().into_iter().flatten();
    for (present, filter) in present.zip(filters) {
        // It fails only if the logs have ended.
        let _ = present.reload(filter);
    }
}

/// The lines of `RUST_LOG`, or else those `named`.
fn filter(named: &str) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(named))
}
