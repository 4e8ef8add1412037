//! Whether what happened was right: one file a rule, each a pure function of a merged history.
//!
//! Of a grant *g*, `D(g)` is its deadline as computed here: the send of the answered request, plus
//! the lease × (1 − rho), minus the margin; a renewal answered before it moves it. Its holder
//! *certainly believes* in it during `K(g)`: from the moment it was told, until `D(g)`, the begin of
//! its release, or its process' end, whichever comes first. Grants that a process hands on share a nonce
//! and its deadline, each with its own token.
//!
//! Of a ticket, it is certain that it *stays* in its key's queue from the answer that says so for as long
//! as it is heard of often enough; see [`Stay`].

mod belief;
mod deadline;
mod exclusion;
mod fence;
mod grant;
mod grants;
mod handoff;
mod line;
mod liveness;
mod loss;
mod minima;
mod nonces;
mod order;
mod queue;
mod resurrection;
mod tickets;
mod uniqueness;
mod violation;
mod windows;

pub use grant::Grant;
pub use grants::Grants;
pub use liveness::WITHIN as LIVENESS_WITHIN;
pub use minima::{Counts, Minima};
pub use tickets::{Stay, Ticket, Tickets};
pub use violation::{Rule, Violation};

use crate::history::History;

/// Every rule that `history` breaks; and whether enough happened for that to mean something.
pub fn check(history: &History, minima: &Minima) -> Vec<Violation> {
    let grants = Grants::of(history);
    let tickets = Tickets::of(history);
    [
        exclusion::check(&grants),
        deadline::check(&grants),
        belief::check(history, &grants),
        fence::check(history, &grants),
        uniqueness::check(&grants),
        order::check(&grants),
        resurrection::check(&grants),
        loss::check(history, &grants),
        queue::check(&tickets),
        line::check(history),
        handoff::check(history, &tickets),
        liveness::check(history, &grants),
        minima::check(&Counts::of(history), minima),
    ]
    .concat()
}
