//! A caller: the proofs of its identity, and its roles.

use sha2::{Digest, Sha256};

use super::Scope;

/// The SHA-256 of a token: the settings have only this.
pub type TokenDigest = [u8; 32];

/// The digest of `token`, for the settings.
pub fn token_digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

/// A caller: `principals.NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// `sha256` and `certificate`: each alone is enough.
    pub proofs: Vec<Proof>,
    /// `acquire`, `change`, `receive`, `read`, `force_release` and `admin`.
    pub roles: Roles,
    /// `accounts_per_hour`: accounts that it may create. Default: no limit.
    pub accounts_per_hour: Option<u32>,
}

/// What proves that a call is a principal's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// `sha256`: the digest of its bearer token.
    Token(TokenDigest),
    /// `certificate`: a DNS name or a URI among the subject alternative names of its certificate.
    Certificate(String),
}

/// The calls that a principal may make. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// `acquire`: the locks that it may acquire, and the latches that it may count down.
    pub acquire: Vec<Scope>,
    /// `change`: the accounts that it may create, fill, empty and close.
    pub change: Vec<Scope>,
    /// `receive`: the accounts that it may transfer to, beside those of `change`.
    pub receive: Vec<Scope>,
    /// `read`: the locks and accounts that it may see.
    pub read: Vec<Scope>,
    /// `force_release`: the locks that it may take from their holders.
    pub force_release: Vec<Scope>,
    /// `admin`: whether it may see and change the topology.
    pub admin: bool,
}

impl Roles {
    /// Every call.
    pub fn all() -> Self {
        Self {
            acquire: vec![Scope::All],
            change: vec![Scope::All],
            receive: vec![Scope::All],
            read: vec![Scope::All],
            force_release: vec![Scope::All],
            admin: true,
        }
    }
}
