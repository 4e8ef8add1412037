//! The shard's link alone, in a bare loop: what the engine's driver sends, without the engine.
//!
//! One task takes every lock in calls of up to [`BATCH_MAX`], then gives every lock back the same
//! way. As in the driver, a batch leaves when the former one returned.

use async_trait::async_trait;
use ringfence_coordinator::{
    ids::{MapVersion, Nonce},
    limits::BATCH_MAX,
    shard::{
        LockLane, LockLink, LockMode, Op, Reply, Request, Shard,
        redis::{RedisOptions, RedisShard},
    },
};

use super::{Contender, Failure, LEASE, Worker, scripts::OneShard};

pub(crate) struct Batched {
    redis: RedisShard,
    shard: OneShard,
}

impl Batched {
    pub(crate) fn new(url: &str, shard: OneShard) -> Result<Self, Failure> {
        let options = RedisOptions::new(url.parse()?, shard.client);
        Ok(Self {
            redis: RedisShard::new(options),
            shard,
        })
    }
}

#[async_trait]
impl Contender for Batched {
    fn name(&self) -> &'static str {
        "batched"
    }

    fn what(&self) -> &'static str {
        "our scripts from a bare loop, 128 a call, one call at a time (the driver's link)"
    }

    async fn workers(&self, locks: usize) -> Result<Vec<Box<dyn Worker>>, Failure> {
        let OneShard { map, label, .. } = &self.shard;
        let mut acquires = Vec::new();
        let mut releases = Vec::new();
        for lock in 0..locks {
            let key = self.shard.key(&format!("batched:{lock}"))?;
            let nonce = self.shard.nonce();
            let acquire = Op::Acquire {
                nonce,
                label: label.clone(),
                lease: LEASE,
                mode: LockMode::Exclusive,
                preferred: false,
                tokens: 1,
                ticket: None,
                proof: None,
            };
            acquires.push(Request {
                key: key.clone(),
                map: *map,
                declared: MapVersion::UNKNOWN,
                op: acquire,
            });
            releases.push(Request {
                key,
                map: *map,
                declared: MapVersion::UNKNOWN,
                op: Op::Release { nonce },
            });
        }
        let link = self.redis.connect_locks(LockLane::Work, None).await?;
        Ok(vec![Box::new(Loop {
            link,
            shard: self.shard.clone(),
            acquires,
            releases,
        })])
    }
}

struct Loop {
    link: Box<dyn LockLink>,
    shard: OneShard,
    acquires: Vec<Request>,
    releases: Vec<Request>,
}

#[async_trait]
impl Worker for Loop {
    fn locks(&self) -> usize {
        self.acquires.len()
    }

    async fn pair(&mut self) -> Result<(), Failure> {
        for (acquire, release) in self.acquires.iter_mut().zip(&mut self.releases) {
            let fresh = self.shard.nonce();
            *nonce_of(acquire) = fresh;
            *nonce_of(release) = fresh;
        }
        for batch in self.acquires.chunks(BATCH_MAX) {
            call(&mut *self.link, batch, |reply| {
                matches!(reply, Reply::Granted { .. })
            })
            .await?;
        }
        for batch in self.releases.chunks(BATCH_MAX) {
            call(&mut *self.link, batch, |reply| {
                *reply == Reply::Released { held: true }
            })
            .await?;
        }
        Ok(())
    }
}

fn nonce_of(request: &mut Request) -> &mut Nonce {
    match &mut request.op {
        Op::Acquire { nonce, .. }
        | Op::Renew { nonce, .. }
        | Op::Confirm { nonce, .. }
        | Op::Release { nonce }
        | Op::Adopt { nonce, .. }
        | Op::Remove { nonce, .. } => nonce,
    }
}

async fn call(
    link: &mut dyn LockLink,
    batch: &[Request],
    wanted: impl Fn(&Reply) -> bool,
) -> Result<(), Failure> {
    let answers = link.call(batch).await?;
    if answers.quiet && answers.replies.iter().all(wanted) {
        return Ok(());
    }
    Err(format!("a batch was answered {answers:?}").into())
}
