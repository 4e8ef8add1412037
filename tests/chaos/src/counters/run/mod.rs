//! A run: shards, accounts, tellers, and a nemesis that goes by a seed; then everything is put right, and what
//! was answered is checked.

mod crowd;
mod finish;
mod nemesis;
mod report;
mod resizes;
mod shard;
mod tail;
mod tellers;
mod visitors;

use std::{io, ops::RangeInclusive, path::Path, sync::atomic::AtomicUsize, time::Duration};

use clap::{ArgAction, Args};
use parking_lot::Mutex;
use rand::{RngExt, rngs::StdRng};
use ringfence_client::{
    Client,
    counter::{Durability, Terms},
};
use tokio::time::Instant;

use self::{
    crowd::Crowd,
    nemesis::Nemesis,
    resizes::Resizes,
    shard::Shard,
    tellers::Tellers,
    visitors::{VISITORS, Visitors},
};
use super::{
    Answer, Call, Deed, Desk, Handover, Log, Losses, TellerArgs, Visitor, audit, audit_latches,
    audit_losses, audit_visitors, read, teller::connect,
};
pub use report::Outcome;

use crate::run::{HistoriesArgs, histories::Histories};

/// Servers, of which one is no shard at first.
const SERVERS: u64 = 4;
const SHARDS: usize = 3;
const ACCOUNTS: usize = 8;
const TELLERS: usize = 3;
/// With so many segments accounts begin.
const SEGMENTS: u32 = 4;
/// What each has to begin with: one is short often, which is slow, and the others hardly ever.
const FUNDS: [i64; ACCOUNTS] = [50, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000];

/// The account that remembers many ids, of a run that loses nothing; it has one segment.
const CROWDED: usize = ACCOUNTS;
/// As many ids as calls, within these bounds: so many are in several blocks; and so many are what one segment is made for.
const CROWD: RangeInclusive<usize> = 16_384..=1_000_000;

/// There are no locks here; but slots do not move from a shard that came back before the longest lease is over.
const LEASE: Duration = Duration::from_secs(1);

/// Prefixes of keys; the seed chooses one for a run. They have characters that are special in Lua patterns, in globs, in
/// URLs or in names of keys. The last one is the longest that is allowed.
const PREFIXES: [&str; 6] = [
    "ringfence",
    "%d+(.-)^$",
    "*[a-z]?\\",
    "#shop:#",
    "--\"'<%7B7%7D>",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
];

/// Number of the process that runs all.
const MASTER: u32 = 0;
/// Numbers of the others, from here on.
const FIRST_TELLER: u32 = 1;

/// Every write is on a replica, and a plan for segments begins soon.
const TERMS: Terms = Terms {
    idempotency_for_ms: 24 * 60 * 60 * 1000,
    idempotency_at_least_ms: 60 * 1000,
    skew_ms: 500,
    ids_max: 2_000_000,
    effects_max: 2_000_000,
    ..Terms::new(Durability::Replicas(1))
};

/// Every write is on the disk.
const DISK_TERMS: Terms = Terms {
    durability: Durability::Disk,
    ..TERMS
};

/// Nothing is on a disk, or on a replica.
const LOSING_TERMS: Terms = Terms {
    durability: Durability::Memory,
    ..TERMS
};

/// Slower than this no machine is, in calls a second.
const CALLS_PER_SECOND_MIN: u64 = 50;

/// How long a resize may take once nothing is done to anybody.
const FINISHED_WITHIN: Duration = Duration::from_secs(60);

/// How a run is asked for.
#[derive(Args, Clone, Debug)]
pub struct CountersArgs {
    /// What all choices are made from; a new one if not said.
    #[arg(long)]
    pub seed: Option<u64>,
    /// How many calls are made.
    #[arg(long, default_value_t = 50_000)]
    pub calls: usize,
    /// Whether the ring is resized all the time.
    #[arg(long, action = ArgAction::Set, default_value_t = true)]
    pub resizes: bool,
    /// Whether shards leave their replicas behind, and a replica takes over, for good or for a while. Where nothing may be
    /// lost, an answer waits for a replica then; otherwise for the disk.
    #[arg(long, action = ArgAction::Set, default_value_t = true)]
    pub failovers: bool,
    /// Whether servers restart with nothing: what is lost with that is accepted. The ring is not resized then.
    #[arg(long)]
    pub losses: bool,
    /// Whether servers also restart from older copies of their files.
    #[arg(long, requires = "losses")]
    pub older_files: bool,
    /// Where logs are.
    #[command(flatten)]
    pub histories: HistoriesArgs,
}

