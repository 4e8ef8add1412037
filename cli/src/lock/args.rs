//! What can be asked for.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, IsTerminal as _},
    os::unix::ffi::OsStrExt,
    time::Duration,
};

use ringfence_client::{
    BuildError, Builder, Client, Lock, MultiLock, Namespace, Preference, TopologyError, limits,
};
use ringfence_coordinator::shard::LockMode;

use super::error::{LockError, NOT_ACQUIRED};
use crate::place::{Named, Place};

/// The variable that tells a command its key; those of further keys go on with `_2`.
pub(super) const KEY_VARIABLE: &str = "RINGFENCE_KEY";

const AFTER: &str = "\
Exit codes:
  CMD's exit code, or 128 + the signal that killed it
   75  another process held the lock until --wait ended; -E chooses another code
   75  the shard restarted or is new, and granted no new locks until --wait
       ended, whatever -E says: the lock may be free
   69  servers or coordinators unreachable or misconfigured, or without a topology
   80  the lock was lost: CMD got SIGTERM when only a third of the lease was left
       (or the loss was certain), then SIGKILL before the lease ended; with
       removal = leased, the same applies to the view lease
    2  invalid command line or argument
  126  CMD cannot be executed
  127  CMD is not found
  128 + signal  interrupted while waiting
   71  another error of the operating system
Every exit code except CMD's own comes with a line on stderr; with --quiet, not
if another process held the lock.

Waiting:
  ringfence waits for the holder until --wait ends; default: indefinitely. If no
  server responds from the start, it gives up when --wait ends; default: 10 s, so
  that jobs fail instead of piling up. With --wait 0s it does not wait at all:
  neither for the holder, nor for a shard that restarted, nor for a server that
  does not respond. A wait of more than 0.5 s is explained on stderr, without --quiet.

CMD:
  CMD runs directly, not through a shell, in its own process group. Its
  environment has RINGFENCE_KEY, RINGFENCE_TOKEN (the resource must refuse
  smaller tokens than it has seen) and RINGFENCE_EXPIRES_AT (Unix time in ms: the
  end of the lock if it is not renewed). With several keys, these are the first
  one's; the others have RINGFENCE_KEY_2, RINGFENCE_TOKEN_2 and so on. SIGINT, SIGTERM, SIGHUP, SIGQUIT,
  SIGUSR1 and SIGUSR2 are passed on to the group; at a terminal, the group has
  the foreground. Ctrl-Z stops ringfence as well: the lock is not renewed, and if
  the stop is longer than the lease, CMD is ended (80). If ringfence dies, the
  group is killed at once. A process that leaves the group (setsid, a shell with
  jobs) is not stopped; processes that CMD leaves in the group when it ends
  continue without the lock.

Holding on (--hold-at-least):
  When CMD ends earlier, ringfence goes on holding the lock until that much time has passed since it was
  acquired, then exits with CMD's exit code. A signal, or the loss of the lock, ends that at once.

Several keys (--key, up to 64):
  CMD runs while all of them are held, or not at all. Processes that want the same
  keys in different orders never wait in a circle. If one is lost, all are.

Several holders (--mode, --permits and --of):
  --mode shared runs CMD beside others with --mode shared, and never beside one with
  --mode exclusive; the first to ask is served first. With --prefer readers, shared
  ones go before exclusive ones that wait, with --prefer writers the other way round:
  all users of KEY say the same, and the others may wait for ever. --permits 2 --of 5
  runs CMD while it holds 2 of 5 permits. A key is of one kind at a time: a plain lock, a
  lock with modes, or permits (75 while it is held as another kind).

Without CMD, at a terminal or with --until-eof:
  Prints the token (of each key, one per line), and holds the lock until stdin closes or one of those signals
  comes (exit code 0), or until the lock is lost (80). What a script starts
  with & has an empty stdin.

Coordinators (--coordinator):
  The lock is acquired and renewed by way of ringfence serve. If one of several fails,
  the lock goes on at the next, provided that they have the same handle_secret.

Examples:
  ringfence lock nightly-report --wait 0s -E 0 -q --hold-at-least 5m /opt/report --all
  ringfence lock deploy/eu --wait 5m --redis-file /etc/ringfence/servers ./deploy eu
  ringfence lock --key account/1 --key account/2 -- ./transfer 1 2
  ringfence lock render-farm --permits 2 --of 10 ./render scene-7";

