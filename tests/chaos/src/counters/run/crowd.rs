//! An account whose one segment remembers so many ids that most of them are in blocks, while its slot moves.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use rand::{RngExt, rngs::StdRng};
use tokio::time::{sleep, timeout};

use super::super::{Answer, Call, Deed, Desk, Order};

/// Calls at a time.
const AT_A_TIME: usize = 256;
/// Between two repeats.
const REPEAT_EVERY: Duration = Duration::from_millis(10);
/// Before a call without an answer is made again.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a server may take to say what it has.
const PATIENCE: Duration = Duration::from_secs(1);
/// Fewer blocks are not many.
const BLOCKS_MIN: usize = 2;

/// The account.
#[derive(Debug)]
pub(super) struct Crowd<'a> {
    pub(super) desk: &'a Desk,
    /// Its number.
    pub(super) account: usize,
    /// How many ids it is to remember.
    pub(super) ids: usize,
}

impl Crowd<'_> {
    /// Has that many requests made.
    pub(super) async fn fill(&self) -> Vec<Order> {
        let made = stream::iter(0..self.ids).map(async |number| {
            let name = format!("crowd/{number}");
            let order = self.desk.order(name, self.account, 1, Deed::Deposit);
            let call = Call::Change(order.clone());
            while self.desk.call(&call).await != Answer::Done {
                sleep(AGAIN).await;
            }
            order
        });
        made.buffer_unordered(AT_A_TIME).collect().await
    }

    /// Repeats one after another, again and again.
    pub(super) async fn repeat(&self, orders: &[Order], mut random: StdRng) {
        loop {
            sleep(REPEAT_EVERY).await;
            let order = orders[random.random_range(0..orders.len())].clone();
            self.desk.call(&Call::Change(order)).await;
        }
    }

    /// Which of the servers has several blocks of its ids; none if that is not known.
    pub(super) async fn packed_at(&self, urls: &[String]) -> Option<usize> {
        for (place, url) in urls.iter().enumerate() {
            let blocks = timeout(PATIENCE, self.blocks_at(url)).await;
            if matches!(blocks, Ok(Ok(blocks)) if blocks >= BLOCKS_MIN) {
                return Some(place);
            }
        }
        None
    }

    async fn blocks_at(&self, url: &str) -> redis::RedisResult<usize> {
        let client = redis::Client::open(url)?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let pattern = format!("*account/{}#*:blocks", self.account);
        let names: Vec<String> = redis::cmd("KEYS")
            .arg(pattern)
            .query_async(&mut connection)
            .await?;
        let mut blocks = 0;
        for name in names {
            let length: usize = redis::cmd("HLEN")
                .arg(name)
                .query_async(&mut connection)
                .await?;
            blocks += length;
        }
        Ok(blocks)
    }
}
