//! The mover processes: one after another, two at once, killed, stopped and woken late; the resizes
//! they are at turned back, and the shards between which slots move restarted.

use std::{io, sync::Arc, time::Duration};

use nix::sys::signal::Signal;
use ringfence_client::{Client, ShardId};
use ringfence_coordinator::{mover, topology::Topology};
use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    plan::{HOME, Side, Step, Trial, Upset},
    process::{Fate, Process, Program},
    shard::Shard,
};
use crate::{
    history::{Deed, Fault, Kind, Phase, Recorder},
    mover::{Halt, MoverArgs},
};

/// How long a follower of the topology may take to hear of moves.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// How a dead shard is found again.
const RESTARTS: [Fault; 3] = [Fault::RestartEmpty, Fault::RestartAof, Fault::RestartAofCut];

/// The arguments of movers, and the record of their faults.
#[derive(Debug)]
pub(super) struct Movers<'a> {
    like: MoverArgs,
    recorder: &'a Recorder,
    /// Nothing is waited for any longer.
    pub(super) until: Instant,
    /// Whether slots have moved, by a resize that is over.
    pub(super) has_resized: bool,
    /// Sees which slots move.
    onlooker: Client,
    members: &'a [(String, Mutex<Shard>)],
    /// Those of them that failed for good: nothing more is done to them.
    gone: Vec<MutexGuard<'a, Shard>>,
}

/// What a mover is started for.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    begin: Option<u64>,
    turn_back: bool,
    halt: Option<Halt>,
}

impl Task {
    fn begin(dice: u64) -> Self {
        Self {
            begin: Some(dice),
            ..Self::default()
        }
    }

    fn halted(self, kill: bool, phase: mover::Phase) -> Self {
        let nth = self.begin.map_or(1, |dice| 1 + (dice / 3 % 2) as u32);
        let halt = Some(Halt { kill, phase, nth });
        Self { halt, ..self }
    }
}

impl<'a> Movers<'a> {
    /// Movers that are started as `like`, and waited for until that time.
    pub(super) fn new(
        like: MoverArgs,
        (recorder, until): (&'a Recorder, Instant),
        onlooker: Client,
        members: &'a [(String, Mutex<Shard>)],
    ) -> Self {
        Self {
            like,
            recorder,
            until,
            has_resized: false,
            onlooker,
            members,
            gone: Vec::new(),
        }
    }
}

impl Movers<'_> {
    /// Has a resize happen, or two, in the way that `upset` says.
    ///
    /// # Errors
    ///
    /// A mover failed, or cannot be started.
    pub(super) async fn suffer(&mut self, upset: &Upset) -> io::Result<()> {
        let (begin, before) = (Task::begin(upset.dice), self.onlooker.topology());
        let suffered = match upset.trial {
            Trial::Kill(phases) => self.killed(begin, phases).await,
            Trial::Stop(phase) => self.stopped(begin, phase).await,
            Trial::TwoAtOnce => self.two_at_once(begin).await,
            Trial::TurnBack(phase) => self.turned_back(begin, phase).await,
            Trial::RemoveByForce => self.removed(upset).await,
            Trial::Restart(side, phase) => self.restarted(begin, side, phase, upset).await,
        };
        if !self.has_resized && upset.trial != Trial::RemoveByForce {
            let moved = |topology: &Topology| {
                let owner = |slot| topology.table.owner(slot) != before.table.owner(slot);
                topology.migrations.is_empty() && topology.table.slots().iter().any(owner)
            };
            self.has_resized = self.when(moved).await.is_some();
        }
        suffered
    }

    /// Finishes the rest of a resize, by `until`.
    ///
    /// # Errors
    ///
    /// As [`suffer`](Self::suffer).
    pub(super) async fn finish(&mut self, until: Instant) -> io::Result<()> {
        self.until = until;
        self.run_out(Task::default()).await
    }

    /// Movers die in `phases`, one after the other, and one more goes on.
    async fn killed(&mut self, begin: Task, phases: [mover::Phase; 3]) -> io::Result<()> {
        for phase in phases {
            let mut mover = self.start(begin.halted(true, phase))?;
            if self.fate(&mut mover).await? == Fate::Killed {
                let deed = self.deed(Fault::KillMover, Some(mover.number), Some(phase));
                self.recorder.record(deed.clone());
                self.over(deed);
            }
        }
        self.run_out(Task::default()).await
    }

    /// A mover stops in `phase`, and wakes when this resize is over, and another.
    async fn stopped(&mut self, begin: Task, phase: mover::Phase) -> io::Result<()> {
        let mut zombie = self.start(begin.halted(false, phase))?;
        if self.fate(&mut zombie).await? == Fate::Stopped {
            let deed = self.deed(Fault::StopMover, Some(zombie.number), Some(phase));
            self.recorder.record(deed.clone());
            self.run_out(Task::default()).await?;
            self.run_out(begin).await?;
            zombie.signal(Signal::SIGCONT);
            self.over(deed);
            self.fate(&mut zombie).await?;
        }
        zombie.kill().await
    }

    async fn two_at_once(&mut self, begin: Task) -> io::Result<()> {
        let (mut one, mut other) = (self.start(begin)?, self.start(begin)?);
        let deed = self.deed(Fault::TwoMovers, None, None);
        self.recorder.record(deed.clone());
        let (first, second) = tokio::join!(self.fate(&mut one), self.fate(&mut other));
        first.and(second)?;
        self.over(deed);
        one.kill().await?;
        other.kill().await
    }

