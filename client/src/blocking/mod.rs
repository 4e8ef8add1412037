//! The same locks, elections, latches and counters for callers without tokio. Names and meanings are those of the asynchronous API; a
//! call blocks its thread until it is done.
//!
//! A client has one thread of its own, which renews the locks and sends the releases of dropped
//! guards. It ends when the client and all that was made from it are dropped.
//!
//! Inside a tokio runtime the calls work too, but each blocks a thread of that runtime: use the
//! asynchronous API there.
//!
//! # Examples
//!
//! ```
//! use ringfence_client::blocking::Client;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::build(Client::builder().embedded(3))?;
//! let guard = client.lock("order/42").acquire()?;
//! println!("held, with token {}", guard.token());
//! drop(guard); // or `guard.release()`, which waits for the answer
//! client.close();
//! # Ok(())
//! # }
//! ```

mod client;
mod counters;
mod election;
mod guard;
mod latch;
mod lock;
mod reactor;
mod shares;

pub use client::Client;
pub use counters::{Counter, Counters};
pub use election::{Election, Leadership, Observer};
pub use guard::{Guard, MultiGuard};
pub use latch::Latch;
pub use lock::{Lock, MultiLock};
pub use shares::{RwLock, Semaphore};
