//! Does what the plan says, to each shard, to clients and to resizes side by side, and writes it down.

use std::{io, time::Duration};

use futures_util::future::{join_all, try_join_all};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    clients::Clients,
    coordinators::Coordinators,
    locks::Locks,
    member::befall,
    movers::Movers,
    plan::{Plan, Step, Upset},
    shard::Shard,
};
use crate::history::{Deed, Fault, Kind, Phase, Recorder};

/// How long a resize may take after that, if none was over before.
const RESIZED_WITHIN: Duration = Duration::from_secs(120);

/// What is done to one shard is over by then.
const AT_REST_WITHIN: Duration = Duration::from_secs(5);

/// Does harm until it is time to stop.
#[derive(Debug)]
pub(super) struct Nemesis<'a> {
    pub(super) recorder: &'a Recorder,
    pub(super) until: Instant,
}

impl Nemesis<'_> {
    /// Carries out `plan`; afterwards everything is as it was, but for what was forgotten.
    pub(super) async fn strike(
        &self,
        plan: Plan,
        members: &[(String, Mutex<Shard>)],
        clients: &mut [Clients],
        locks: &Locks,
        movers: &mut Movers<'_>,
        coordinators: Option<&mut Coordinators>,
    ) -> io::Result<()> {
        let to_all = self.to_all_shards(members, plan.all_shards);
        let to_shards = members.iter().zip(plan.shards);
        let to_shards = to_shards.map(|((name, member), steps)| self.to_shard(name, member, steps));
        let to_clients = clients.iter_mut().zip(plan.clients);
        let to_clients = to_clients.map(|(group, steps)| self.to_clients(group, steps));
        let to_clients = try_join_all(to_clients);
        let to_locks = self.to_locks(locks, plan.locks);
        let to_ring = self.to_ring(movers, plan.ring);
        let to_coordinators = self.to_coordinators(coordinators, plan.coordinators);
        let (_, (), clients, (), ring, coordinators) = tokio::join!(
            join_all(to_shards),
            to_all,
            to_clients,
            to_locks,
            to_ring,
            to_coordinators
        );
        clients.map(drop).and(ring).and(coordinators)
    }

    /// Records that everything is put right, and when.
    pub(super) fn heal(&self) -> u64 {
        let healed = self.recorder.now();
        let deed = Deed {
            fault: Some(Fault::Heal),
            ..Deed::ended(self.recorder.next_op(), Kind::Nemesis, Phase::Ok)
        };
        self.recorder.record_at(healed, deed);
        healed
    }

    async fn to_clients(&self, group: &mut Clients, steps: Vec<Step>) -> io::Result<()> {
        for step in steps {
            if !self.pause(step.after).await {
                break;
            }
            group.suffer(&step, self.recorder).await?;
        }
        Ok(())
    }

    async fn to_locks(&self, locks: &Locks, steps: Vec<Step>) {
        for step in steps {
            if !self.pause(step.after).await {
                break;
            }
            locks.suffer(&step, self.recorder).await;
        }
    }

    async fn to_coordinators(
        &self,
        coordinators: Option<&mut Coordinators>,
        steps: Vec<Step>,
    ) -> io::Result<()> {
        let Some(coordinators) = coordinators else {
            return Ok(());
        };
        for step in steps {
            if !self.pause(step.after).await {
                break;
            }
            coordinators.suffer(&step, self.recorder).await?;
        }
        Ok(())
    }

    async fn to_ring(&self, movers: &mut Movers<'_>, upsets: Vec<Upset>) -> io::Result<()> {
        for upset in upsets {
            if !self.pause(upset.after).await {
                // On a slow machine the first one may take all the time.
                if movers.has_resized {
                    break;
                }
                movers.until = Instant::now() + RESIZED_WITHIN;
            }
            movers.suffer(&upset).await?;
        }
        Ok(())
    }

    async fn to_shard(&self, name: &str, member: &Mutex<Shard>, steps: Vec<Step>) {
        for step in steps {
            if !self.pause(step.after).await {
                break;
            }
            // One thing at a time: a shard amid a resize may be met as well, and one that failed for good stays locked.
            let Ok(mut member) = timeout_at(self.until, member.lock()).await else {
                break;
            };
            let deed = Deed {
                fault: Some(step.fault),
                shard: Some(name.to_owned()),
                ..Deed::invoke(self.recorder.next_op(), Kind::Nemesis)
            };
            self.recorder.record(deed.clone());
            member.suffer(&step).await;
            let phase = Phase::Ok;
            self.recorder.record(Deed { phase, ..deed });
        }
    }

    /// Does something to all shards at once, but for those that failed for good or are busy with a resize.
    async fn to_all_shards(&self, members: &[(String, Mutex<Shard>)], steps: Vec<Step>) {
        for step in steps {
            if !self.pause(step.after).await {
                break;
            }
            let at_rest = members
                .iter()
                .map(|(_, member)| timeout(AT_REST_WITHIN, member.lock()));
            let at_rest: Vec<_> = join_all(at_rest).await.into_iter().flatten().collect();
            let deed = Deed {
                fault: Some(step.fault),
                ..Deed::invoke(self.recorder.next_op(), Kind::Nemesis)
            };
            self.recorder.record(deed.clone());
            join_all(at_rest.iter().map(|member| befall(member.proxy(), &step))).await;
            let phase = Phase::Ok;
            self.recorder.record(Deed { phase, ..deed });
        }
    }

    /// Waits for so long; whether there still is time for something then.
    async fn pause(&self, length: Duration) -> bool {
        timeout_at(self.until, sleep(length)).await.is_ok()
    }
}
