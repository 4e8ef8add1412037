//! A process that asks accounts for this and that, and writes down what it is told; to be killed at any time.

mod worker;

use std::{io, path::PathBuf, time::Duration};

use clap::{ArgAction, Args};
use futures_util::future::join_all;
use rand::{SeedableRng, rngs::StdRng};
use ringfence_client::{Client, counter::Durability};
use tokio::time::sleep;

use self::worker::Worker;
use super::{
    Call, Desk, Log,
    log::{Attempt, read_process},
};

/// How many calls a process has under way.
const WORKERS: u64 = 40;

/// How a teller process is started.
#[derive(Args, Clone, Debug)]
pub struct TellerArgs {
    /// Where logs are written.
    #[arg(long)]
    pub dir: PathBuf,
    /// Number of this process.
    #[arg(long)]
    pub process: u32,
    /// What all choices are made from.
    #[arg(long)]
    pub seed: u64,
    /// Redis servers.
    #[arg(long = "redis", required = true)]
    pub urls: Vec<String>,
    /// Prefix of all keys.
    #[arg(long, allow_hyphen_values = true)]
    pub prefix: String,
    /// How many accounts there are.
    #[arg(long)]
    pub accounts: usize,
    /// How many accounts come and go beside these.
    #[arg(long)]
    pub visitors: usize,
    /// How many calls to make.
    #[arg(long)]
    pub calls: usize,
    /// Whether latches are on disks, and otherwise in memory.
    #[arg(long, action = ArgAction::Set)]
    pub latches_on_disk: bool,
    /// The killed process whose calls without an answer are made again.
    #[arg(long)]
    pub after: Option<u32>,
}

/// Makes its calls.
///
/// # Errors
///
/// A log cannot be read or written.
pub async fn run(args: TellerArgs) -> io::Result<()> {
    let log = Log::create(&args.dir, args.process)?;
    let left = match args.after {
        Some(killed) => read_process(&args.dir, killed)?,
        None => Vec::new(),
    };
    let left = left.into_iter().filter_map(unanswered).collect();
    let client = connect(&args.urls, &args.prefix).await;
    let desk = Desk::open(&client, args.accounts, log).with_visitors(args.visitors);
    let desk = desk.with_latches(match args.latches_on_disk {
        true => Durability::Disk,
        false => Durability::Memory,
    });
    let shared = worker::Shared::new(desk, args.process, args.calls, left);
    let workers = (0..WORKERS).map(|number| {
        let seed = args.seed ^ u64::from(args.process) << 32 ^ number << 48;
        Worker::new(&shared, StdRng::seed_from_u64(seed)).run()
    });
    join_all(workers).await;
    client.close().await;
    Ok(())
}

fn unanswered(attempt: Attempt) -> Option<Call> {
    attempt.answered.is_none().then_some(attempt.call)
}

/// A client, as soon as there can be one: servers may be down when a process starts.
pub(super) async fn connect(urls: &[String], prefix: &str) -> Client {
    loop {
        match Client::builder()
            .redis(urls)
            .prefix(prefix)
            .existing_topology(true)
            .build()
            .await
        {
            Ok(client) => return client,
            Err(error) => {
                eprintln!("not connected yet: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
