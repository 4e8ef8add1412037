//! Runs the command while the lock is held.

use std::{
    io, iter,
    process::{Command, ExitCode},
    time::Duration,
};

use nix::{
    sys::{
        signal::{Signal, kill},
        wait::WaitStatus,
    },
    unistd::{Pid, getpgid},
};
use ringfence_client::{BootClock, Clock, Instant, MultiGuard};
use ringfence_coordinator::clock::sleep_until;

use super::{
    Group, LockError, Signals,
    args::{Asked, KEY_VARIABLE},
    end::End,
    fate::{Event, Fate},
    terminal::{self, Foreground},
};

/// After a certain loss the command has this long to end by itself. Another process may hold the lock already.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs the command. Returns its exit code.
pub(super) async fn run(
    asked: &Asked<'_>,
    group: Group,
    guard: &MultiGuard,
    signals: &mut Signals,
) -> Result<ExitCode, LockError> {
    let mut fate = Fate::listen()?;
    let mut command = command(asked, guard);
    // Both before the start of the command, so that it is never in the background, or without a guardian.
    let foreground = Foreground::lend(group.id());
    let mut end = End::new(group, guard);
    end.put_off();
    let spawned = end.group.spawn(&mut command);
    let child = spawned.map_err(|error| LockError::not_started(asked.command[0], error))?;
    let mut work = Work {
        end,
        child,
        foreground,
        course: Course::Held,
    };
    let ended = work.supervise(&mut fate, signals).await?;
    work.come_to(ended)
}

/// The command with its environment, not started.
fn command(asked: &Asked<'_>, guard: &MultiGuard) -> Command {
    let [program, arguments @ ..] = &asked.command[..] else {
        unreachable!("there is a group because there is a command")
    };
    let expires_at = BootClock.unix() + guard.remaining();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("RINGFENCE_EXPIRES_AT", expires_at.as_millis().to_string());
    for (index, (key, token)) in iter::zip(&asked.keys, guard.tokens()).enumerate() {
        let suffix = match index {
            0 => String::new(),
            index => format!("_{}", index + 1),
        };
        command
            .env(format!("{KEY_VARIABLE}{suffix}"), key)
            .env(format!("RINGFENCE_TOKEN{suffix}"), token.to_string());
    }
    command
}

/// The fate of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// It runs.
    Held,
    /// It was asked to end, and will be killed.
    Ending,
    /// It was killed.
    Killed,
}

/// A command under way.
struct Work<'a> {
    end: End<'a>,
    child: Pid,
    foreground: Option<Foreground>,
    course: Course,
}

impl Work<'_> {
    /// Waits for the command while the lock is renewed. Returns how the command ended.
    ///
    /// A failed renewal does not end it: the next one mostly succeeds. The rest of the lease decides.
    async fn supervise(
        &mut self,
        fate: &mut Fate,
        signals: &mut Signals,
    ) -> io::Result<WaitStatus> {
        loop {
            tokio::select! {
                biased;
                event = fate.of(self.child) => match event? {
                    Event::Ended(status) => return Ok(status),
                    Event::Stopped => self.stop(),
                    Event::GoOn => self.go_on(),
                },
                signal = signals.next() => self.signal(signal),
                () = self.end.guard.lost(), if self.course == Course::Held => {
                    self.end.bring_forward(LAST_WORDS);
                    self.terminate();
                }
                () = sleep_until(&BootClock, self.next_look()) => self.look(),
            }
        }
    }

    fn next_look(&self) -> Instant {
        match self.course {
            Course::Held => self.end.next_look(),
            Course::Ending => self.end.at,
            Course::Killed => Instant::from_nanos(u64::MAX),
        }
    }

    fn look(&mut self) {
        match self.course {
            Course::Held if self.end.is_near() => self.terminate(),
            Course::Held => self.end.put_off(),
            Course::Ending | Course::Killed => {
                self.signal(Signal::SIGKILL);
                self.course = Course::Killed;
            }
        }
    }

    /// Asks the command to end, once and for all.
    fn terminate(&mut self) {
        self.course = Course::Ending;
        self.signal(Signal::SIGTERM);
        // A stopped command could not handle it.
        self.signal(Signal::SIGCONT);
    }

    /// Sends `signal` to the group, and to a command that left it, as an interactive shell does.
    fn signal(&self, signal: Signal) {
        self.end.group.signal(signal);
        if getpgid(Some(self.child)) != Ok(self.end.group.id()) {
            let _ = kill(self.child, signal);
        }
    }

    /// The command was stopped. At a terminal the job is stopped as a whole, for its shell to see.
    /// Elsewhere the process that stopped the command decides.
    fn stop(&mut self) {
        let had_foreground = self.foreground.take().is_some();
        if terminal::is_there() {
            // Returns when the shell continues the job; at once if there is no such shell.
            let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
        }
        if had_foreground {
            self.go_on();
        }
    }

    fn go_on(&mut self) {
        if self.foreground.is_none() {
            self.foreground = Foreground::lend(self.end.group.id());
        }
        self.signal(Signal::SIGCONT);
    }

    /// The result of the command, which has `ended`. Other processes of its group go on, unless the lock was lost.
    fn come_to(self, ended: WaitStatus) -> Result<ExitCode, LockError> {
        if self.course != Course::Held || self.end.came(ended) {
            return Err(LockError::Lost);
        }
        self.end.group.leave();
        match ended {
            WaitStatus::Exited(_, code) => Ok(ExitCode::from(code as u8)),
            WaitStatus::Signaled(_, signal, _) => Err(LockError::Killed(signal)),
            other => unreachable!("{other:?} is no end"),
        }
    }
}
