//! A process that is a coordinator of the service, as `ringfence serve` runs it; to be stopped and killed at any time.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use ringfence_client::Client;
use ringfence_server::{Config, Overrides, Service};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

/// How long a coordinator that gets SIGTERM waits for its callers.
const GRACE: Duration = Duration::from_secs(1);

/// Before another attempt to find the servers.
const PAUSE: Duration = Duration::from_millis(200);

/// How a coordinator is started.
#[derive(Args, Clone, Debug)]
pub struct CoordinatorArgs {
    /// Where its files are written.
    #[arg(long)]
    pub dir: PathBuf,
    /// Number of this process.
    #[arg(long)]
    pub process: u32,
    /// Servers.
    #[arg(long = "redis", required = true)]
    pub urls: Vec<String>,
    /// The secret that all coordinators have.
    #[arg(long)]
    pub handle_secret: String,
}

/// Serves until it is killed, or has stopped gracefully after SIGTERM. Its port is in [`port_file`] once it can be used.
///
/// # Errors
///
/// A file cannot be written, or the service fails.
pub async fn run(args: CoordinatorArgs) -> io::Result<()> {
    let mut told_to_end = signal(SignalKind::terminate())?;
    let config = config(&args)?;
    let client = connect(&config).await;
    let service = Service::bind(&config, client).await;
    let service = service.map_err(io::Error::other)?;
    let port = service.address()?.port();
    let file = port_file(&args.dir, args.process);
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, port.to_string())?;
    fs::rename(unfinished, file)?;
    let stop = async {
        told_to_end.recv().await;
    };
    service.run(stop).await.map_err(io::Error::other)
}

/// The file with the port of the coordinator `process`.
pub fn port_file(dir: &Path, process: u32) -> PathBuf {
    dir.join(format!("{process:05}.port"))
}

/// The settings, from a file as an operator writes it.
fn config(args: &CoordinatorArgs) -> io::Result<Config> {
    let (secret, grace) = (&args.handle_secret, GRACE.as_secs());
    let mut text =
        format!("listen = \"127.0.0.1:0\"\nhandle_secret = \"{secret}\"\ngrace = \"{grace}s\"\n");
    for (url, name) in args.urls.iter().zip('a'..) {
        writeln!(text, "[shards.{name}]\nurl = \"{url}\"").map_err(io::Error::other)?;
    }
    let file = args.dir.join(format!("{:05}.toml", args.process));
    fs::write(&file, text)?;
    Config::load(Some(&file), &Overrides::default()).map_err(io::Error::other)
}

/// A client, as soon as there can be one: servers may be down when a process starts.
async fn connect(config: &Config) -> Client {
    loop {
        match config.client().build().await {
            Ok(client) => return client,
            Err(error) => {
                eprintln!("not connected yet: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}
