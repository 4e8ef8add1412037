//! The coordinator, in a process of its own.

use std::{
    future::pending,
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use nix::sys::signal::Signal;
use ringfence_client::Client;
use ringfence_coordinator::spawn::Process;
use ringfence_server::{Config, Limits, Service};
use tempfile::NamedTempFile;

use crate::Failure;

/// Serves locks of the server at `url`, which is new, until this process is ended. Prints its own URL.
pub(crate) async fn serve(url: &str) -> Result<(), Failure> {
    let config = Config {
        listen: "127.0.0.1:0".parse()?,
        grace: Duration::ZERO,
        limits: Limits {
            // All calls are of one caller.
            rate: 1_000_000,
            ..Limits::default()
        },
        ..Config::default()
    };
    // As `ringfence serve` has it.
    let client = Client::builder().redis(url).servers_are_new(true);
    let client = client.handoff(0, Duration::ZERO);
    let service = Service::bind(&config, client.build().await?).await?;
    println!("http://{}", service.address()?);
    std::io::stdout().flush()?;
    Ok(service.run(pending()).await?)
}

/// A coordinator. It ends with this value.
pub(crate) struct Coordinator {
    process: Process,
    pub(crate) url: String,
}

impl Coordinator {
    /// Starts one on the server at `redis`.
    pub(crate) async fn start(redis: &str) -> Result<Self, Failure> {
        let said = NamedTempFile::new()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["service", "--coordinator-on", redis])
            .stdin(Stdio::null());
        command.stdout(said.reopen()?);
        let mut process = Process::start(command, Signal::SIGKILL).await?;
        loop {
            let url = std::fs::read_to_string(said.path())?;
            if let Some(url) = url.strip_suffix('\n') {
                let url = url.to_owned();
                return Ok(Self { process, url });
            }
            if let Some(ended) = process.try_wait()? {
                return Err(format!("the coordinator ended: {ended}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}
