//! Whether what happened was right: one file a rule, each a pure function of a merged history.
//!
//! Of a grant *g*, `D(g)` is its deadline as computed here: the send of the answered request, plus
//! the lease × (1 − rho), minus the margin; a renewal answered before it moves it. Its holder
//! *certainly believes* in it during `K(g)`: from the moment it was told, until `D(g)`, the begin of
//! its release, or its process' end, whichever comes first.

mod belief;
mod deadline;
mod exclusion;
mod fence;
mod grants;
mod liveness;
mod loss;
mod minima;
mod order;
mod resurrection;
mod uniqueness;
mod violation;
mod windows;

pub use grants::{Grant, Grants};
pub use liveness::WITHIN as LIVENESS_WITHIN;
pub use minima::{Counts, Minima};
pub use violation::{Rule, Violation};

use crate::history::History;

/// Every rule that `history` breaks; and whether enough happened for that to mean something.
pub fn check(history: &History, minima: &Minima) -> Vec<Violation> {
    let grants = Grants::of(history);
    [
        exclusion::check(&grants),
        deadline::check(&grants),
        belief::check(history, &grants),
        fence::check(history, &grants),
        uniqueness::check(&grants),
        order::check(&grants),
        resurrection::check(&grants),
        loss::check(history, &grants),
        liveness::check(history, &grants),
        minima::check(history, &grants, minima),
    ]
    .concat()
}