/// Runs, finishes, checks.
///
/// # Errors
///
/// Something of our own failed: a file, a process, a server that does not start.
pub async fn run(args: &CountersArgs) -> io::Result<Outcome> {
    let fresh = || rand::make_rng::<StdRng>().random();
    let seed = args.seed.unwrap_or_else(fresh);
    println!("counters: seed {seed}, {} calls", args.calls);
    let histories = Histories::create(&args.histories)?;
    let begun = Instant::now();
    let happened = happen(seed, args, histories.dir()).await;
    let (mut outcome, found) = match happened {
        Ok(happened) => happened,
        Err(error) => return Err(histories.failed(error)),
    };
    outcome.took = begun.elapsed();
    let attempts = read(histories.dir())?;
    outcome.count(&attempts);
    outcome
        .violations
        .extend(audit_latches(&attempts, latches_last(args)));
    outcome.violations.extend(match &found {
        Found::Losses(losses) => audit_losses(&attempts, losses),
        Found::NoLosses {
            visitors,
            handovers,
        } => {
            let all = audit(&attempts, accounts(args), handovers).into_iter();
            let of_visitors = audit_visitors(&attempts, accounts(args), visitors);
            all.chain(of_visitors).collect()
        }
    });
    outcome.kept = histories.end(!outcome.violations.is_empty());
    Ok(outcome)
}

/// What the nemesis found that is not in the logs.
enum Found {
    /// What was lost.
    Losses(Vec<Losses>),
    /// When accounts came and went, and shards left their replicas behind.
    NoLosses {
        visitors: [Visitor; VISITORS],
        handovers: Vec<Handover>,
    },
}

/// Has everything happen, and be written down in `dir`.
async fn happen(seed: u64, args: &CountersArgs, dir: &Path) -> io::Result<(Outcome, Found)> {
    let (mut shards, urls, prefix) = start(seed, args).await?;
    let client = connect(&urls, prefix).await;
    let desk = Desk::open(&client, accounts(args), Log::create(dir, MASTER)?)
        .with_visitors(visitors(args));
    let terms = terms(args);
    fund(&desk, terms).await?;
    let come_and_go = Visitors {
        desk: &desk,
        terms,
        urls: urls.clone(),
        found: Mutex::default(),
        steps: AtomicUsize::new(0),
    };
    if !args.losses {
        come_and_go.begin().await;
    }
    let mut resizes = Resizes::new(dir.to_owned(), seed, urls.clone(), prefix);
    let like = TellerArgs {
        dir: dir.to_owned(),
        process: FIRST_TELLER,
        seed,
        urls,
        prefix: prefix.to_owned(),
        accounts: accounts(args),
        visitors: visitors(args),
        calls: args.calls,
        latches_on_disk: latches_last(args),
        after: None,
    };
    let mut tellers = Tellers::start(like, TELLERS)?;
    let always = report::always(args);
    let nemesis = Nemesis {
        desk: &desk,
        seed,
        loses: args.losses,
        goes_back: args.older_files,
        lost: Mutex::new(vec![Losses::default(); ACCOUNTS]),
        fails_over: args.failovers,
        handovers: Mutex::default(),
        crowd: (!args.losses).then(|| Crowd {
            desk: &desk,
            account: CROWDED,
            ids: args.calls.clamp(*CROWD.start(), *CROWD.end()),
        }),
        visitors: (!args.losses).then_some(&come_and_go),
        always: &always,
        done: Mutex::default(),
        violations: Mutex::default(),
    };
    let patience = Duration::from_secs(60 + args.calls as u64 / CALLS_PER_SECOND_MIN);
    let until = Instant::now() + patience;
    let to_ring = args.resizes.then_some(&mut resizes);
    nemesis
        .strike(&mut shards, to_ring, &mut tellers, until)
        .await?;
    for shard in &mut shards {
        shard.mend().await;
    }
    if args.losses {
        desk.accept(LOSING_TERMS, SEGMENTS).await;
        finish::finish(&desk, dir, [].into_iter()).await?;
    } else {
        resizes.finish(Instant::now() + FINISHED_WITHIN).await?;
        come_and_go.finish().await;
        finish::finish(&desk, dir, come_and_go.there()).await?;
    }
    client.close().await;
    Ok(told(seed, args, nemesis, &come_and_go))
}

