//! First come, first served: while a ticket certainly has its place in a key's queue, no
//! acquisition is granted whose first request left after that place was known. A preferred acquisition may go before a
//! ticket that is not preferred.
//!
//! Several tickets of a semaphore or of a read-write lock may be granted at once, and a later one known first. There an
//! acquisition went before a ticket if it has the smaller token, or if it was known before a request left that found
//! the ticket still waiting.

use super::{Rule, Stay, Ticket, Tickets, Violation, violation::seconds};
use crate::shares;

pub(super) fn check(tickets: &Tickets<'_>) -> Vec<Violation> {
    tickets
        .of_key
        .values()
        .flat_map(|of_key| of_one(of_key))
        .collect()
}

fn of_one(of_key: &[Ticket<'_>]) -> Vec<Violation> {
    let mut granted: Vec<(u64, &Ticket<'_>)> = of_key
        .iter()
        .filter_map(|ticket| Some((ticket.granted?.0, ticket)))
        .collect();
    granted.sort_by_key(|(granted_ns, _)| *granted_ns);
    let of_ticket = |ticket| overtaken(ticket, &granted);
    of_key.iter().flat_map(of_ticket).collect()
}

fn overtaken(ticket: &Ticket<'_>, granted: &[(u64, &Ticket<'_>)]) -> Vec<Violation> {
    let before = |t_ns| granted.partition_point(|(granted_ns, _)| *granted_ns < t_ns);
    let by = |stay: &Stay<'_>| {
        let meanwhile = &granted[before(stay.known.t_ns)..before(stay.until_ns)];
        let late = meanwhile
            .iter()
            .filter(|(_, other)| other.began.0 > stay.known.t_ns)
            .filter(|(_, other)| ticket.preferred || !other.preferred)
            .filter(|(_, other)| went_before(other, ticket, stay));
        late.copied().collect::<Vec<_>>()
    };
    let stays = ticket.stays().map(|stay| (stay, by(stay)));
    let overtaken = stays.filter(|(_, by)| !by.is_empty());
    overtaken.map(|(stay, by)| violation(stay, &by)).collect()
}

/// Whether `other`, granted while it was not known that `ticket` was, certainly was granted before it.
fn went_before(other: &Ticket<'_>, ticket: &Ticket<'_>, stay: &Stay<'_>) -> bool {
    let (true, Some((known_ns, grant))) = (shares::has(ticket.key), other.granted) else {
        return true;
    };
    let ends = ticket
        .granted
        .filter(|(granted_ns, _)| *granted_ns == stay.until_ns);
    let by_token = ends.is_some_and(|(_, its)| grant.deed.token < its.deed.token);
    by_token || known_ns < stay.found_ns
}

fn violation(stay: &Stay<'_>, by: &[(u64, &Ticket<'_>)]) -> Violation {
    let (at, first) = by[0];
    let what = format!(
        "process {} had its place from {} on, and was overtaken {} times until {}: first by process {}, \
         which asked at {} and was granted it at {}",
        stay.known.process,
        seconds(stay.known.t_ns),
        by.len(),
        seconds(stay.until_ns),
        first.began.1.process,
        seconds(first.began.0),
        seconds(at),
    );
    let grant = first.granted.map(|(_, event)| event);
    let events = [stay.known, first.began.1].into_iter().chain(grant);
    Violation::new(Rule::Queue, first.key, what, events)
}
