//! `ringfence counter create`, `resegment`, `label`, `close`, `delete`.

use std::time::Duration;

use ringfence_client::counter::{Durability, Terms, Unit, limits::SEGMENTS_MAX};

use super::{CliError, EXIT_CODES, account::One, output::Output};

/// Create an empty account
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Create {
    #[command(flatten)]
    one: One,
    /// Number of segments, 1 to 1024: more segments on more shards allow more changes per second; `resegment` adds
    /// some later, online
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = segments)]
    segments: u32,
    /// What an acknowledged change survives: memory (nothing: a shard that restarts may have forgotten
    /// the last changes, and says so), disk (a restart; servers must sync every write), or replicas:N
    #[arg(long, value_name = "WHAT", value_parser = durability)]
    durability: Durability,
    /// How long answers are remembered for repeats
    #[arg(long, value_name = "LENGTH", default_value = "24h", value_parser = crate::length)]
    remember: Duration,
    /// How long a full segment remembers answers [default: 60s, or --remember if that is less]
    #[arg(long, value_name = "LENGTH", value_parser = humantime::parse_duration)]
    remember_at_least: Option<Duration>,
    /// Maximum number of answers that a segment remembers: above it, the oldest are forgotten early
    #[arg(long, value_name = "N", default_value_t = Terms::in_memory().ids_max)]
    remember_max: usize,
    /// Least balance: below 0 for a credit line
    #[arg(
        long,
        value_name = "AMOUNT",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    floor: i64,
    /// Greatest balance: deposits beyond are refused, and transfers return. Only with one segment
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    ceiling: Option<i64>,
    /// Unit of the amounts, such as EUR-cent: there are no transfers between different units
    #[arg(long, value_name = "CODE", default_value_t = Unit::NONE)]
    unit: Unit,
    /// Maximum number of effects that a segment keeps in its log: above it, the oldest are dropped; 0: no log
    #[arg(long, value_name = "N", default_value_t = Terms::in_memory().effects_max)]
    log_max: usize,
    /// How long effects are kept in the log
    #[arg(long, value_name = "LENGTH", default_value = "7d", value_parser = crate::length)]
    log_for: Duration,
}

/// Change the number of an account's segments, online
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Resegment {
    #[command(flatten)]
    one: One,
    /// Number of segments: 1 to 1024
    #[arg(value_parser = segments)]
    segments: u32,
}

/// Label an account, or remove labels
///
/// Labels are names with values of your choice: an owner, a kind, a number in another system. At most
/// 16 of an account. ringfence counter show prints them, list does with --json
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Label {
    #[command(flatten)]
    one: One,
    /// NAME=VALUE sets a label, NAME= removes it
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, Option<String>)>,
}

/// Close an account for good: no more deposits; the balance can be deducted
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Close {
    #[command(flatten)]
    one: One,
}

/// Delete an account with its log: it must be closed and empty
///
/// Its name can be used again; requests that the account has decided are refused then. A repeat is no error
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Delete {
    #[command(flatten)]
    one: One,
}

impl Create {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let One { account, place } = &self.one;
        let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let idempotency_for_ms = millis(self.remember);
        let terms = Terms::new(self.durability);
        let at_least_ms = terms.idempotency_at_least_ms.min(idempotency_for_ms);
        let terms = Terms {
            idempotency_for_ms,
            idempotency_at_least_ms: self.remember_at_least.map_or(at_least_ms, millis),
            ids_max: self.remember_max,
            effects_max: self.log_max,
            effects_for_ms: millis(self.log_for),
            floor: self.floor,
            ceiling: self.ceiling,
            unit: self.unit,
            ..terms
        };
        let opened = place.open().await?;
        let counter = opened
            .counters
            .create(account, terms, self.segments)
            .await?;
        let homes = counter.segments().await?;
        if homes != self.segments {
            return Err(CliError::OtherSegments {
                account: account.clone(),
                homes,
                wanted: self.segments,
            });
        }
        let sentence = format!("{account} is there; segments: {homes}");
        opened.tell(Output::new(account, "created", sentence)).await
    }
}

impl Resegment {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        counter.resegment(self.segments).await?;
        let account = &self.one.account;
        let sentence = format!("{account} has {} segments from now on", self.segments);
        opened
            .tell(Output::new(account, "resegmented", sentence))
            .await
    }
}

impl Label {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        counter
            .label(&self.labels.iter().cloned().collect())
            .await?;
        let account = &self.one.account;
        let sentence = format!("{account} has these labels");
        opened
            .tell(Output::new(account, "labelled", sentence))
            .await
    }
}

impl Close {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        counter.close().await?;
        let account = &self.one.account;
        let sentence = format!("{account} takes no more money");
        opened.tell(Output::new(account, "closed", sentence)).await
    }
}

impl Delete {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        counter.delete().await?;
        let account = &self.one.account;
        let sentence = format!("{account} is deleted");
        opened.tell(Output::new(account, "deleted", sentence)).await
    }
}

fn segments(text: &str) -> Result<u32, String> {
    let segments = text.parse().ok();
    let segments = segments.filter(|segments| (1..=SEGMENTS_MAX).contains(segments));
    segments.ok_or_else(|| format!("must be 1 to {SEGMENTS_MAX}"))
}

fn label(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE or NAME=")?;
    let value = (!value.is_empty()).then(|| value.to_owned());
    Ok((name.to_owned(), value))
}

fn durability(text: &str) -> Result<Durability, String> {
    match (text, text.split_once(':')) {
        ("memory", _) => Ok(Durability::Memory),
        ("disk", _) => Ok(Durability::Disk),
        (_, Some(("replicas", count))) => match count.parse() {
            Ok(count) => Ok(Durability::Replicas(count)),
            Err(_) => Err(format!("replicas is {count:?}, must be a number")),
        },
        _ => Err("must be memory, disk, or replicas:N".into()),
    }
}
