//! Does what the plan says, to each shard and to clients side by side, and writes it down.

use std::io;

use futures_util::future::{join_all, try_join_all};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    clients::Clients,
    member::Member,
    plan::{Plan, Step},
};
use crate::history::{Deed, Fault, Kind, Phase, Recorder};

/// Does harm until it is time to stop.
#[derive(Debug)]
pub(super) struct Nemesis {
    pub(super) recorder: Recorder,
    pub(super) until: Instant,
}

impl Nemesis {
    /// Carries out `plan`; afterwards everything is as it was, but for what was forgotten.
    pub(super) async fn strike(
        &self,
        plan: Plan,
        members: &mut [(String, Member)],
        clients: &mut [Clients],
    ) -> io::Result<()> {
        let to_shards = members.iter_mut().zip(plan.shards);
        let to_shards = to_shards.map(|((name, member), steps)| self.to_shard(name, member, steps));
        let to_clients = clients.iter_mut().zip(plan.clients);
        let to_clients = to_clients.map(|(group, steps)| self.to_clients(group, steps));
        let (_, clients) = tokio::join!(join_all(to_shards), try_join_all(to_clients));
        clients.map(drop)
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
            if !self.pause(&step).await {
                break;
            }
            group.suffer(&step, &self.recorder).await?;
        }
        Ok(())
    }

    async fn to_shard(&self, name: &str, member: &mut Member, steps: Vec<Step>) {
        for step in steps {
            if !self.pause(&step).await {
                break;
            }
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

    /// Waits as long as nothing is done before `step`; whether there still is time for it.
    async fn pause(&self, step: &Step) -> bool {
        timeout_at(self.until, sleep(step.after)).await.is_ok()
    }
}
