//! Compares the orders of the example `payments` with the log of the shop's account, while both change: what one of them
//! has and the other has not, or differently, is printed.
//!
//! ```sh
//! export DATABASE="host=localhost user=postgres" RINGFENCE_REDIS=redis://localhost
//! cargo run --example reconcile
//! ```

use std::{collections::BTreeMap, env, error::Error};

use ringfence::Client;
use ringfence::counter::HistoryCursor;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let seeds = env::var("RINGFENCE_REDIS")?;
    let client = Client::builder().redis(seeds.split(',')).build().await?;
    let (database, connection) = tokio_postgres::connect(&env::var("DATABASE")?, NoTls).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);

    // Before the log: what is paid by now is in the log, and what is new may be there.
    let counters = client.counters();
    let begun_ms = counters.new_request().time_ms();
    let mut orders: BTreeMap<String, (i64, String)> = BTreeMap::new();
    let select = "SELECT id, amount, state FROM orders";
    for row in database.query(select, &[]).await? {
        let name = format!("order-{}", row.get::<_, i64>("id"));
        orders.insert(name, (row.get("amount"), row.get("state")));
    }
    let shop = counters.open("shop")?;
    let (mut from, mut is_end, mut differences) = (HistoryCursor::default(), false, 0);
    while !is_end {
        let page = shop.history(&from, 1_000).await?;
        (from, is_end) = (page.next, page.is_end);
        for effect in page.effects.into_iter().map(|found| found.effect) {
            // What moves between segments of the account has no request.
            let Some(id) = effect.kind.request() else {
                continue;
            };
            let (word, amount) = (effect.kind.word(), effect.amount.get());
            match orders.remove(id.name()) {
                Some((ordered, state)) if ordered == amount && state != "refused" => {}
                // The next time.
                None if effect.at_ms >= begun_ms => {}
                order => {
                    differences += 1;
                    println!(
                        "{word} {amount} by {}, and the order is {order:?}",
                        id.name()
                    );
                }
            }
        }
    }
    for (name, (amount, _)) in orders.iter().filter(|(_, (_, state))| state == "paid") {
        differences += 1;
        println!("{name} is paid with {amount}, and the shop has not received it");
    }
    println!("differences: {differences}");
    client.close().await;
    Ok(())
}
