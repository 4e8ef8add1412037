//! A sharded lock coordinator: one holder, rising fencing tokens, no lost coin.
//!
//! This is the library; the binary of the same name founds topologies, runs commands under locks
//! (`ringfence lock`), and shows what the locks do (`ringfence demo`).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ringfence::Client;
//!
//! let client = Client::builder().embedded(3).build().await?;
//! let guard = client.lock("order/42").acquire().await?;
//! println!("held, with token {}", guard.token());
//! guard.release().await;
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! A table shows which kind of lock to use for what, its guarantee, its round trips, and what follows from a failure:
//! [`ringfence_client`].

pub use ringfence_client::*;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/start.md")]
struct Start;
