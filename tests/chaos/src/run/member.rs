//! One shard: two servers, of which one is a primary and the other follows it, behind one address.
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

use redis::{FromRedisValue, InfoDict};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Flow, Proxy, WallClock, Whose, ask, eventually};
use tokio::time::{Instant, sleep};

use super::plan::Step;
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
    nodes: [RedisServer; 2],
    /// Which of them is the primary.
    active: usize,
    proxy: Proxy,
    clock: WallClock,
    /// How far that is ahead of the machine's.
    ahead_ms: i64,
}

impl Member {
    /// Starts both servers, and a proxy in front of the primary.
    pub async fn start(seed: u64) -> Self {
        let clock = WallClock::default();
        let server = || {
            let builder = clock.set_up(RedisServer::builder());
            let builder = builder
                .set("appendonly", "yes")
                .set("appendfsync", "always")
                .set("repl-diskless-sync-delay", 0);
            builder.spawn()
        };
        let nodes = [server().await.unwrap(), server().await.unwrap()];
        let proxy = Proxy::seeded(nodes[0].port(), seed).await;
        let member = Self {
            nodes,
            active: 0,
            proxy,
            clock,
            ahead_ms: 0,
        };
        member.follow(1).await;
        // A server's first replica gives it another replication id, and so another life.
        member.in_step(1).await;
        member
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        self.proxy.url()
    }

    /// What is between it and its clients.
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Does what `step` says, and undoes it.
    pub async fn suffer(&mut self, step: &Step) {
        match step.fault {
            Fault::RestartEmpty | Fault::RestartAof | Fault::RestartAofCut => {
                self.restart(step).await;
            }
            Fault::Failover => self.failover(step.lasts).await,
            Fault::Switchover => self.switchover(step.lasts).await,
            Fault::ThereAndBack => self.there_and_back(step.lasts).await,
            Fault::Retarget => self.retarget(step.lasts).await,
            Fault::StepClock => self.step_clock(step.dice),
            Fault::FlushAll => self.ask::<()>(self.active, &["FLUSHALL"]).await,
            Fault::StopServer => {
                self.nodes[self.active].stop();
                sleep(step.lasts).await;
                self.nodes[self.active].cont();
            }
            Fault::Cut => {
                let cut = async || self.proxy.cut(&Whose::All);
                again_and_again(step.lasts, cut).await;
            }
            Fault::CutNotifications => {
                let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
                let cut = async || self.ask::<()>(self.active, &kill).await;
                again_and_again(step.lasts, cut).await;
            }
            Fault::FunctionFlush => {
                let flush = async || self.ask::<()>(self.active, &["FUNCTION", "FLUSH"]).await;
                again_and_again(step.lasts, flush).await;
            }
            Fault::Delay => {
                self.proxy.both(&Whose::All, Flow::Delay(DELAY));
                self.heal_after(step.lasts).await;
            }
            Fault::BlackHole => {
                match step.dice % 3 {
                    0 => self.proxy.requests(&Whose::All, Flow::Lose),
                    1 => self.proxy.replies(&Whose::All, Flow::Lose),
                    _ => self.proxy.both(&Whose::All, Flow::Hold),
                }
                self.heal_after(step.lasts).await;
            }
            Fault::KillClient
            | Fault::EndClient
            | Fault::StopClient
            | Fault::KillMover
            | Fault::StopMover
            | Fault::TwoMovers
            | Fault::TurnBack
            | Fault::Heal => {}
        }
    }

    fn step_clock(&mut self, dice: u64) {
        self.ahead_ms += match dice % 4 {
            0 => STEP_FORWARD_MS,
            _ => -i64::try_from(dice % STEP_BACK_MS).unwrap(),
        };
        self.clock.set_millis(self.ahead_ms);
    }

    async fn heal_after(&self, lasts: Duration) {
        sleep(lasts).await;
        self.proxy.heal();
    }

