//! Attacks on a coordinator with its default limits, each on a `ringfence serve` of its own, beside a caller that means well.
//!
//! ```text
//! run ─► target: two Redis servers, one coordinator
//!  ├──► caller: its calls, calls over new connections, /healthz     quiet, then under attack
//!  └──► attacker, in a process of its own ─► flood
//! ```
//!
//! | file | content |
//! |---|---|
//! | `target.rs` | the coordinator: started, its memory, stopped |
//! | `caller.rs` | the caller that means well, and what it measures |
//! | `attacker.rs` | the process of an attack |
//! | `silent.rs` | connections that say little |
//! | `calls.rs` | calls without end |
//! | `sessions.rs` | sessions |
//! | `frames.rs` | frames of HTTP/2 without end |
//!
//! An attacker has one task, at the lowest priority: it gets the processor time that the service and the caller leave, so that
//! the service is measured, and not the machine's two cores. It waits for its answers, and has a bounded number of calls
//! under way.

mod attacker;
mod caller;
mod calls;
mod frames;
mod sessions;
mod silent;
mod target;

use std::{fmt, io, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use self::{
    caller::{Caller, Measured},
    target::{GRACE, Target},
};

pub use attacker::{AttackerArgs, run as attacker};

/// Of the coordinator: its resident memory at its peak. A limit of the address space would count what is reserved alone.
const MEMORY_MAX: u64 = 512 << 20;
/// The p99 of the caller's pairs under attack, as a multiple of the quiet one, or of [`QUIET_AT_LEAST`].
const SLOWER_MAX: u32 = 5;
/// A quiet p99 below this counts as this: a processor that others have for one slice is no attack.
const QUIET_AT_LEAST: Duration = Duration::from_millis(20);
/// `/healthz` answers.
const HEALTH_WITHIN: Duration = Duration::from_secs(1);
/// A caller with a new connection has acquired and released a lock.
const NEW_WITHIN: Duration = Duration::from_secs(2);
/// A coordinator that gets SIGTERM ends within its grace and this.
const STOP_BEYOND: Duration = Duration::from_secs(2);

/// How the attacks are run.
#[derive(Args, Debug)]
pub struct AttackArgs {
    /// The program `ringfence`.
    #[arg(long)]
    ringfence: PathBuf,
    /// These attacks only.
    only: Vec<Attack>,
}

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// 1,500 connections of one byte each, from one address.
    OneByte,
    /// 2,000 of them, from ten addresses.
    OneByteManyAddresses,
    /// The same after a TLS handshake.
    OneByteTls,
    /// TLS handshakes, one after the other.
    Handshakes,
    /// More connections than the coordinator has descriptors.
    Descriptors,
    /// 1,500 connections of one principal, each with a call, from ten addresses.
    Connections,
    /// 800 connections to the monitor's port without a request, from ten addresses.
    Monitor,
    /// 800 of them, of which each sends a byte of a header per second.
    SlowHeaders,
    /// 4,000 waiters with labels of 60 kB.
    Labels,
    /// As many locks as a principal gets, with keys of 500 bytes.
    Holds,
    /// Sessions of a principal without the role, which ask and do not read the answers.
    AsksWithoutRole,
    /// Sessions which acquire, and do not read the answers.
    UnreadSessions,
    /// Sessions which ping, and do not read the answers.
    UnreadPings,
    /// Pings without end in sessions with 1,000 locks.
    Pings,
    /// Resumptions of ended locks without end, in sessions.
    Resumptions,
    /// Calls with unknown tokens.
    UnknownTokens,
    /// Calls without the role.
    WithoutRole,
    /// Renewals and releases of ended locks.
    EndedLocks,
    /// Renewals and releases with forged handles.
    ForgedHandles,
    /// 10,000 waits for latches.
    Latches,
    /// Lists of all locks.
    Lists,
    /// Lists of all locks that are not read, however much may be sent.
    UnreadLists,
    /// 10,000 watches of the health.
    Watches,
    /// 10,000 streams of reflection that ask for files.
    Reflection,
    /// Streams that are opened and reset at once.
    RapidReset,
    /// PING frames whose answers are not read.
    PingFrames,
    /// SETTINGS frames whose answers are not read.
    SettingsFrames,
    /// Calls whose headers are as long as they may be, and headers without an end.
    Headers,
    /// 10,000 messages of 64 KiB of which the last bytes are missing.
    HalfMessages,
    /// The same, of callers that are not known.
    HalfChecks,
}

