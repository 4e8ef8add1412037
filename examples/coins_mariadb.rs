//! An HTTP service that deducts coins from rows of MariaDB: a transaction locks the row, and one at a time comes to it.
//! ```sh
//! DATABASE=mysql://root@localhost/shop RINGFENCE_REDIS=redis://localhost cargo run --example coins_mariadb
//! curl -X POST localhost:3000/accounts/42/deduct/30     # one transaction per account at a time
//! curl -X POST localhost:3000/accounts/42/race/30       # with neither lock: coins are spent twice
//! ```
//!
//! The table: `account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)`.

use std::{env, error::Error, time::Duration};

use axum::extract::{Path, State};
use axum::{Router, http::StatusCode, routing::post};
use mysql_async::{IsolationLevel, Pool, TxOpts, prelude::Queryable};
use ringfence::Client;
use tokio::{net::TcpListener, time::sleep};

type Bank = (Client, Pool);
type Answer = Result<String, (StatusCode, String)>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let seeds = env::var("RINGFENCE_REDIS")?;
    let locks = Client::builder().redis(seeds.split(',')).build().await?;
    let database = Pool::new(env::var("DATABASE")?.as_str());
    let routes = Router::new()
        .route("/accounts/{id}/deduct/{amount}", post(deduct))
        .route("/accounts/{id}/race/{amount}", post(race))
        .with_state((locks.clone(), database));
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
    // Ends early if the lock is lost: the transaction is rolled back.
    let answer = guard.run_while_held(work).await.map_err(busy)?;
    guard.release().await;
    answer
}

/// Deducts without a lock: two requests read the same balance, and both write.
async fn race(State(bank): State<Bank>, Path((id, amount)): Path<(i64, i64)>) -> Answer {
    take(&bank.1, id, amount, None).await
}

/// Reads, decides, and writes. With a token, no other transaction does so before this one has ended.
async fn take(database: &Pool, id: i64, amount: i64, token: Option<i64>) -> Answer {
    let mut options = TxOpts::new();
    options.with_isolation_level(IsolationLevel::ReadCommitted);
    let mut row = database.start_transaction(options).await.map_err(busy)?;
    let locked = token.map_or("", |_| " FOR UPDATE");
    let read = format!("SELECT balance, fence FROM account WHERE id = ?{locked}");
    let found: Option<(i64, i64)> = row.exec_first(read, (id,)).await.map_err(busy)?;
    let (balance, fence) = found.ok_or_else(|| busy("no such account"))?;
    let (token, left) = (token.unwrap_or(fence), balance - amount);
    if token < fence {
        return Err(busy("too late")); // a later holder was here: rolled back
    }
    if left < 0 {
        return Err((StatusCode::CONFLICT, "too few coins\n".into()));
    }
    sleep(Duration::from_millis(2)).await; // the order is checked …
    let write = "UPDATE account SET balance = ?, fence = ? WHERE id = ?";
    let written = row.exec_drop(write, (left, token, id)).await;
    written.map_err(busy)?;
    row.commit().await.map_err(busy)?;
    Ok(format!("{left}\n"))
}

fn busy(reason: impl ToString) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, reason.to_string() + "\n")
}