/// Servers, where clients find them, and the prefix of all keys; the first ones are a ring.
async fn start(
    seed: u64,
    args: &CountersArgs,
) -> io::Result<(Vec<Shard>, Vec<String>, &'static str)> {
    let mut shards = Vec::new();
    for number in 0..SERVERS {
        shards.push(Shard::start(seed ^ number, args.losses).await);
    }
    let urls: Vec<String> = shards.iter().map(Shard::url).collect();
    let prefix = PREFIXES[(seed % PREFIXES.len() as u64) as usize];
    found(&urls[..SHARDS], prefix).await?;
    Ok((shards, urls, prefix))
}

/// What the nemesis did, and found.
fn told(
    seed: u64,
    args: &CountersArgs,
    nemesis: Nemesis<'_>,
    visitors: &Visitors<'_>,
) -> (Outcome, Found) {
    let Nemesis {
        done,
        violations,
        lost,
        handovers,
        ..
    } = nemesis;
    let outcome = Outcome::new(seed, args, done.into_inner(), violations.into_inner());
    let found = match args.losses {
        true => Found::Losses(lost.into_inner()),
        false => Found::NoLosses {
            visitors: *visitors.found.lock(),
            handovers: handovers.into_inner(),
        },
    };
    (outcome, found)
}

/// The terms of all accounts.
fn terms(args: &CountersArgs) -> Terms {
    match (args.losses, args.failovers) {
        (true, _) => LOSING_TERMS,
        (false, true) => TERMS,
        (false, false) => DISK_TERMS,
    }
}

/// Whether latches keep what was acknowledged: on disks, and where all is kept. A latch in doubt is no use: elsewhere
/// they are in memory, and may be lost.
fn latches_last(args: &CountersArgs) -> bool {
    !args.losses && !args.failovers
}

/// How many accounts a run has.
fn accounts(args: &CountersArgs) -> usize {
    ACCOUNTS + usize::from(!args.losses)
}

/// How many more come and go.
fn visitors(args: &CountersArgs) -> usize {
    if args.losses { 0 } else { VISITORS }
}

/// Founds the ring.
async fn found(urls: &[String], prefix: &str) -> io::Result<()> {
    let founder = Client::builder()
        .redis(urls)
        .prefix(prefix)
        .max_lease(LEASE)
        .servers_are_new(true);
    let founded = founder.build().await.map_err(io::Error::other)?;
    founded.close().await;
    Ok(())
}

/// What an account has from its beginning on: its credit line, or nothing. A loss of that could not be told from others.
fn credit(account: usize, terms: &Terms) -> i64 {
    match FUNDS.get(account) {
        Some(funds) if account % 2 == 1 && terms.durability != Durability::Memory => *funds,
        _ => 0,
    }
}

/// Creates the accounts, with some money in each.
async fn fund(desk: &Desk, terms: Terms) -> io::Result<()> {
    for account in 0..desk.accounts.len() {
        let segments = if account == CROWDED { 1 } else { SEGMENTS };
        let terms = Terms {
            floor: -credit(account, &terms),
            ..terms
        };
        let created = desk.create_one(account, terms, segments).await;
        created.map_err(io::Error::other)?;
    }
    for (account, funds) in FUNDS.into_iter().enumerate() {
        let order = Call::Change(desk.order("funds".into(), account, funds, Deed::Deposit));
        let answer = match credit(account, &terms) {
            0 => desk.call(&order).await,
            _ => desk.credited(&order),
        };
        if answer != Answer::Done {
            return Err(io::Error::other(format!("no funds: {answer:?}")));
        }
    }
    Ok(())
}
