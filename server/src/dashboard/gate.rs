//! Whether a request of a browser may pass: its page, its caller, and the address by which it came.
//!
//! The token of a principal is in the header `authorization`, which no other site can send: without the token,
//! nothing passes. Where no principal is set, the rules below keep pages of other sites out.
//!
//! * `host` must be an IP address or `localhost`. A site whose name resolves to this host (DNS rebinding) sends its name.
//! * `origin` and `sec-fetch-site` must be those of the dashboard's own page.
//! * A change has a body of JSON: a form of another site cannot send one.

use std::{net::IpAddr, str::FromStr, sync::Arc};

use axum::{
    Json,
    extract::FromRequestParts,
    http::{
        HeaderMap,
        header::{AUTHORIZATION, HOST, HeaderName, ORIGIN},
        request::Parts,
        uri::Authority,
    },
    response::{IntoResponse, Response},
};
use ringfence_api::{Error, Reason};
use serde::Serialize;
use tonic::Status;

use super::Dashboard;
use crate::{access::Caller, errors};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The caller of a request that may pass.
pub(super) struct Visitor(pub(super) Arc<Caller>);

impl FromRequestParts<Arc<Dashboard>> for Visitor {
    type Rejection = Refused;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Refused> {
        let authentication = &dashboard.authentication;
        let host = host(&parts.headers)?;
        if authentication.is_open() && !is_direct(&host) {
            return Err(foreign("host", host.host(), "an IP address or localhost"));
        }
        check_origin(&parts.headers, &host)?;
        let header = text(&parts.headers, &AUTHORIZATION)?;
        Ok(Self(authentication.caller_over_http(header)?))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refused> {
    let value = headers.get(name).map(|value| value.to_str()).transpose();
    value.map_err(|_| foreign(name.as_str(), "no ASCII", "ASCII"))
}

fn host(headers: &HeaderMap) -> Result<Authority, Refused> {
    let host = text(headers, &HOST)?.unwrap_or_default();
    Authority::from_str(host).map_err(|_| foreign("host", host, "the address of the dashboard"))
}

/// Whether `host` is an address, so that no other site can have resolved it to this host.
fn is_direct(host: &Authority) -> bool {
    let name = host.host();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

fn check_origin(headers: &HeaderMap, host: &Authority) -> Result<(), Refused> {
    if let Some(origin) = text(headers, &ORIGIN)? {
        let own = origin.split_once("://").map(|(_, authority)| authority);
        if !own.is_some_and(|own| own.eq_ignore_ascii_case(host.as_str())) {
            return Err(foreign("origin", origin, host));
        }
    }
    match text(headers, &SEC_FETCH_SITE)? {
        None | Some("same-origin" | "none") => Ok(()),
        Some(site) => Err(foreign("sec-fetch-site", site, "same-origin")),
    }
}

fn foreign(header: &str, value: &str, limit: impl std::fmt::Display) -> Refused {
    let message = format!("the header {header} is {value:?}, must be {limit}");
    Refused(Error::new(Reason::NotAllowed, message))
}

/// The answer to a request that failed: its message is for the page.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Error);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

#[derive(Serialize)]
struct Message {
    message: String,
    retryable: bool,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let message = Message {
            message: self.0.message.clone(),
            retryable: self.0.is_retryable,
        };
        (errors::http(Status::from(self.0).code()), Json(message)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_or_localhost_is_direct() {
        for (host, direct) in [
            ("127.0.0.1:7421", true),
            ("[::1]:7421", true),
            ("10.0.0.7", true),
            ("localhost:7421", true),
            ("localhost.example.org:7421", false),
            ("127.0.0.1.example.org", false),
            ("example.org", false),
        ] {
            assert_eq!(is_direct(&host.parse().unwrap()), direct, "{host}");
        }
    }
}
