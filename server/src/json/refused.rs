//! The answer to a call that failed.

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use ringfence_api::{Error, Reason, v1::ErrorDetail};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::{JSON, TYPES, headers, message};
use crate::errors;

/// A call that failed.
pub(super) struct Refused {
    http: StatusCode,
    code: Code,
    error: Error,
}

impl Refused {
    /// For a part of the request that is known before the call is.
    pub(super) fn with(http: StatusCode, part: &str, value: &str, limit: &str) -> Self {
        Self {
            http,
            ..Status::from(Error::invalid(part, format!("{value:?}"), limit)).into()
        }
    }

    pub(super) fn body(&self) -> Value {
        let kind = TYPES.get_message_by_name("ringfence.v1.ErrorDetail");
        let kind = kind.expect("it is in the API");
        let detail = message::dynamic(&kind, &ErrorDetail::from(&self.error));
        let mut body = message::write(&detail);
        body["code"] = self.http.as_u16().into();
        let status = message::words(&format!("{:?}", self.code), '_');
        body["status"] = status.to_uppercase().into();
        body["message"] = (&*self.error.message).into();
        json!({ "error": body })
    }
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        let (code, error) = (status.code(), Error::from_status(&status));
        let http = match (code, error.reason) {
            (Code::OutOfRange, Reason::InvalidInput) => StatusCode::PAYLOAD_TOO_LARGE,
            _ => errors::http(code),
        };
        Self { http, code, error }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut headers = headers(JSON);
        if let Some(after) = self.error.retry_after {
            // A part of a second is one, too.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, seconds.into());
        }
        match self.http {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(ALLOW, HeaderValue::from_static("POST"));
            }
            _ => {}
        }
        (self.http, headers, self.body().to_string()).into_response()
    }
}
