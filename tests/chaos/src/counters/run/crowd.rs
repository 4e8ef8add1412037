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

/// Where a segment with several blocks of ids is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    /// Index of its server.
    pub(super) server: usize,
    /// Its slot.
    pub(super) slot: u32,
}

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
            while !matches!(self.desk.call(&call).await, Answer::Done | Answer::TooOld) {
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

    /// The server that has several blocks of its ids; none if there is none, or it gives no answer.
    pub(super) async fn packed_at(&self, urls: &[String]) -> Option<Packed> {
        for (server, url) in urls.iter().enumerate() {
            let slot = timeout(PATIENCE, self.packed_slot(url)).await;
            if let Ok(Ok(Some(slot))) = slot {
                return Some(Packed { server, slot });
            }
        }
        None
    }

    /// The slot under which the server at `url` has several blocks.
    async fn packed_slot(&self, url: &str) -> redis::RedisResult<Option<u32>> {
        let client = redis::Client::open(url)?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        // A copy that is on its way has another name.
        let pattern = format!("*:#{{*account/{}#*:blocks", self.account);
        let names: Vec<String> = redis::cmd("KEYS")
            .arg(pattern)
            .query_async(&mut connection)
            .await?;
        for name in names {
            let blocks = redis::cmd("HLEN").arg(&name).to_owned();
            let blocks: usize = blocks.query_async(&mut connection).await?;
            if blocks >= BLOCKS_MIN {
                return Ok(Some(slot_in(&name)));
            }
        }
        Ok(None)
    }
}

/// The slot in a key: "prefix:#{slot}:namespace:name:part".
fn slot_in(key: &str) -> u32 {
    let (_, behind) = key.split_once(":#{").expect("a group is under its slot");
    let (slot, _) = behind.split_once('}').expect("a slot ends");
    slot.parse().expect("a slot is a number")
}
