//! `ringfence serve`, `ringfence dev` and `ringfence config`: a coordinator, and its settings.

mod descriptors;
pub(super) mod dev;
mod notify;

use std::{convert::Infallible, io, net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Subcommand;
use ringfence_client::{BuildError, Client, Effect};
use ringfence_server::{BindError, Config, ConfigError, Overrides, Reloader, Service};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{FAILED, Nature, UNAVAILABLE, logs, seeds::Seeds, show};

/// The settings cannot be used (sysexits: EX_USAGE).
pub(crate) const MISCONFIGURED: u8 = 64;

const EXIT_CODES: &str = "\
Exit codes:
    0  it stopped when it was told to (SIGTERM, SIGINT)
    1  the system refused the port, or something else
    2  the command line cannot be used
   64  the settings cannot be used; all problems are listed, and no port was bound
   69  the servers cannot be reached, or have no topology (ringfence ring init)

Settings: defaults < FILE < variables as RINGFENCE__LIMITS__STREAMS=100 < options.
The servers are those of --redis or --redis-file, or else of the settings shards.NAME.url; if there are none, those of
RINGFENCE_REDIS.";

/// Serve locks and counters over gRPC: a coordinator
///
/// It keeps no state of its own but the locks of its callers. When it is told to stop, it grants no new
/// locks and waits for its callers to release theirs. SIGHUP: it reads the settings again, and new principals, secrets of
/// handles and certificates count at once; files of certificates that change are read without it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check the settings of a coordinator; no server is asked, and no port is bound
    Check(Settings),
    /// Print the settings of a coordinator as a file: defaults, file, variables and options together
    Show {
        #[command(flatten)]
        settings: Settings,
        /// With the logins of servers, the secrets of handles and the digests of tokens
        #[arg(long)]
        secrets: bool,
    },
    /// Print an example of a file with every setting
    Example,
}

/// Where the settings are.
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// The file with the settings, in TOML; the systemd unit and the images have /etc/ringfence/ringfence.toml
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The address to serve on, instead of the setting `listen`
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Serve on a public address without tokens or certificates: every host that reaches the port can use
    /// all locks and counters
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    seeds: Seeds,
}

/// Why a coordinator does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Servers(#[from] BuildError),
    #[error(transparent)]
    Bind(BindError),
    #[error("the system refused")]
    System(#[from] io::Error),
    #[error("the service failed")]
    Transport(#[source] Box<dyn std::error::Error>),
}

impl ServeError {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Config(_) => MISCONFIGURED,
            Self::Servers(_) => UNAVAILABLE,
            Self::Bind(_) | Self::System(_) | Self::Transport(_) => FAILED,
        }
    }

    pub(crate) fn nature(&self) -> Nature {
        match self {
            Self::Servers(error) => Nature::new(error.is_retryable(), error.effect()),
            _ => Nature::new(false, Effect::None),
        }
    }
}

impl Settings {
    fn load(&self) -> Result<Config, ConfigError> {
        let (servers, default_servers) = self.seeds.for_a_coordinator().map_err(|error| {
            let problems = vec![crate::chain(&error)];
            ConfigError { problems }
        })?;
        let overrides = Overrides {
            listen: self.listen.clone(),
            insecure: self.insecure,
            servers,
            default_servers,
            topology: self.seeds.topology.clone(),
        };
        Config::load(self.config.as_deref(), &overrides)
    }
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ServeError> {
    let config = args.settings.load()?;
    logs::put(config.log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(on_servers(&args.settings, &config))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks or prints settings.
pub(crate) fn config(command: &Command) -> Result<ExitCode, ServeError> {
    show(match command {
        Command::Check(settings) => {
            let config = settings.load()?;
            warn(&config);
            let shards = config.shards.len();
            format!("good: serves on {}, shards: {shards}\n", config.listen)
        }
        Command::Show { settings, secrets } => settings.load()?.show(!secrets),
        Command::Example => Config::example(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Warns of what can be used, and should be otherwise.
fn warn(config: &Config) {
    descriptors::check(config);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
}

/// Finds the servers, and serves.
async fn on_servers(settings: &Settings, config: &Config) -> Result<(), ServeError> {
    let (stop, hangups) = (told_to_stop()?, signal(SignalKind::hangup())?);
    tokio::pin!(stop);
    descriptors::raise();
    warn(config);
    let client = tokio::select! {
        biased;
        () = &mut stop => return Ok(()),
        built = config.client().build() => built?,
    };
    for warning in client.warnings() {
        tracing::warn!("{warning}");
    }
    let line = |address, _| format!("serves on {address}");
    serve(config, client, stop, line, async |reloader| {
        reload(reloader, hangups, || settings.load()).await
    })
    .await
}

/// Loads the settings again at each of `hangups`, while it is polled.
async fn reload(
    reloader: Reloader,
    mut hangups: Signal,
    load: impl Fn() -> Result<Config, ConfigError>,
) -> Infallible {
    loop {
        if hangups.recv().await.is_none() {
            std::future::pending().await
        }
        match load() {
            Ok(config) => {
                logs::put(config.log);
                warn(&config);
                let later = reloader.reload(config);
                tracing::info!("SIGHUP: new settings count");
                if !later.is_empty() {
                    let names = later.join(", ");
                    tracing::warn!(%names, "settings that have changed, and count from the next start on");
                }
            }
            Err(error) => {
                tracing::error!(%error, "SIGHUP: the former settings go on");
            }
        }
    }
}

/// Ends at SIGTERM or SIGINT.
fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Serves `client` until `stop`, with what `reloads` puts into force. Prints `line` of its address and its
/// monitor's once it can be used.
async fn serve(
    config: &Config,
    client: Client,
    stop: impl Future<Output = ()>,
    line: impl Fn(SocketAddr, Option<SocketAddr>) -> String,
    reloads: impl AsyncFnOnce(Reloader) -> Infallible,
) -> Result<(), ServeError> {
    let bound = Service::bind(config, client).await;
    let service = bound.map_err(ServeError::Bind)?;
    let (address, monitor) = (service.address()?, service.monitor_address()?);
    show(format!("{}\n", line(address, monitor)))?;
    notify::ready();
    let stop = async {
        stop.await;
        notify::stopping();
    };
    let reloads = reloads(service.reloader());
    tokio::select! {
        served = service.run(stop) => {
            served.map_err(|error| ServeError::Transport(error.into()))
        }
        never = reloads => match never {},
    }
}
