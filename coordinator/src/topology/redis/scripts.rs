//! The operations of a server of Redis on a topology: one function per script.

use std::sync::Arc;

use ::redis::Value;
use async_trait::async_trait;
use ringfence_ring::Slot;

use super::{
    answers::{Claim, Copied, Fence, Fenced, Found, Join, Leave, Retired, Site, Swapped, Trace},
    member::Member,
    news::{self, Announcements},
    on_redis::{Answer, Input, OTHER_LIFE, OnRedis},
    stored::{Pointer, header, read_copy, read_record, write_record},
};
use crate::{
    ids::{Epoch, Incarnation, Life},
    shard::{
        ServerOptions, ShardError,
        redis::{Connection, Server, scripts},
    },
    topology::{Topology, TopologyError, Version},
};

#[async_trait]
impl Member for OnRedis {
    fn address(&self) -> &str {
        self.redis().address.as_str()
    }

    fn options(&self) -> ServerOptions {
        self.redis().clone().into()
    }

    async fn is_connected(&self) -> bool {
        self.has_connection().await
    }

    async fn server(&self) -> Result<Site, TopologyError> {
        Ok(self.site(&self.found().await?))
    }

    async fn trace(&self) -> Result<Trace, TopologyError> {
        let answer = self.call(&scripts::TRACE, |at| Input {
            keys: vec![
                &at.keys.pointer,
                &at.keys.topology,
                &at.keys.fence,
                &at.keys.copy,
                &at.keys.state,
            ],
            arguments: vec![],
        });
        let Answer { server, rest, .. } = answer.await?;
        let text = |at: usize| rest.get(at).and_then(text);
        let malformed = |reason| self.malformed(reason);
        Ok(Trace {
            server: self.site(&server),
            pointer: text(0).map(Pointer::parse).transpose().map_err(malformed)?,
            record: text(1).map(read_record).transpose().map_err(malformed)?,
            fence: text(2).map(str::parse).transpose().map_err(malformed)?,
            copy: text(3).map(read_copy).transpose().map_err(malformed)?,
            armed: number(&rest, 4) == 1,
            epoch: Epoch(number(&rest, 5)),
        })
    }

    async fn claim(&self, creating: &Topology) -> Result<Claim, TopologyError> {
        let (pointer, record) = (Pointer::to(creating).to_string(), write_record(creating));
        let answer = self.call_in(&creating.home.life, &scripts::CLAIM, |at| Input {
            keys: vec![&at.keys.pointer, &at.keys.topology, &at.keys.fence],
            arguments: vec![creating.incarnation.to_string(), pointer, record],
        });
        Ok(if answer.await?.code == 1 {
            Claim::Claimed
        } else {
            Claim::Taken
        })
    }

    async fn join(&self, pointer: &Pointer, life: &Life) -> Result<Join, TopologyError> {
        let answer = self.call_in(life, &scripts::JOIN, |at| Input {
            keys: vec![&at.keys.pointer],
            arguments: vec![pointer.to_string()],
        });
        let Answer { code, rest, .. } = answer.await?;
        if code == OTHER_LIFE {
            return Ok(Join::OtherLife);
        }
        let there = rest.first().and_then(text).map(Pointer::parse).transpose();
        let there = there.map_err(|reason| self.malformed(reason))?;
        let ours = there.is_some_and(|there| there.id == pointer.id);
        Ok(if ours { Join::Joined } else { Join::Theirs })
    }

    async fn leave(&self, id: &str) -> Result<Leave, TopologyError> {
        let answer = self.call(&scripts::LEAVE, |at| Input {
            keys: vec![&at.keys.pointer, &at.keys.copy, &at.keys.state],
            arguments: vec![id.to_owned()],
        });
        Ok(match answer.await?.code {
            1 => Leave::Left,
            0 => Leave::NotThere,
            _ => Leave::InUse,
        })
    }

    async fn retire(&self, topology: &Topology, life: &Life) -> Result<Retired, TopologyError> {
        let arguments = vec![
            life.to_string(),
            topology.id.clone(),
            topology.incarnation.to_string(),
        ];
        let answer = self.call_in(life, &scripts::RETIRE, |at| Input {
            keys: vec![
                &at.keys.pointer,
                &at.keys.topology,
                &at.keys.fence,
                &at.keys.lives,
                &at.keys.slots,
                &at.keys.copy,
                &at.keys.state,
                &at.keys.ctr,
                &at.keys.quiet,
                &at.keys.queues,
                &at.keys.open,
                &at.keys.lineage,
                &at.keys.complete,
            ],
            arguments,
        });
        let Answer { code, rest, .. } = answer.await?;
        Ok(match code {
            1 => Retired::Done,
            0 => Retired::NotThere,
            -2 => Retired::Stale(rest.first().and_then(text).unwrap_or_default().to_owned()),
            -3 => Retired::InUse,
            _ => Retired::OtherLife,
        })
    }

    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swapped, TopologyError> {
        let life = &next.home.life;
        let mut arguments = vec![life.to_string(), next.id.clone()];
        arguments.extend([expected.0.to_string(), expected.1.to_string()]);
        arguments.extend([next.incarnation.to_string(), write_record(next)]);
        let answer = self.call_in(life, &scripts::SWAP, |at| Input {
            keys: vec![&at.keys.topology, &at.keys.fence, &at.keys.lives],
            arguments,
        });
        let Answer { server, code, rest } = answer.await?;
        let there = rest.first().and_then(text).unwrap_or("");
        Ok(match code {
            1 => Swapped::Done,
            0 => {
                let newer = read_record(there).map_err(|reason| self.malformed(reason))?;
                Swapped::Newer(Arc::new(newer))
            }
            -2 => Swapped::Unusable(format!("its fence is {there}")),
            -3 if there.is_empty() => Swapped::Unusable("there is none".into()),
            -3 => Swapped::Unusable(format!(
                "found {:?}",
                there.lines().next().unwrap_or_default()
            )),
            _ => Swapped::Unusable(format!("the server is in life {}, not {life}", server.life)),
        })
    }

