//! Logs to stderr; with the feature `otlp`, the traces of a coordinator to a collector.

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    EnvFilter, Layer, layer::SubscriberExt, registry, util::SubscriberInitExt,
};

use super::{Command, Failure};
#[cfg(feature = "otlp")]
use crate::serve::MISCONFIGURED;

/// Sends the last traces when it is dropped.
pub(super) struct Traces {
    #[cfg(feature = "otlp")]
    _sent: Option<ringfence_server::Traces>,
}

/// Starts the logs of `command`.
pub(super) fn start(command: &Command) -> Result<Traces, Failure> {
    let filter = EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(command.log_level()));
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .with_filter(filter);
    let logs = registry().with(lines);
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
