//! A candidate for leader: start it twice, and kill the one that leads.
//!
//! ```sh
//! RINGFENCE_REDIS=redis://localhost cargo run --example leader -- node-1     # after `ringfence ring init`
//! RINGFENCE_REDIS=redis://localhost cargo run --example leader -- node-2     # waits; leads when node-1 is gone
//! ```

use std::{env, error::Error, time::Duration};

use ringfence::{Client, Token};
use tokio::{signal, time::sleep};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = env::args().nth(1).unwrap_or_else(|| "node".into());
    let seeds = env::var("RINGFENCE_REDIS")?;
    let client = Client::builder().redis(seeds.split(',')).build().await?;
    // After a crash, the next candidate leads within the lease.
    let election = client
        .election("scheduler")
        .label(&name)
        .lease(Duration::from_secs(2));
    loop {
        println!("{name} is a candidate");
        let leadership = tokio::select! {
            elected = election.campaign() => elected?,
            _ = signal::ctrl_c() => break,
        };
        println!("{name} leads with token {}", leadership.token());
        tokio::select! {
            // Ends when the leadership is lost: only `lead` decides that it may go on.
            ended = leadership.run_while_held(lead(leadership.token())) => match ended {
                Ok(()) => println!("{name} has done its work"),
                Err(lost) => println!("{name} leads no more: {lost}"),
            },
            _ = signal::ctrl_c() => {
                leadership.resign().await; // the next candidate leads at once
                break;
            }
        }
    }
    client.close().await;
    Ok(())
}

/// The work of the leader. It passes the token to all that it writes to.
async fn lead(token: Token) {
    for round in 1.. {
        println!("round {round} under token {token}");
        sleep(Duration::from_millis(500)).await;
    }
}