    async fn void(&self, id: &str) -> Result<bool, TopologyError> {
        let answer = self.call(&scripts::VOID, |at| Input {
            keys: vec![&at.keys.pointer, &at.keys.topology],
            arguments: vec![id.to_owned()],
        });
        Ok(answer.await?.code == 1)
    }

    async fn copy(&self, topology: &Topology) -> Result<Copied, TopologyError> {
        let (n, version) = topology.version();
        let record = [
            topology.id.clone(),
            n.to_string(),
            version.to_string(),
            topology.encode(),
            Pointer::to(topology).to_string(),
        ];
        let answer = self.call(&scripts::COPY, |at| Input {
            keys: vec![
                &at.keys.pointer,
                &at.keys.fence,
                &at.keys.copy,
                &at.keys.lives,
            ],
            arguments: [vec![at.server.life.to_string()], record.into()].concat(),
        });
        let Answer { code, rest, .. } = answer.await?;
        Ok(match code {
            1 => Copied::Kept,
            -2 => Copied::Stale(rest.first().and_then(text).unwrap_or_default().to_owned()),
            _ => Copied::NotMember,
        })
    }

    async fn fence(&self, life: &Life, id: &str, n: Incarnation) -> Result<Fenced, TopologyError> {
        let answer = self.call_in(life, &scripts::RAISE_FENCE, |at| Input {
            keys: vec![
                &at.keys.pointer,
                &at.keys.topology,
                &at.keys.fence,
                &at.keys.copy,
                &at.keys.state,
                &at.keys.lives,
            ],
            arguments: vec![life.to_string(), id.to_owned(), n.to_string()],
        });
        let Answer { code, rest, .. } = answer.await?;
        let text = |at: usize| rest.get(at).and_then(text);
        let malformed = |reason| self.malformed(reason);
        Ok(match code {
            1 => Fenced::Raised(Box::new(Fence {
                life: life.clone(),
                record: text(0).map(read_record).transpose().map_err(malformed)?,
                copy: text(1).map(read_copy).transpose().map_err(malformed)?,
                armed: matches!(rest.get(2), Some(Value::Int(_))).then(|| Epoch(number(&rest, 2))),
                epoch: Epoch(number(&rest, 3)),
            })),
            -3 => Fenced::Theirs(text(0).unwrap_or_default().to_owned()),
            _ => Fenced::Outrun,
        })
    }

    async fn restore(&self, next: &Topology) -> Result<bool, TopologyError> {
        let (pointer, record) = (Pointer::to(next).to_string(), write_record(next));
        let answer = self.call_in(&next.home.life, &scripts::RESTORE, |at| Input {
            keys: vec![
                &at.keys.pointer,
                &at.keys.topology,
                &at.keys.fence,
                &at.keys.lives,
            ],
            arguments: vec![
                next.incarnation.to_string(),
                pointer,
                record,
                next.home.life.to_string(),
                at.keys.life_family.clone(),
            ],
        });
        Ok(answer.await?.code == 1)
    }

    async fn read(&self, known: Option<&Topology>) -> Result<(Site, Found), TopologyError> {
        let known = known.map(header).unwrap_or_default();
        let answer = self.call(&scripts::READ, |at| Input {
            keys: vec![&at.keys.topology, &at.keys.fence],
            arguments: vec![known],
        });
        let Answer { server, code, rest } = answer.await?;
        if code == 0 {
            return Ok((self.site(&server), Found::Nothing));
        }
        let malformed = |reason| self.malformed(reason);
        let fence = rest
            .first()
            .and_then(text)
            .map(str::parse)
            .transpose()
            .map_err(malformed)?;
        let record = rest
            .get(1)
            .and_then(text)
            .map(read_record)
            .transpose()
            .map_err(malformed)?;
        Ok((
            self.site(&server),
            Found::Record {
                fence,
                record: record.map(Arc::new),
            },
        ))
    }

    async fn slot_with_counters(&self, slots: &[Slot]) -> Result<Option<Slot>, TopologyError> {
        let indexes = |at: &Connection| slots.iter().map(|slot| at.keys.counters(*slot)).collect();
        Ok(self.first_of(indexes).await?.map(|at| slots[at]))
    }

    async fn announcements(&self) -> Result<Announcements, ShardError> {
        Ok(Announcements::Redis(Box::new(
            news::of(self.redis()).await?,
        )))
    }
}

impl OnRedis {
    fn site(
        &self,
        Server {
            life, appendonly, ..
        }: &Server,
    ) -> Site {
        let forgets = || {
            format!(
                "{0}, home of the topology, has no append-only file: after a restart it comes back \
                 without the latest record; run: redis-cli -u {0} CONFIG SET appendonly yes (and \
                 appendfsync always; a managed server has them in its parameter group)",
                self.address()
            )
        };
        Site {
            life: life.clone(),
            forgets: (!appendonly).then(forgets),
        }
    }

    fn malformed(&self, reason: String) -> TopologyError {
        TopologyError::Malformed(format!("{}: {reason}", self.address()))
    }
}

fn number(values: &[Value], at: usize) -> u64 {
    match values.get(at) {
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}
