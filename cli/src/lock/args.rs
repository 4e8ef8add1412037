//! What can be asked for.

use std::{env, ffi::OsString, os::unix::ffi::OsStrExt, time::Duration};

use ringfence_client::{BuildError, Builder, Client, Namespace, TopologyError, limits};

use super::error::{LockError, NOT_ACQUIRED};
use crate::seeds::{Seeds, Servers};

const AFTER: &str = "\
Exit codes:
  CMD's own, or 128 + the signal it died by
   75  another process held the lock for as long as --wait says; -E chooses
       another code
   75  the shard came back or is new, and granted nothing new for as long as
       --wait says, whatever -E says: perhaps nobody holds the lock
   69  servers unreachable or misconfigured, or without a topology
   80  the lock was lost: CMD got SIGTERM when a third of the lease was left
       unrenewed (or the loss was certain), then SIGKILL before the lease ended;
       with removal = leased, the same for the view lease, left unconfirmed
    2  the command line, or what it names, cannot be used
  126  CMD cannot be executed
  127  CMD is not found
  128 + signal  interrupted by it while waiting
   71  the operating system refused something else
Each of these, CMD's own aside, comes with a line on stderr.

Waiting:
  ringfence waits for the holder as long as --wait says; default: indefinitely.
  It asks servers that do not answer from the start for as long as --wait says;
  default: 10 s, so that jobs that cannot work fail instead of piling up. With
  --wait 0s it waits for nothing: neither for the holder, nor for a shard that
  came back, nor for a server that does not answer.
  What takes longer than half a second is explained on stderr.

CMD:
  It runs directly, not through a shell, in a process group of its own, with
  RINGFENCE_KEY, RINGFENCE_TOKEN (have the resource refuse a smaller one than
  it has seen) and RINGFENCE_EXPIRES_AT (Unix ms: when the lock would end if it
  were not renewed) in its environment. SIGINT, SIGTERM, SIGHUP, SIGQUIT,
  SIGUSR1 and SIGUSR2 are passed on to the group; at a terminal it has the
  foreground. Ctrl-Z stops the job as a whole: it is not renewed then, and if
  that takes longer than the lease it is ended (80). If ringfence dies, the
  group is killed at once. A process that leaves the group (setsid, a shell
  with jobs) is on its own; what CMD leaves behind in the group when it ends
  goes on without the lock.

Without CMD:
  The token is printed, and the lock held until stdin closes or one of those
  signals comes (exit code 0), or it is lost (80).

Examples:
  ringfence lock nightly-report --wait 0s -E 0 /opt/report --all
  ringfence lock deploy/eu --wait 5m --redis-file /etc/ringfence/servers ./deploy eu";

/// Run a command while a lock is held
///
/// Waits for the lock KEY, runs CMD, renews the lock for as long as CMD runs, and gives it back.
/// At most one CMD runs under a key at a time, on however many machines.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
#[command(override_usage = "ringfence lock [OPTIONS] <KEY> [OPTIONS] [--] [<CMD>...]")]
pub(crate) struct Args {
    /// What to lock: 1 to 512 bytes
    key: OsString,
    /// How long to wait for the lock; 0s: try once [default: indefinitely]
    #[arg(long, value_name = "LENGTH", value_parser = crate::length)]
    wait: Option<Duration>,
    /// The lease: how soon the lock is free again if this machine dies; renewed while CMD runs
    /// [default: the longest that the topology allows]
    #[arg(long, value_name = "LENGTH", value_parser = crate::length)]
    ttl: Option<Duration>,
    /// Found a topology on the servers if they have none. Everything that uses these locks must name the
    /// same servers; to found it beforehand: ringfence ring init
    #[arg(long)]
    found: bool,
    /// With --found: the servers have never held a lock, so that no recovery period is needed. Wrong, it
    /// can make two holders
    #[arg(long, requires = "found")]
    servers_are_new: bool,
    /// A set of keys of its own: a-z, 0-9, - and _, a letter first
    #[arg(long, value_name = "NS", default_value = "default", value_parser = Namespace::new)]
    namespace: Namespace,
    #[command(flatten)]
    seeds: Seeds,
    /// Exit with CODE if another process held the lock for as long as --wait says
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = NOT_ACQUIRED)]
    pub(super) conflict_exit_code: u8,
    /// What to run, and its arguments; options for ringfence come before it
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

/// The request, as far as it can be checked without servers.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) args: &'a Args,
    pub(super) servers: Servers,
}

impl Args {
    /// Checks the request.
    pub(super) fn check(&self) -> Result<Asked<'_>, LockError> {
        let bytes = self.key.len();
        if !(1..=limits::KEY_BYTES_MAX).contains(&bytes) {
            let max = limits::KEY_BYTES_MAX;
            let problem = format!("KEY has {bytes} bytes, must have 1 to {max}");
            return Err(LockError::Usage(problem));
        }
        if self.is_command_empty() {
            let problem =
                "CMD is empty: name a command, or leave out -- to hold the lock until stdin closes";
            return Err(LockError::Usage(problem.into()));
        }
        match self.ttl {
            Some(ttl) if ttl < limits::LEASE_MIN => Err(LockError::TtlTooShort(ttl)),
            _ => Ok(Asked {
                args: self,
                servers: self.seeds.servers()?,
            }),
        }
    }

    /// Whether a command was to be named, and none is: as with an empty variable after the dashes.
    fn is_command_empty(&self) -> bool {
        match self.command.first() {
            Some(program) => program.is_empty(),
            None => env::args_os().next_back().is_some_and(|last| last == "--"),
        }
    }
}

impl Asked<'_> {
    pub(super) fn key(&self) -> &[u8] {
        self.args.key.as_bytes()
    }

    pub(super) fn namespace(&self) -> &str {
        self.args.namespace.as_str()
    }

    /// A client of the servers, to be built.
    pub(super) fn client(&self) -> Builder {
        Client::builder()
            .redis(self.servers.urls())
            .existing_topology(!self.args.found)
            .servers_are_new(self.args.servers_are_new)
            .members_only(true)
    }

    /// What `error`, met by connecting to the servers, is.
    pub(super) fn failed(&self, error: BuildError) -> LockError {
        match error {
            BuildError::Topology(TopologyError::Absent) => {
                LockError::NoTopologyYet(self.servers.init_command())
            }
            error => LockError::NoTopology {
                shown: self.servers.located(&error.to_string()),
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
