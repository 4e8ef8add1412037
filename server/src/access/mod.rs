//! The callers, and the calls that they may make.
//!
//! | file | content |
//! |---|---|
//! | `principal.rs` | a caller: the proofs of its identity, and its roles |
//! | `scope.rs` | the keys of a role: one, those with a prefix, or all |
//! | `authentication.rs` | finds the caller of a request |
//! | `admission.rs` | whether a caller may make a call now |
//! | `rate.rs` | calls per second of a caller |
//! | `audit.rs` | the log of what callers changed, and of refusals |

mod admission;
mod audit;
mod authentication;
mod principal;
mod rate;
mod scope;

pub(crate) use admission::{
    Admitted, Call, Caller, PLACE_AFTER, admit, admit_within, caller_of, limited,
};
pub(crate) use audit::Audit;
pub(crate) use authentication::Authentication;
pub use principal::{Principal, Proof, Roles, TokenDigest, token_digest};
pub use scope::Scope;
