//! The redis crate as it comes: SET NX PX, and a script that compares and deletes.

use async_trait::async_trait;
use redis::{Script, aio::MultiplexedConnection};

use super::{Contender, Failure, LEASE, Worker, one_each};

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

pub(crate) struct Plain(MultiplexedConnection);

impl Plain {
    pub(crate) async fn new(url: &str) -> Result<Self, Failure> {
        Ok(Self(
            redis::Client::open(url)?
                .get_multiplexed_async_connection()
                .await?,
        ))
    }
}

#[async_trait]
impl Contender for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn what(&self) -> &'static str {
        "the redis crate: SET NX PX, EVALSHA compare-and-delete"
    }

    async fn workers(&self, locks: usize) -> Result<Vec<Box<dyn Worker>>, Failure> {
        one_each(locks, |lock| {
            Ok(Task {
                connection: self.0.clone(),
                release: Script::new(COMPARE_AND_DELETE),
                key: format!("plain:{lock}"),
                turn: 0,
            })
        })
    }
}

struct Task {
    connection: MultiplexedConnection,
    release: Script,
    key: String,
    turn: u64,
}

#[async_trait]
impl Worker for Task {
    fn locks(&self) -> usize {
        1
    }

    async fn pair(&mut self) -> Result<(), Failure> {
        self.turn += 1;
        let owner = format!("{}:{}", self.key, self.turn);
        let mut set = redis::cmd("SET");
        set.arg(&self.key)
            .arg(&owner)
            .arg("NX")
            .arg("PX")
            .arg(LEASE.as_millis() as u64);
        let granted: bool = set.query_async(&mut self.connection).await?;
        let mut release = self.release.key(&self.key);
        let deleted: bool = release
            .arg(owner)
            .invoke_async(&mut self.connection)
            .await?;
        if granted && deleted {
            return Ok(());
        }
        Err(format!("{}: granted {granted}, deleted {deleted}", self.key).into())
    }
}
