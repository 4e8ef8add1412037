//! Orders in PostgreSQL, paid from balances in Ringfence, by workers that may die at any instant.
//!
//! ```sh
//! export DATABASE="host=localhost user=postgres" RINGFENCE_REDIS=redis://localhost
//! cargo run --example payments buyer/1 30   # places an order, with its payment in the outbox
//! cargo run --example payments              # makes the payments of the outbox: any number of workers at a time
//! cargo run --example reconcile             # each night
//! ```
//!
//! The tables: `orders (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, buyer TEXT NOT NULL, amount BIGINT NOT NULL,
//! state TEXT NOT NULL DEFAULT 'new')` and `outbox (of BIGINT PRIMARY KEY REFERENCES orders, made_ms BIGINT NOT NULL)`.

use std::{env, error::Error, time::Duration};

use ringfence::counter::{Amount, CounterError, RequestId};
use ringfence::{Client, Counters};
use tokio::{task::JoinSet, time::sleep};
use tokio_postgres::{Client as Database, NoTls, types::ToSql};

/// An order, and the time of its payment, in one transaction. The time is a part of the payment's id.
const PLACE: &str =
    "WITH placed AS (INSERT INTO orders (buyer, amount) VALUES ($1, $2) RETURNING id)
    INSERT INTO outbox (of, made_ms) SELECT id, $3 FROM placed";
const NEXT: &str = "SELECT id, buyer, amount, made_ms FROM orders JOIN outbox ON id = of
    ORDER BY id LIMIT 1 FOR UPDATE OF outbox SKIP LOCKED";
const FINISH: &str = "WITH done AS (DELETE FROM outbox WHERE of = $1)
    UPDATE orders SET state = $2 WHERE id = $1";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let seeds = env::var("RINGFENCE_REDIS")?;
    let client = Client::builder().redis(seeds.split(',')).build().await?;
    let (database, connection) = tokio_postgres::connect(&env::var("DATABASE")?, NoTls).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let counters = client.counters();
    match env::args().nth(1).zip(env::args().nth(2)) {
        Some((buyer, amount)) => {
            let made_ms = i64::try_from(counters.new_request().time_ms())?;
            let amount: i64 = amount.parse()?;
            let order = [&buyer as &(dyn ToSql + Sync), &amount, &made_ms];
            println!("placed {}", database.execute(PLACE, &order).await?);
        }
        None => pay(database, &counters).await?,
    }
    client.close().await;
    Ok(())
}

/// Makes the payments of the outbox. A worker that dies leaves its row there, and another one repeats the payment, with
/// the same id: one effect.
async fn pay(mut database: Database, counters: &Counters) -> Result<(), Box<dyn Error>> {
    let shop = counters.open("shop")?;
    loop {
        let work = database.transaction().await?;
        let Some(row) = work.query_opt(NEXT, &[]).await? else {
            return Ok(());
        };
        let (id, made_ms): (i64, i64) = (row.get("id"), row.get("made_ms"));
        let payment = RequestId::new(made_ms.try_into()?, &format!("order-{id}"))?;
        let buyer = counters.open(row.get("buyer"))?;
        let amount = Amount::new(row.get::<_, i64>("amount"))?;
        let state = match buyer.transfer(&payment, amount, &shop).await {
            Ok(_) => "paid",
            Err(CounterError::Insufficient) => "refused",
            Err(error) if error.is_retryable() => {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        work.execute(FINISH, &[&id, &state]).await?;
        work.commit().await?;
        println!("{state} {id}");
    }
}