    /// Kills the primary and starts it again, with its append-only file as it was, or cut off where
    /// it ended a while ago, or without.
    async fn restart(&mut self, step: &Step) {
        let cut = step.fault == Fault::RestartAofCut;
        let (file, length) = append_only(self.nodes[self.active].dir()).unwrap();
        if cut {
            sleep(step.lasts).await;
        }
        self.nodes[self.active].kill();
        if cut {
            let torn = length + step.dice % 100;
            let file = File::options().write(true).open(file).unwrap();
            let length = torn.min(file.metadata().unwrap().len());
            file.set_len(length).unwrap();
        } else {
            sleep(step.lasts).await;
        }
        if step.fault == Fault::RestartEmpty {
            fs::remove_dir_all(self.nodes[self.active].dir().join("appendonlydir")).unwrap();
        }
        self.nodes[self.active].restart().await.unwrap();
    }

    /// The replica goes stale, the primary dies, and the address moves.
    async fn failover(&mut self, lasts: Duration) {
        let (old, new) = (self.active, 1 - self.active);
        self.leave_replica_behind().await;
        sleep(lasts).await;
        self.nodes[old].kill();
        self.lead_to(new);
        self.nodes[old].restart().await.unwrap();
        self.follow(old).await;
    }

    /// The replica goes stale, and takes over; the primary follows it.
    async fn switchover(&mut self, lasts: Duration) {
        let (old, new) = (self.active, 1 - self.active);
        self.leave_replica_behind().await;
        sleep(lasts).await;
        self.active = new;
        self.follow(old).await;
        self.lead_to(new);
    }

    /// Clients find another primary for a while, which has not followed the first one lately, then the first one again.
    async fn retarget(&mut self, lasts: Duration) {
        let (first, other) = (self.active, 1 - self.active);
        self.leave_replica_behind().await;
        self.lead_to(other);
        sleep(lasts).await;
        self.lead_to(first);
        self.follow(other).await;
    }

    async fn there_and_back(&mut self, lasts: Duration) {
        self.leave_replica_behind().await;
        sleep(lasts).await;
        self.go_there_and_back().await;
    }

    /// From now on the replica hears of nothing.
    pub async fn leave_replica_behind(&self) {
        let replica = 1 - self.active;
        self.in_step(replica).await;
        self.promote(replica).await;
    }

    /// The primary follows its replica, which was left behind, until it has what that has, and is a
    /// primary again. It cuts no connection.
    pub async fn go_there_and_back(&mut self) {
        let (there, back) = (1 - self.active, self.active);
        self.active = there;
        self.follow(back).await;
        self.in_step(back).await;
        self.promote(back).await;
        self.active = back;
        self.follow(there).await;
    }

    fn lead_to(&mut self, node: usize) {
        self.active = node;
        self.proxy.point_at(self.nodes[node].port());
    }

    async fn promote(&self, node: usize) {
        self.ask::<()>(node, &["REPLICAOF", "NO", "ONE"]).await;
    }

    /// Has `node` follow the primary.
    async fn follow(&self, node: usize) {
        let port = self.nodes[self.active].port().to_string();
        self.ask::<()>(node, &["REPLICAOF", "127.0.0.1", &port])
            .await;
    }

    /// Waits until `node` has all that the primary has now.
    async fn in_step(&self, node: usize) {
        let offset = async |node| {
            let info: InfoDict = self.ask(node, &["INFO", "replication"]).await;
            let up = info.get::<String>("master_link_status").as_deref() == Some("up");
            (up, info.get::<u64>("master_repl_offset"))
        };
        let (_, needed) = offset(self.active).await;
        eventually("the replica has it all", async || {
            let (up, reached) = offset(node).await;
            up && reached >= needed
        })
        .await;
    }

    async fn ask<T: FromRedisValue>(&self, node: usize, words: &[&str]) -> T {
        ask(&self.nodes[node], words).await
    }
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
