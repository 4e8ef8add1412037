//! The gRPC API of Ringfence, `proto/ringfence/v1`: messages, clients and servers, and errors.
//!
//! | file | content |
//! |---|---|
//! | `proto/ringfence/v1/lock.proto` | locks |
//! | `proto/ringfence/v1/session.proto` | many locks of one caller over one stream |
//! | `proto/ringfence/v1/counter.proto` | counters |
//! | `proto/ringfence/v1/admin.proto` | for operators |
//! | `proto/ringfence/v1/error.proto` | the details of an error |
//! | `src/error.rs` | errors as gRPC statuses, and back |
//!
//! This crate depends on no other crate of Ringfence.

mod error;

use std::time::Duration;

pub use error::{Error, Input};
pub use v1::{Effect, ErrorReason as Reason};

/// The generated messages, clients and servers.
#[expect(clippy::allow_attributes, clippy::too_many_lines, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("ringfence.v1");
}

/// The descriptors of the API's files, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// A length of time; none if it is negative.
///
/// Takes any value, unlike the conversion of `prost_types`, which overflows at the least one.
pub fn length(length: prost_types::Duration) -> Option<Duration> {
    let length = length.normalized();
    let seconds = u64::try_from(length.seconds).ok()?;
    let nanos = u32::try_from(length.nanos).ok()?;
    Some(Duration::new(seconds, nanos))
}

/// Bytes in one request, at most.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
