//! Does what the plan says, to each shard and to clients side by side, and writes it down.

use std::{io, sync::Arc};

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    clients::Clients,
    member::Member,
    plan::{Plan, Step},
};
use crate::history::{Deed, Kind, Phase, Recorder};

/// Does harm until it is time to stop.
#[derive(Debug)]
pub(super) struct Nemesis {
    pub(super) recorder: Arc<Recorder>,
    pub(super) until: Instant,
}

impl Nemesis {
    /// Carries out `plan`; afterwards everything is as it was, but for what was forgotten.
    pub(super) async fn strike(
        &self,
        plan: Plan,
        members: Vec<(String, Member)>,
        mut clients: Clients,
    ) -> io::Result<(Vec<(String, Member)>, Clients)> {
        let of_shards = members.into_iter().zip(plan.shards);
        let of_shards = of_shards.map(|((name, member), steps)| self.to_shard(name, member, steps));
        let of_clients = async {
            for step in plan.clients {
                if !self.pause(&step).await {
                    break;
                }
                clients.suffer(&step, &self.recorder).await?;
            }
            Ok::<_, io::Error>(clients)
        };
        let (members, clients) = tokio::join!(join_all(of_shards), of_clients);
        Ok((members, clients?))
    }

    async fn to_shard(
        &self,
        name: String,
        mut member: Member,
        steps: Vec<Step>,
    ) -> (String, Member) {
        for step in steps {
            if !self.pause(&step).await {
                break;
            }
            let deed = Deed {
                fault: Some(step.fault),
                shard: Some(name.clone()),
                ..Deed::invoke(self.recorder.next_op(), Kind::Nemesis)
            };
            self.recorder.record(deed.clone());
            member.suffer(&step).await;
            let phase = Phase::Ok;
            self.recorder.record(Deed { phase, ..deed });
        }
        (name, member)
    }

    /// Waits as long as nothing is done before `step`; whether there still is time for it.
    async fn pause(&self, step: &Step) -> bool {
        timeout_at(self.until, sleep(step.after)).await.is_ok()
    }
}