impl Attack {
    fn name(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_owned()
    }

    fn over_tls(self) -> bool {
        matches!(self, Self::OneByteTls | Self::Handshakes)
    }

    /// The descriptors of the coordinator, if it has fewer than it could have.
    fn descriptors(self) -> Option<u32> {
        (self == Self::Descriptors).then_some(256)
    }
}

/// What came of an attack.
#[derive(Debug)]
struct Outcome {
    attack: Attack,
    sent: u64,
    peak: u64,
    quiet: Measured,
    attacked: Measured,
    stopped: Duration,
}

/// Runs the attacks, one after the other, and prints a table. Returns the names of those that broke a bound.
///
/// # Errors
///
/// A process cannot be started, or ended by itself.
pub async fn run(args: &AttackArgs) -> io::Result<Vec<String>> {
    let chosen = match args.only.is_empty() {
        true => Attack::value_variants(),
        false => &args.only,
    };
    println!(
        "attack                   sent      peak MB  quiet p99 ms  p99 ms  new caller ms  healthz ms  stop s"
    );
    let mut broken = Vec::new();
    for attack in chosen {
        let outcome = one(args, *attack).await?;
        println!("{outcome}");
        let breaches = outcome.breaches();
        for breach in &breaches {
            println!("  broken: {breach}");
        }
        if !breaches.is_empty() {
            broken.push(attack.name());
        }
    }
    match &*broken {
        [] => println!("no attack broke a bound"),
        broken => println!("broken by: {}", broken.join(", ")),
    }
    Ok(broken)
}

async fn one(args: &AttackArgs, attack: Attack) -> io::Result<Outcome> {
    let mut target = Target::start(&args.ringfence, attack).await?;
    let caller = Caller::new(&target)?;
    let quiet = caller.measure().await;
    let attacker = target.attacked_by(attack).await?;
    let attacked = caller.measure().await;
    let sent = attacker.sent();
    let (peak, stopped) = target.stop().await?;
    Ok(Outcome {
        attack,
        sent,
        peak,
        quiet,
        attacked,
        stopped,
    })
}

impl Outcome {
    /// The bounds that it broke.
    fn breaches(&self) -> Vec<String> {
        let quiet = self.quiet.p99().max(QUIET_AT_LEAST);
        let Measured {
            new_caller, health, ..
        } = self.attacked;
        let mut breaches = Vec::new();
        let mut bound = |what: &str, is: Duration, most: Duration| {
            if is > most {
                breaches.push(format!("{what}: {is:?}, must be at most {most:?}"));
            }
        };
        bound("p99", self.attacked.p99(), SLOWER_MAX * quiet);
        bound("a new caller", new_caller, NEW_WITHIN);
        bound("healthz", health, HEALTH_WITHIN);
        bound("stop", self.stopped, GRACE + STOP_BEYOND);
        if self.peak > MEMORY_MAX {
            let (is, most) = (self.peak >> 20, MEMORY_MAX >> 20);
            breaches.push(format!("memory: {is} MiB, must be at most {most} MiB"));
        }
        breaches.extend(self.attacked.failures.iter().cloned());
        breaches
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |length: Duration| length.as_secs_f64() * 1000.0;
        write!(
            formatter,
            "{:<22} {:>9} {:>9} {:>13.1} {:>7.1} {:>14.0} {:>11.0} {:>7.1}",
            self.attack.name(),
            self.sent,
            self.peak >> 20,
            ms(self.quiet.p99()),
            ms(self.attacked.p99()),
            ms(self.attacked.new_caller),
            ms(self.attacked.health),
            self.stopped.as_secs_f64(),
        )
    }
}