/// Run a command under a lock
///
/// Acquires the lock KEY, runs CMD, renews the lock while CMD runs, and releases it. At most one
/// CMD per key runs at a time, across all machines.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
#[command(
    override_usage = "ringfence lock [OPTIONS] <KEY> [OPTIONS] [--] [<CMD>...]
       ringfence lock --key <KEY> --key <KEY> [OPTIONS] [-- <CMD>...]"
)]
pub(crate) struct Args {
    /// The key of the lock: 1 to 512 bytes. With --key: the command
    #[arg(required_unless_present = "keys")]
    key: Option<OsString>,
    /// A key, instead of KEY; repeat it to hold several locks at once
    #[arg(long = "key", value_name = "KEY", id = "keys")]
    keys: Vec<OsString>,
    /// Run beside others with --mode shared, or alone; without it, always alone
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Let shared ones (readers) or exclusive ones (writers) go before others that wait; without it, the first to ask is
    /// served first
    #[arg(long, value_enum, value_name = "SIDE", requires = "mode")]
    prefer: Option<Side>,
    /// Hold this many permits of those that --of says [default: 1]
    #[arg(long, value_name = "K", requires = "of")]
    permits: Option<u32>,
    /// How many permits there are; every user of KEY says the same number
    #[arg(long, value_name = "N", conflicts_with = "mode")]
    of: Option<u32>,
    /// Maximum wait for the lock; 0s: try once [default: indefinitely]
    #[arg(long, value_name = "LENGTH", value_parser = crate::length)]
    wait: Option<Duration>,
    /// The lease: after a crash of this machine, the lock is free when it ends. It is renewed while
    /// CMD runs [default: the maximum lease of the topology]
    #[arg(long, value_name = "LENGTH", value_parser = crate::length)]
    ttl: Option<Duration>,
    /// Hold the lock for at least this long, also if CMD ends earlier: so a short job that several machines start by their
    /// own clocks runs once
    #[arg(long, value_name = "LENGTH", value_parser = crate::length)]
    pub(super) hold_at_least: Option<Duration>,
    /// Found a topology on the servers if they have none. All users of these locks must name the
    /// same servers; to found it beforehand: ringfence ring init
    #[arg(long)]
    found: bool,
    /// With --found: the servers have never held a lock, so no recovery period is needed. If that
    /// is wrong, a lock can have two holders
    #[arg(long, requires = "found")]
    servers_are_new: bool,
    /// The namespace of the key: a-z, 0-9, - and _, a letter first
    #[arg(long, value_name = "NS", default_value = "default", value_parser = Namespace::new)]
    namespace: Namespace,
    #[command(flatten)]
    place: Place,
    /// The exit code if another process held the lock until --wait ended
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = NOT_ACQUIRED)]
    pub(super) conflict_exit_code: u8,
    /// Print nothing if another process holds the lock, neither while this waits nor at the end of --wait
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Without CMD: hold the lock until stdin closes, although it is no terminal
    #[arg(long, conflicts_with = "command")]
    until_eof: bool,
    /// The command and its arguments. Options of ringfence come before it
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The two sides of a read-write lock.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Mode {
    Shared,
    Exclusive,
}

/// The side of a read-write lock that goes first.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Side {
    Readers,
    Writers,
}

/// The request, as far as it can be checked without servers.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) args: &'a Args,
    pub(super) place: Named,
    /// At least one.
    pub(super) keys: Vec<&'a OsStr>,
    /// Empty: none is to run.
    pub(super) command: Vec<&'a OsStr>,
}

