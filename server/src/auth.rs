//! Authentication: the bearer token of a call.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::HashMap;
use ringfence_api::{Error, Reason};
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

/// A token that calls may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// `sha256`: its digest.
    pub sha256: TokenDigest,
    /// `admin`: whether it allows calls of AdminService. Default: false.
    pub admin: bool,
}

/// Lets calls with a known token pass; all calls, if no token is set.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    /// By digest: whether it is an admin's. Empty: every call passes.
    known: Arc<HashMap<TokenDigest, bool>>,
    /// Only admins pass.
    admins_only: bool,
}

impl Authentication {
    /// Of `tokens`, by the names of their holders.
    pub(crate) fn new(tokens: &BTreeMap<String, Token>) -> Self {
        let known = tokens.values().map(|token| (token.sha256, token.admin));
        Self {
            known: Arc::new(known.collect()),
            admins_only: false,
        }
    }

    /// The same tokens, for calls that only admins may make.
    pub(crate) fn of_admins(&self) -> Self {
        Self {
            admins_only: true,
            ..self.clone()
        }
    }

    fn check(&self, request: &Request<()>) -> Result<(), Error> {
        if self.known.is_empty() {
            return Ok(());
        }
        let header = request.metadata().get(HEADER);
        let token = header.and_then(|header| header.to_str().ok()?.strip_prefix(SCHEME));
        let Some(token) = token else {
            let message = "no bearer token: send the header authorization: Bearer TOKEN";
            return Err(Error::new(Reason::Unauthenticated, message));
        };
        // The lookup compares digests: its duration tells nothing about a token.
        match self.known.get(&token_digest(token)) {
            None => {
                let message = "the bearer token is not known";
                Err(Error::new(Reason::Unauthenticated, message))
            }
            Some(false) if self.admins_only => {
                let message = "the call needs the token of an admin: tokens.NAME.admin = true";
                Err(Error::new(Reason::NotAllowed, message))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Interceptor for Authentication {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        self.check(&request)?;
        Ok(request)
    }
}
