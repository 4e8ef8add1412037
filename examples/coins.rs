//! An HTTP service that deducts coins from rows of PostgreSQL, under a lock whose token the row checks.
//!
//! ```sh
//! DATABASE="host=localhost user=postgres" RINGFENCE_REDIS=redis://localhost cargo run --example coins
//! curl -X POST localhost:3000/accounts/42/deduct/30     # one request per account at a time
//! curl -X POST localhost:3000/accounts/42/race/30       # without the lock: coins are spent twice
//! ```
//!
//! The table: `account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)`.

use std::{env, error::Error, sync::Arc, time::Duration};

use axum::extract::{Path, State};
use axum::{Router, http::StatusCode, routing::post};
use ringfence::Client;
use tokio::{net::TcpListener, task::JoinSet, time::sleep};
use tokio_postgres::{Client as Database, NoTls};

type Bank = Arc<(Client, Database)>;
type Answer = Result<String, (StatusCode, String)>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let seeds = env::var("RINGFENCE_REDIS")?;
    let locks = Client::builder().redis(seeds.split(',')).build().await?;
    let (database, connection) = tokio_postgres::connect(&env::var("DATABASE")?, NoTls).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let routes = Router::new()
        .route("/accounts/{id}/deduct/{amount}", post(deduct))
        .route("/accounts/{id}/race/{amount}", post(race))
        .with_state(Arc::new((locks.clone(), database)));
    let address = env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(address).await?;
    println!("serves on {}", listener.local_addr()?);
    let served = locks.until_signal(axum::serve(listener, routes)).await?;
    Ok(served.unwrap_or(Ok(()))?)
}

/// Deducts under the lock of the account.
async fn deduct(State(bank): State<Bank>, Path((id, amount)): Path<(i64, i64)>) -> Answer {
    let lock = bank.0.lock(format!("account/{id}"));
    let guard = lock.wait(Duration::from_secs(10)).acquire().await;
    let guard = guard.map_err(busy)?;
    let work = take(&bank.1, id, amount, Some(guard.token().as_i64()));
    // Ends early if the lock is lost; the row refuses a write that was already on its way.
    let answer = guard.run_while_held(work).await.map_err(busy)?;
    guard.release().await;
    answer
}

/// Deducts without a lock: two requests read the same balance, and both write.
async fn race(State(bank): State<Bank>, Path((id, amount)): Path<(i64, i64)>) -> Answer {
    take(&bank.1, id, amount, None).await
}

/// Reads, decides, and writes: more than one statement can say.
async fn take(database: &Database, id: i64, amount: i64, token: Option<i64>) -> Answer {
    // Presents the token before it reads: from now on, a former holder cannot write.
    let read = "UPDATE account SET fence = coalesce($2, fence)
        WHERE id = $1 AND fence <= coalesce($2, fence) RETURNING balance";
    let row = database.query_opt(read, &[&id, &token]).await;
    let row = row.map_err(busy)?.ok_or_else(|| busy("too late"))?;
    let left = row.get::<_, i64>(0) - amount;
    if left < 0 {
        return Err((StatusCode::CONFLICT, "too few coins\n".into()));
    }
    sleep(Duration::from_millis(2)).await; // the order is checked …
    let write = "UPDATE account SET balance = $3 WHERE id = $1 AND fence <= coalesce($2, fence)";
    match database.execute(write, &[&id, &token, &left]).await {
        Ok(1) => Ok(format!("{left}\n")),
        Ok(_) => Err(busy("too late")),
        Err(error) => Err(busy(error)),
    }
}

fn busy(reason: impl ToString) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, reason.to_string() + "\n")
}
