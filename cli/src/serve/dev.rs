//! `ringfence dev`: a coordinator with its shards in one process, to try things out.

use std::{
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use ringfence_client::Client;
use ringfence_server::Config;

use super::{ServeError, serve, told_to_stop};

/// The line to paste: it acquires the lock `key`.
const LINE: &str = r#"grpcurl -plaintext -d '{"key": "a2V5", "lease": "10s"}' ADDRESS ringfence.v1.LockService/Acquire"#;

/// Serve locks and counters from shards in this process, for development
///
/// It serves on a loopback address, to every caller. Nothing is kept: locks and counters end with it. It
/// prints a command that acquires a lock, and the address of the dashboard.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The port to serve on; 0: any that is free
    #[arg(long, value_name = "PORT", default_value_t = 7420)]
    port: u16,
    /// The port of the dashboard and of /metrics; 0: any that is free [default: 7421; with --port 0, 0]
    #[arg(long, value_name = "PORT")]
    monitor_port: Option<u16>,
    /// The number of shards
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=64))]
    shards: u8,
}

impl Args {
    fn monitor_port(&self) -> u16 {
        let default = if self.port == 0 { 0 } else { 7421 };
        self.monitor_port.unwrap_or(default)
    }
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ServeError> {
    let config = Config {
        listen: (Ipv4Addr::LOCALHOST, args.port).into(),
        monitor: Some((Ipv4Addr::LOCALHOST, args.monitor_port()).into()),
        // Its callers lose nothing that they could keep.
        grace: Duration::ZERO,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stop = told_to_stop()?;
        let shards = usize::from(args.shards);
        let client = Client::builder().embedded(shards);
        let client = client.handoff(0, Duration::ZERO).build().await?;
        let lines = |address: SocketAddr, monitor: Option<SocketAddr>| {
            let line = LINE.replace("ADDRESS", &address.to_string());
            let dashboard = monitor.map(|at| format!("\nhttp://{at}/dashboard/"));
            line + &dashboard.unwrap_or_default()
        };
        serve(&config, client, stop, lines, async |_| pending().await).await
    })?;
    Ok(ExitCode::SUCCESS)
}
