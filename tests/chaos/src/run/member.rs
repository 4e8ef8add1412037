//! One shard: a primary, its replica, and the clock of both.
#![expect(
    clippy::unwrap_used,
    reason = "a server of ours that fails fails the run"
)]

use std::{
    fs::{self, File},
    io,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use redis::FromRedisValue;
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Flow, Proxy, WallClock, Whose, ask};
use tokio::time::{Instant, sleep};

use super::{plan::Step, replicated::Replicated};
use crate::history::Fault;

/// How much longer things take to and from a server that is [delayed](Fault::Delay).
const DELAY: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(400);
/// Between two times of what is done again and again.
const AGAIN: Duration = Duration::from_millis(200);

/// A deadline allows for 20 ms and a hundredth of the lease.
const STEP_FORWARD_MS: i64 = 30;
/// Longer than a lease.
const STEP_BACK_MS: u64 = 5_000;

/// A shard that things are done to.
#[derive(Debug)]
pub struct Member {
    pair: Replicated,
    clock: WallClock,
    /// How far that is ahead of the machine's.
    ahead_ms: i64,
}

impl Member {
    /// Starts both servers, and a proxy in front of the primary.
    pub async fn start(seed: u64) -> Self {
        let clock = WallClock::default();
        let builder = clock.set_up(RedisServer::builder());
        let builder = builder
            .set("appendonly", "yes")
            .set("appendfsync", "always");
        Self {
            pair: Replicated::start(&builder, seed).await,
            clock,
            ahead_ms: 0,
        }
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        self.proxy().url()
    }

    /// What is between it and its clients.
    pub fn proxy(&self) -> &Proxy {
        self.pair.proxy()
    }

    /// Does what `step` says, and undoes it.
    pub async fn suffer(&mut self, step: &Step) {
        match step.fault {
            Fault::RestartEmpty | Fault::RestartAof | Fault::RestartAofCut => {
                self.restart(step).await;
            }
            Fault::Failover | Fault::Switchover | Fault::ThereAndBack => {
                self.leave_replica_behind().await;
                sleep(step.lasts).await;
                match step.fault {
                    Fault::Failover => self.pair.fail_over().await,
                    Fault::Switchover => self.pair.switch_over().await,
                    _ => self.go_there_and_back().await,
                }
            }
            Fault::Retarget => {
                self.leave_replica_behind().await;
                self.pair.lead_to_other();
                sleep(step.lasts).await;
                self.pair.lead_back().await;
            }
            Fault::StepClock => self.step_clock(step.dice),
            Fault::FlushAll => self.ask::<()>(&["FLUSHALL"]).await,
            Fault::StopServer => {
                self.pair.primary().stop();
                sleep(step.lasts).await;
                self.pair.primary().cont();
            }
            Fault::CutNotifications => {
                let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
                let cut = async || self.ask::<()>(&kill).await;
                again_and_again(step.lasts, cut).await;
            }
            Fault::FunctionFlush => {
                let flush = async || self.ask::<()>(&["FUNCTION", "FLUSH"]).await;
                again_and_again(step.lasts, flush).await;
            }
            Fault::Cut | Fault::Delay | Fault::BlackHole => befall(self.proxy(), step).await,
            Fault::KillClient
            | Fault::EndClient
            | Fault::StopClient
            | Fault::KillCoordinator
            | Fault::EndCoordinator
            | Fault::StopCoordinator
            | Fault::BlackHoles
            | Fault::ForceRelease
            | Fault::KillMover
            | Fault::StopMover
            | Fault::TwoMovers
            | Fault::TurnBack
            | Fault::RemoveShard
            | Fault::Heal => {}
        }
    }

    /// Kills both servers for good.
    pub(super) fn fail(&mut self) {
        self.pair.fail();
    }

    fn step_clock(&mut self, dice: u64) {
        self.ahead_ms += match dice % 4 {
            0 => STEP_FORWARD_MS,
            _ => -i64::try_from(dice % STEP_BACK_MS).unwrap(),
        };
        self.clock.set_millis(self.ahead_ms);
    }

    /// Kills the primary and starts it again, with its append-only file as it was, or cut off where
    /// it ended a while ago, or without.
    async fn restart(&mut self, step: &Step) {
        let cut = step.fault == Fault::RestartAofCut;
        let (file, length) = append_only(self.pair.primary().dir()).unwrap();
        if cut {
            sleep(step.lasts).await;
        }
        self.pair.primary_mut().kill();
        if cut {
            let torn = length + step.dice % 100;
            let file = File::options().write(true).open(file).unwrap();
            let length = torn.min(file.metadata().unwrap().len());
            file.set_len(length).unwrap();
        } else {
            sleep(step.lasts).await;
        }
        if step.fault == Fault::RestartEmpty {
            fs::remove_dir_all(self.pair.primary().dir().join("appendonlydir")).unwrap();
        }
        self.pair.primary_mut().restart().await.unwrap();
    }

    /// From now on the replica hears of nothing.
    pub async fn leave_replica_behind(&self) {
        self.pair.leave_replica_behind().await;
    }

    /// The primary follows its replica, which was left behind, until it has what that has, and is a
    /// primary again. It cuts no connection.
    pub async fn go_there_and_back(&mut self) {
        self.pair.go_there_and_back().await;
    }

    async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        ask(self.pair.primary(), words).await
    }
}

/// Does to the connections through `proxy` what `step` says, and undoes it.
pub(super) async fn befall(proxy: &Proxy, step: &Step) {
    match (step.fault, step.dice % 3) {
        (Fault::Cut, _) => {
            let cut = async || proxy.cut(&Whose::All);
            return again_and_again(step.lasts, cut).await;
        }
        (Fault::Delay, _) => proxy.both(&Whose::All, Flow::Delay(DELAY)),
        (Fault::BlackHole | Fault::BlackHoles, 0) => proxy.requests(&Whose::All, Flow::Lose),
        (Fault::BlackHole | Fault::BlackHoles, 1) => proxy.replies(&Whose::All, Flow::Lose),
        (Fault::BlackHole | Fault::BlackHoles, _) => proxy.both(&Whose::All, Flow::Hold),
        _ => return,
    }
    sleep(step.lasts).await;
    proxy.heal();
}

async fn again_and_again(lasts: Duration, what: impl AsyncFn()) {
    let until = Instant::now() + lasts;
    while Instant::now() < until {
        what().await;
        sleep(AGAIN).await;
    }
}

/// The append-only file that is being written in `dir`, and its length.
fn append_only(dir: &Path) -> io::Result<(PathBuf, u64)> {
    let sequence = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let number = name.strip_suffix(".incr.aof")?.rsplit('.').next()?;
        number.parse::<u64>().ok()
    };
    let files = fs::read_dir(dir.join("appendonlydir"))?;
    let paths = files.map(|file| Ok(file?.path()));
    let paths = paths.collect::<io::Result<Vec<_>>>()?;
    let last = paths.into_iter().max_by_key(sequence);
    let last = last.ok_or(io::ErrorKind::NotFound)?;
    let length = last.metadata()?.len();
    Ok((last, length))
}
