//! A sale of a few pieces to many buyers, one to each: the stock is a counter, in segments over the shards, and no buyer waits for a lock.
//!
//! ```sh
//! cargo run --example seckill                                           # shards in this process
//! RINGFENCE_REDIS=redis://localhost cargo run --example seckill         # after `ringfence ring init`
//! ```

use std::{env, error::Error, sync::Arc, time::Duration};

use ringfence::{
    Client,
    counter::{Amount, CounterError, RequestId, Terms},
};
use tokio::{task::JoinSet, time::sleep};

const PIECES: i64 = 100;
const BUYERS: usize = 10_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let builder = match env::var("RINGFENCE_REDIS") {
        Ok(seeds) => Client::builder().redis(seeds.split(',')),
        Err(_) => Client::builder().embedded(3),
    };
    let client = builder.build().await?;
    let counters = client.counters();
    let sale = format!("sale/{}", std::process::id());
    let stock = Arc::new(counters.create(&sale, Terms::in_memory(), 2).await?);
    let delivery = counters.request("delivery")?;
    stock.deposit(&delivery, Amount::new(PIECES)?).await?;

    let mut buyers = JoinSet::new();
    for buyer in 0..BUYERS {
        let (opens_ms, stock) = (delivery.time_ms(), stock.clone());
        buyers.spawn(async move {
            // The time of the sale and the buyer are the id: whoever asks again, even anew, gets no second piece.
            let order = RequestId::new(opens_ms, &format!("buyer-{buyer}"))?;
            let mut answers = 0;
            while answers < 2 {
                match stock.deduct(&order, Amount::new(1)?).await {
                    Ok(_) => answers += 1,
                    Err(CounterError::Insufficient) => return Ok(false),
                    // So many ask at once that one may never find the account at rest.
                    Err(error) if error.is_retryable() => sleep(Duration::from_millis(10)).await,
                    Err(error) => return Err(error.into()),
                }
            }
            Ok::<_, Box<dyn Error + Send + Sync>>(true)
        });
    }
    let mut sold = 0;
    while let Some(bought) = buyers.join_next().await {
        sold += i64::from(bought?.map_err(|error| error.to_string())?);
    }
    let left = stock.exact_balance().await?.available;
    println!("{BUYERS} buyers asked twice each; sold {sold} of {PIECES}, left {left}");
    client.close().await;
    Ok(())
}
