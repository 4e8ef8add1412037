//! The coordinator as a service: locks and counters over gRPC, for every language.
//!
//! ```text
//! caller ─ gRPC ─► connections ─► locks, counters ─► Client (ringfence-client) ─► shards
//!                                   └─ holds: the locks held for callers, until their leases end
//! ```
//!
//! | file | content |
//! |---|---|
//! | `config/` | the settings: file, environment, command line; checked before a port is bound |
//! | `service.rs` | binds the port, serves, stops gracefully |
//! | `reload.rs` | settings that change while it serves |
//! | `access/` | the callers, and the calls that they may make |
//! | `tls.rs` | TLS, and the certificates of callers |
//! | `connections.rs` | accepts connections, up to the limit |
//! | `secured.rs` | a connection, with TLS if the port has it |
//! | `frames.rs` | counts frames of HTTP/2 that are dear to answer |
//! | `bounds.rs` | bounds of calls that are not complete, or need no role |
//! | `calls.rs` | counts calls, by method and code |
//! | `deadline.rs` | the deadline of a call |
//! | `json/` | the same calls over HTTP with JSON |
//! | `too_long.rs` | messages beyond the limit |
//! | `fields.rs` | fields of requests that the API crate cannot check |
//! | `errors.rs` | errors of locks and counters, as errors of the API |
//! | `locks/` | LockService, and the locks held for callers |
//! | `sessions/` | SessionService |
//! | `counters/` | CounterService |
//! | `latches.rs` | LatchService |
//! | `sweeper.rs` | sweeps of all accounts, in the background |
//! | `admin/` | AdminService |
//! | `traces.rs` | spans of calls; with the feature `otlp`, sent to a collector |
//! | `monitor.rs` | numbers and health over HTTP |
//! | `dashboard/` | the page for operators, on the port of the monitor |

mod access;
mod admin;
mod bounds;
mod calls;
mod config;
mod connections;
mod counters;
mod dashboard;
mod deadline;
mod errors;
mod fields;
mod frames;
mod json;
mod latches;
mod locks;
mod monitor;
mod readiness;
mod reload;
mod secured;
mod service;
mod sessions;
mod sweeper;
mod tls;
mod too_long;
mod traces;

pub use access::{Principal, Proof, Roles, Scope, TokenDigest, token_digest};
pub use config::{Config, ConfigError, Limits, Log, Overrides};
pub use reload::Reloader;
pub use service::{BindError, ServeError, Service};
pub use tls::{PemFile, Tls};
#[cfg(feature = "otlp")]
pub use traces::{Traces, TracesError};
