//! By a script on plain Redis, as one writes it oneself: a balance, and a set of the ids that it has seen.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use async_trait::async_trait;
use redis::{AsyncCommands, aio::MultiplexedConnection};

use super::{Account, PUT_IN, Reach, Taker};
use crate::Failure;

/// It forgets no id.
const DEDUCT: &str = r"
if redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return 1 end
local balance, amount = tonumber(redis.call('GET', KEYS[1])), tonumber(ARGV[2])
if balance < amount then
  redis.call('SREM', KEYS[2], ARGV[1])
  return 0
end
redis.call('DECRBY', KEYS[1], amount)
return 1
";

/// The balance, and the ids.
const KEYS: [&str; 2] = ["{script}balance", "{script}ids"];

/// One connection, which all tasks share: their scripts go out together.
pub(crate) struct Script {
    connection: MultiplexedConnection,
    deduct: redis::Script,
    /// The last id.
    number: AtomicU64,
}

impl Script {
    pub(crate) async fn new(reach: &Reach, is_first: bool) -> Result<Self, Failure> {
        let client = redis::Client::open(reach.redis[0].as_str())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        if is_first {
            let () = connection.set(KEYS[0], PUT_IN).await?;
        }
        Ok(Self {
            connection,
            deduct: redis::Script::new(DEDUCT),
            number: AtomicU64::new(0),
        })
    }
}

#[async_trait]
impl Account for Script {
    async fn deduct(&self, _taker: Taker) -> Result<(), Failure> {
        let id = format!(
            "{} {}",
            std::process::id(),
            self.number.fetch_add(1, Relaxed)
        );
        let mut deduct = self.deduct.prepare_invoke();
        deduct.key(KEYS[0]).key(KEYS[1]).arg(id).arg(1);
        match deduct.invoke_async(&mut self.connection.clone()).await? {
            1 => Ok(()),
            answer => Err(format!("the answer was {answer}, must be 1").into()),
        }
    }

    async fn keep(&self, _takers: usize) {
        std::future::pending().await
    }

    async fn left(&self) -> Result<i128, Failure> {
        let left: i64 = self.connection.clone().get(KEYS[0]).await?;
        Ok(left.into())
    }
}
