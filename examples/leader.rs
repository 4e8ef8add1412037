//! A candidate for leader: start it twice, and kill the one that leads.
//!
//! ```sh
//! RINGFENCE_REDIS=redis://localhost cargo run --example leader -- node-1     # after `ringfence ring init`
//! RINGFENCE_REDIS=redis://localhost cargo run --example leader -- node-2     # waits; leads when node-1 is gone
//! ```

use std::{env, error::Error, time::Duration};

use ringfence::{Client, Token};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = env::args().nth(1).unwrap_or_else(|| "node".into());
    let seeds = env::var("RINGFENCE_REDIS")?;
    let client = Client::builder().redis(seeds.split(',')).build().await?;
    // At Ctrl-C and SIGTERM, `run` is dropped with its leadership: the next candidate leads at once.
    let ended = client.until_signal(run(&client, &name)).await?;
    ended.unwrap_or(Ok(()))
}

/// Leads again and again.
async fn run(client: &Client, name: &str) -> Result<(), Box<dyn Error>> {
    // After a crash, the next candidate leads within the lease.
    let election = client
        .election("scheduler")
        .label(name)
        .lease(Duration::from_secs(2));
    loop {
        println!("{name} is a candidate");
        let leadership = election.campaign().await?;
        println!("{name} leads with token {}", leadership.token());
        // Ends when the leadership is lost: only `lead` decides that it may go on.
        match leadership.run_while_held(lead(leadership.token())).await {
            Ok(()) => println!("{name} has done its work"),
            Err(lost) => println!("{name} leads no more: {lost}"),
        }
    }
}

/// The work of the leader. It passes the token to all that it writes to.
async fn lead(token: Token) {
    for round in 1.. {
        println!("round {round} under token {token}");
        sleep(Duration::from_millis(500)).await;
    }
}