    /// A resize is turned back while its mover is stopped in `phase`; then both go on.
    async fn turned_back(&mut self, begin: Task, phase: mover::Phase) -> io::Result<()> {
        let mut mover = self.start(begin.halted(false, phase))?;
        if self.fate(&mut mover).await? == Fate::Stopped {
            let deed = self.deed(Fault::TurnBack, None, Some(phase));
            self.recorder.record(deed.clone());
            let mut other = self.start(Task {
                turn_back: true,
                ..Task::default()
            })?;
            mover.signal(Signal::SIGCONT);
            let (first, second) = tokio::join!(self.fate(&mut mover), self.fate(&mut other));
            first.and(second)?;
            self.over(deed);
            other.kill().await?;
        }
        mover.kill().await
    }

    /// A shard fails for good, and is removed by force. No resize was begun yet, so there are enough for every replica.
    async fn removed(&mut self, upset: &Upset) -> io::Result<()> {
        let (members, topology) = (self.members, self.onlooker.topology());
        // Nothing happens to the record until it says that the shard is dead: while a member does not answer, no record is
        // recovered. One that is in use has been recovered.
        let home = members[HOME].1.lock().await;
        self.run_out(Task::default()).await?;
        let others = members.iter().enumerate().filter(|(place, (name, _))| {
            *place != HOME && topology.shards.keys().any(|id| id.0.as_str() == name)
        });
        let others: Vec<_> = others.map(|(_, other)| other).collect();
        let (name, member) = others[upset.dice as usize / 13 % others.len()];
        let mut member = member.lock().await;
        let deed = Deed {
            shard: Some(name.clone()),
            ..self.deed(Fault::RemoveShard, None, None)
        };
        self.recorder.record(deed.clone());
        member.fail();
        self.gone.push(member);
        sleep(upset.lasts * 4).await;
        self.like.failed = Some(name.parse().expect("it is the name of a shard"));
        self.run_out(Task::default()).await?;
        drop(home);
        self.over(deed);
        Ok(())
    }

    /// A shard that slots leave, or come to, is restarted while their mover is stopped in `phase`.
    async fn restarted(
        &mut self,
        begin: Task,
        side: Side,
        phase: mover::Phase,
        upset: &Upset,
    ) -> io::Result<()> {
        let mut mover = self.start(begin.halted(false, phase))?;
        if self.fate(&mut mover).await? == Fate::Stopped {
            if let Some(shard) = self.migrating(side, upset.dice).await {
                self.restart(&shard, side, upset).await;
            }
            mover.signal(Signal::SIGCONT);
            self.fate(&mut mover).await?;
        }
        mover.kill().await
    }

    async fn restart(&self, shard: &ShardId, side: Side, upset: &Upset) {
        let found = self.members.iter().find(|(name, _)| name == shard.as_str());
        let (name, member) = found.expect("only members of ours are shards");
        let Ok(mut member) = timeout_at(self.until, member.lock()).await else {
            return;
        };
        let step = Step {
            after: Duration::ZERO,
            fault: member
                .kind()
                .like(RESTARTS[upset.dice as usize / 11 % RESTARTS.len()]),
            lasts: upset.lasts,
            dice: upset.dice,
        };
        let deed = Deed {
            shard: Some(name.clone()),
            phase_of_move: Some(side.as_str().into()),
            ..self.deed(step.fault, None, None)
        };
        self.recorder.record(deed.clone());
        member.suffer(&step).await;
        self.over(deed);
    }

    /// A shard on that `side` of slots that move.
    async fn migrating(&self, side: Side, dice: u64) -> Option<ShardId> {
        let topology = self.when(|topology| !topology.migrations.is_empty());
        let migrations = &topology.await?.migrations;
        let migration = &migrations[dice as usize / 5 % migrations.len()];
        Some(match side {
            Side::Sealed => migration.from.0.clone(),
            Side::Importing => migration.to.0.clone(),
        })
    }

    /// The topology, as soon as it is as it should be.
    async fn when(&self, is_so: impl Fn(&Topology) -> bool) -> Option<Arc<Topology>> {
        let heard = async {
            loop {
                let topology = self.onlooker.topology();
                if is_so(&topology) {
                    return topology;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(HEARD_WITHIN, heard).await.ok()
    }

    /// Starts a mover and lets it run to its end.
    async fn run_out(&mut self, task: Task) -> io::Result<()> {
        let mut mover = self.start(task)?;
        self.fate(&mut mover).await?;
        mover.kill().await
    }

    async fn fate(&self, mover: &mut Process) -> io::Result<Fate> {
        mover.fate(self.until).await
    }

    fn start(&mut self, task: Task) -> io::Result<Process> {
        let like = &self.like;
        let mut args = vec![
            ("--run", like.run.clone()),
            ("--seed", like.seed.to_string()),
        ];
        args.extend(like.urls.iter().map(|url| ("--redis", url.clone())));
        let known = self.onlooker.topology();
        let to_remove = like.failed.iter().filter(|id| known.shard(id).is_some());
        args.extend(to_remove.map(|id| ("--failed", id.to_string())));
        args.extend(task.begin.map(|dice| ("--begin", dice.to_string())));
        args.extend(task.halt.map(|halt| ("--halt", halt.to_arg())));
        let flag = task.turn_back.then(|| ("--turn-back", "true".into()));
        args.extend(flag);
        let mover = Process::start(&Program::This("mover"), like.process, &like.dir, args)?;
        self.like.process += 1;
        Ok(mover)
    }

    fn deed(&self, fault: Fault, victim: Option<u32>, phase: Option<mover::Phase>) -> Deed {
        Deed {
            fault: Some(fault),
            victim,
            phase_of_move: phase.map(|phase| phase.as_str().into()),
            ..Deed::invoke(self.recorder.next_op(), Kind::Nemesis)
        }
    }

    fn over(&self, deed: Deed) {
        let phase = Phase::Ok;
        self.recorder.record(Deed { phase, ..deed });
    }
}
