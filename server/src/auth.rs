//! Authentication: the bearer token of a call.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::HashSet;
use ringfence_api::{Effect, Error, Reason};
use sha2::{Digest, Sha256};
use tonic::{Request, Status, service::Interceptor};

const HEADER: &str = "authorization";
const SCHEME: &str = "Bearer ";

/// The SHA-256 of a token: the settings have only this.
pub type TokenDigest = [u8; 32];

/// The digest of `token`, for the settings.
pub fn token_digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

/// Lets calls with a known token pass; all calls, if no token is set.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    /// None: every call passes.
    known: Option<Arc<HashSet<TokenDigest>>>,
}

impl Authentication {
    /// Of `tokens`, by the names of their holders.
    pub(crate) fn new(tokens: &BTreeMap<String, TokenDigest>) -> Self {
        let known = (!tokens.is_empty()).then(|| Arc::new(tokens.values().copied().collect()));
        Self { known }
    }
}

impl Interceptor for Authentication {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(known) = &self.known else {
            return Ok(request);
        };
        let header = request.metadata().get(HEADER);
        let token = header.and_then(|header| header.to_str().ok()?.strip_prefix(SCHEME));
        // The lookup compares digests: its duration tells nothing about a token.
        match token.is_some_and(|token| known.contains(&token_digest(token))) {
            true => Ok(request),
            false => Err(refused(token.is_some()).into()),
        }
    }
}

fn refused(has_token: bool) -> Error {
    let message = match has_token {
        true => "the bearer token is not known",
        false => "no bearer token: send the header authorization: Bearer TOKEN",
    };
    Error {
        reason: Reason::Unauthenticated,
        message: message.into(),
        is_retryable: false,
        effect: Effect::None,
        retry_after: None,
        input: None,
    }
}
