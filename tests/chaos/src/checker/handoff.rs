//! Once a process knows that another process waits, it hands the lock on only for a short time. It
//! knows when a renewal is answered that was sent while another's ticket certainly had its place.
//! (It may know earlier, by a message that leaves no trace here.)

use std::collections::HashMap;

use super::{
    Rule, Tickets, Violation,
    violation::seconds,
    windows::{self, Window},
};
use crate::history::{Event, Fault, History, Kind, Phase};

/// The limit, plus the time that a busy machine may take between the answer and its effect.
const LENGTH_NS: u64 = 10_000_000 + 200_000_000;

pub(super) fn check(history: &History, tickets: &Tickets<'_>) -> Vec<Violation> {
    let mut stops = windows::of(history);
    stops.retain(|window| window.fault == Fault::StopClient);
    let mut known: HashMap<&str, &Event> = HashMap::new();
    let mut violations = Vec::new();
    for event in &history.events {
        let deed = &event.deed;
        let (Some(key), Some(nonce)) = (deed.key.as_deref(), deed.nonce.as_deref()) else {
            continue;
        };
        match (deed.kind, deed.phase) {
            (Kind::Renew, Phase::Ok) if tells(event, tickets, key, nonce) => {
                known.entry(nonce).or_insert(event);
            }
            (Kind::Grant, Phase::Ok) if deed.handed => {
                let known = known.get(nonce).copied();
                violations.extend(known.and_then(|known| late(event, known, &stops)));
            }
            _ => {}
        }
    }
    violations
}

/// Whether `renewal` of `nonce` says that another process waits.
fn tells(renewal: &Event, tickets: &Tickets<'_>, key: &str, nonce: &str) -> bool {
    let Some(sent_ns) = renewal.deed.sent_ns else {
        return false;
    };
    let others = tickets.of_key.get(&(key, None)).into_iter().flatten();
    let others = others.filter(|ticket| ticket.nonce != nonce);
    let mut stays = others.flat_map(|ticket| ticket.stays());
    stays.any(|stay| stay.known.t_ns < sent_ns && renewal.t_ns < stay.until_ns)
}

fn late(handed: &Event, known: &Event, stops: &[Window<'_>]) -> Option<Violation> {
    let stopped = stops.iter().any(|stop| {
        let overlaps = stop.time.start <= handed.t_ns && known.t_ns <= stop.time.end;
        stop.victim == Some(handed.process) && overlaps
    });
    if stopped || handed.t_ns <= known.t_ns + LENGTH_NS {
        return None;
    }
    let what = format!(
        "process {} handed it on at {}, and knew at {} that another waits",
        handed.process,
        seconds(handed.t_ns),
        seconds(known.t_ns)
    );
    let key = handed.deed.key.as_deref().unwrap_or_default();
    Some(Violation::new(Rule::HandOff, key, what, [known, handed]))
}
