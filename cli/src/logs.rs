//! Logs to stderr, as text or as JSON; with the feature `otlp`, the traces of a coordinator to a collector.

use std::{
    io::{self, IsTerminal},
    sync::OnceLock,
};

use ringfence_server::Log;
use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, fmt, layer::SubscriberExt, registry, reload,
    util::SubscriberInitExt,
};

use super::{Command, Failure};
#[cfg(feature = "otlp")]
use crate::serve::MISCONFIGURED;

type Filter = reload::Handle<EnvFilter, Registry>;

/// Which lines are printed as text, and which as JSON.
static FILTERS: OnceLock<[Filter; 2]> = OnceLock::new();

/// Sends the last traces when it is dropped.
pub(super) struct Traces {
    #[cfg(feature = "otlp")]
    _sent: Option<ringfence_server::Traces>,
}

/// Starts the logs of `command`.
pub(super) fn start(command: &Command) -> Result<Traces, Failure> {
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
    #[cfg(feature = "otlp")]
    {
        let traces = match command {
            Command::Serve(_) | Command::Dev(_) => ringfence_server::Traces::from_env()
                .map_err(|error| Failure::new(MISCONFIGURED, error))?,
            _ => None,
        };
        logs.with(traces.as_ref().map(ringfence_server::Traces::layer))
            .init();
        Ok(Traces { _sent: traces })
    }
    #[cfg(not(feature = "otlp"))]
    {
        logs.init();
        Ok(Traces {})
    }
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