impl Args {
    /// Checks the request.
    pub(super) fn check(&self) -> Result<Asked<'_>, LockError> {
        let (keys, command) = self.keys_and_command();
        let lengths = 1..=limits::KEY_BYTES_MAX;
        if let Some(key) = keys.iter().find(|key| !lengths.contains(&key.len())) {
            let (bytes, max) = (key.len(), limits::KEY_BYTES_MAX);
            let problem = format!("KEY has {bytes} bytes, must have 1 to {max}");
            return Err(LockError::Usage(problem));
        }
        if keys.len() > limits::MULTI_LOCK_KEYS_MAX {
            let (count, max) = (keys.len(), limits::MULTI_LOCK_KEYS_MAX);
            let problem = format!("{count} keys: at most {max}");
            return Err(LockError::Usage(problem));
        }
        if let Some((count, capacity)) = self.permits()
            && !(LockMode::Permits { count, capacity }.is_possible())
        {
            let max = limits::PERMITS_MAX;
            let problem = format!(
                "--permits is {count} and --of is {capacity}: permits must be 1 to --of, and --of at most {max}"
            );
            return Err(LockError::Usage(problem));
        }
        if is_command_empty(&command) {
            let problem =
                "CMD is empty: name a command, or leave out -- to hold the lock until stdin closes";
            return Err(LockError::Usage(problem.into()));
        }
        if command.is_empty() && !self.until_eof && !io::stdin().is_terminal() {
            let problem = "no CMD, and stdin is not a terminal: name a command, or give --until-eof to hold the lock until \
                           stdin closes";
            return Err(LockError::Usage(problem.into()));
        }
        if command.is_empty() && self.hold_at_least.is_some() {
            let problem =
                "--hold-at-least needs a CMD: without one the lock is held until stdin closes";
            return Err(LockError::Usage(problem.into()));
        }
        match self.ttl {
            Some(ttl) if ttl < limits::LEASE_MIN => Err(LockError::TtlTooShort(ttl)),
            _ => Ok(Asked {
                args: self,
                place: self.place()?,
                keys,
                command,
            }),
        }
    }

    fn place(&self) -> Result<Named, LockError> {
        match self.place.named()? {
            Named::Coordinators(_) if self.found => {
                let problem = "--found needs --redis: a coordinator founds no topology";
                Err(LockError::Usage(problem.into()))
            }
            place => Ok(place),
        }
    }

    /// The permits to hold, and how many there are.
    fn permits(&self) -> Option<(u32, u32)> {
        self.of.map(|of| (self.permits.unwrap_or(1), of))
    }

    /// With `--key`, the first of the other words is the command's.
    fn keys_and_command(&self) -> (Vec<&OsStr>, Vec<&OsStr>) {
        let mut words = self
            .key
            .iter()
            .chain(&self.command)
            .map(OsString::as_os_str);
        let keys = match self.keys.is_empty() {
            true => words.by_ref().take(1).collect(),
            false => self.keys.iter().map(OsString::as_os_str).collect(),
        };
        (keys, words.collect())
    }
}

/// Whether a command was to be named, and none is: as with an empty variable after the dashes.
fn is_command_empty(command: &[&OsStr]) -> bool {
    match command.first() {
        Some(program) => program.is_empty(),
        None => env::args_os().next_back().is_some_and(|last| last == "--"),
    }
}

impl Asked<'_> {
    /// A key that a `ringfence lock` has which this one runs under.
    pub(super) fn nested(&self) -> Option<&OsStr> {
        let held = |(name, value): (OsString, OsString)| {
            let name = name.to_str()?.strip_prefix(KEY_VARIABLE)?;
            (name.is_empty() || name.starts_with('_')).then_some(value)
        };
        let held: Vec<_> = env::vars_os().filter_map(held).collect();
        let mut keys = self.keys.iter().copied();
        keys.find(|key| held.iter().any(|held| held == key))
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| key.as_bytes())
    }

    fn namespace(&self) -> &str {
        self.args.namespace.as_str()
    }

    /// The locks to acquire.
    pub(super) fn locks(&self, client: &Client) -> MultiLock {
        let locks = client.multi_lock(self.keys()).namespace(self.namespace());
        let locks = match self.args.prefer {
            Some(Side::Readers) => locks.prefer(Preference::Readers),
            Some(Side::Writers) => locks.prefer(Preference::Writers),
            None => locks,
        };
        match (self.args.mode, self.args.permits()) {
            (Some(Mode::Shared), _) => locks.read(),
            (Some(Mode::Exclusive), _) => locks.write(),
            (None, Some((count, capacity))) => locks.permits(count, capacity),
            (None, None) => locks,
        }
    }

    /// Whether the locks may have several holders.
    pub(super) fn has_shares(&self) -> bool {
        self.args.mode.is_some() || self.args.of.is_some()
    }

    /// The locks one by one, to look at.
    pub(super) fn each_lock(&self, client: &Client) -> impl Iterator<Item = Lock> {
        let keys = self.keys();
        keys.map(|key| client.lock(key).namespace(self.namespace()))
    }

    /// A client of the servers, to be built.
    pub(super) fn client(&self) -> Builder {
        self.place
            .client()
            .existing_topology(!self.args.found)
            .servers_are_new(self.args.servers_are_new)
            .members_only(true)
    }

    /// What `error`, met by connecting to the servers, is.
    pub(super) fn failed(&self, error: BuildError) -> LockError {
        match error {
            BuildError::Topology(TopologyError::Absent) => {
                LockError::NoTopologyYet(self.place.init_command())
            }
            error => LockError::NoTopology {
                shown: self.place.located(&error.to_string()),
                error,
            },
        }
    }

    pub(super) fn wait(&self) -> Option<Duration> {
        self.args.wait
    }

    /// The lease there will be.
    pub(super) fn lease(&self, client: &Client) -> Duration {
        let max = client.topology().constants.max_lease();
        self.args.ttl.unwrap_or(max)
    }
}
