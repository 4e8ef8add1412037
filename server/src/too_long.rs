//! Messages beyond the limit. The transport refuses them before a handler sees them, with a text alone: here they get the
//! details that every error has.

use ringfence_api::{Error, MESSAGE_BYTES_MAX};
use tonic::{Code, Status, body::Body, codegen::http::Response};

/// The answer of a call, with details if its message was refused.
pub(crate) fn answer(answer: Response<Body>) -> Response<Body> {
    match Status::from_header_map(answer.headers()).map(explained) {
        Some(Ok(explained)) => explained.into_http(),
        Some(Err(_)) | None => answer,
    }
}

/// The status of a stream, with details if a message of it was refused.
pub(crate) fn status(status: Status) -> Status {
    explained(status).unwrap_or_else(|other| other)
}

/// `status` with details, if it refuses a message.
fn explained(status: Status) -> Result<Status, Status> {
    if status.code() != Code::OutOfRange || !status.details().is_empty() {
        return Err(status);
    }
    let words = status.message().split(' ');
    let found = words.skip_while(|word| *word != "found").nth(1);
    let value = format!("{} bytes", found.unwrap_or("too many"));
    let limit = format!("at most {MESSAGE_BYTES_MAX} bytes");
    Ok(Error::invalid("message", value, limit).into())
}
