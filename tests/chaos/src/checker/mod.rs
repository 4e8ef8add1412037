//! Checks a history: one file per rule, each a pure function of a merged history.
//!
//! For a grant *g*, `D(g)` is its deadline as computed here: the send of the answered request, plus
//! the lease × (1 − rho), minus the margin. A renewal answered before `D(g)` moves it. The holder
//! *certainly believes* in the grant during `K(g)`: from the moment it was informed until `D(g)`,
//! the begin of its release, or the end of its process, whichever comes first. With `removal = leased`
//! belief also ends with the view of the topology: the deadline that the engine told stands in for
//! `D(g)` where it is earlier. Grants that a
//! process hands on share a nonce and its deadline, and each has its own token.
//!
//! A lock with several replicas is judged like any other, by what its engine says of it as a whole: its deadline is
//! the one that a majority of its replicas makes, which has its own rule. Its waiters queue at the lead, which
//! may change: their tickets are judged per replica.
//!
//! A ticket certainly *stays* in its key's queue from the answer that says so, as long as its
//! requests arrive often enough; see [`Stay`].

mod belief;
mod deadline;
mod exclusion;
mod fence;
mod grant;
mod grants;
mod handoff;
mod latches;
mod leftover;
mod line;
mod liveness;
mod loss;
mod majority;
mod minima;
mod nonces;
mod notice;
mod order;
mod queue;
mod resurrection;
mod stop;
mod tickets;
mod uniqueness;
mod violation;
mod whole;
mod windows;

pub use grant::Grant;
pub use grants::Grants;
pub use liveness::WITHIN as LIVENESS_WITHIN;
pub use minima::{Counts, Minima};
pub use tickets::{Stay, Ticket, Tickets};
pub use violation::{Rule, Violation};

use crate::history::History;

/// Every rule that `history` breaks; and whether enough happened to make the check meaningful.
pub fn check(history: &History, minima: &Minima) -> Vec<Violation> {
    let grants = Grants::of(history);
    let tickets = Tickets::of(history);
    [
        exclusion::check(&grants),
        deadline::check(&grants),
        majority::check(history, &grants),
        belief::check(history, &grants),
        fence::check(history, &grants),
        uniqueness::check(&grants),
        order::check(&grants),
        resurrection::check(history, &grants),
        loss::check(history, &grants),
        leftover::check(history),
        stop::check(history, &grants),
        whole::check(history, &grants),
        notice::check(history, &grants),
        latches::check(history),
        queue::check(&tickets),
        line::check(history),
        handoff::check(history, &tickets),
        liveness::check(history, &grants),
        minima::check(&Counts::of(history), minima),
    ]
    .concat()
}
