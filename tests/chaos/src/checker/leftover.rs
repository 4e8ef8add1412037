//! No lock stays held for nobody: an acquisition that no task was told of is renewed only while a task of its process asks
//! for the key or has it. So nothing stays of a set of locks that was not granted, and of an acquisition that was dropped.
//! (What was told and given back is judged by [`super::resurrection`].)

use std::collections::{HashMap, HashSet};

use super::{
    Rule, Violation,
    violation::seconds,
    windows::{self, Window},
};
use crate::history::{Answer, Event, Fault, History, Kind, Phase};

/// What a busy machine may take between the end of a use and the release in the background.
const SLACK_NS: u64 = 500_000_000;

/// The times during which tasks of a process ask for a key, or have it: each may still go on.
type Uses = Vec<(u64, Option<u64>)>;

pub(super) fn check(history: &History) -> Vec<Violation> {
    let uses = uses(history);
    let mut stops = windows::of(history);
    stops.retain(|window| window.fault == Fault::StopClient);
    let of = |wanted: Kind| {
        let events = history.events.iter();
        events.filter(move |event| (event.deed.kind, event.deed.phase) == (wanted, Phase::Ok))
    };
    let told: HashSet<_> = of(Kind::Acquire).map(|event| &event.deed.nonce).collect();
    of(Kind::Renew)
        .filter(|renewal| !told.contains(&renewal.deed.nonce))
        .filter_map(|renewal| of_one(renewal, &uses, &stops))
        .collect()
}

/// Of each process and key.
fn uses(history: &History) -> HashMap<(u32, &str), Uses> {
    let mut uses: HashMap<_, Uses> = HashMap::new();
    // By the operation, then by the grant.
    let (mut asking, mut held) = (HashMap::new(), HashMap::new());
    for event in &history.events {
        let (process, deed) = (event.process, &event.deed);
        let Some(key) = deed.key.as_deref() else {
            continue;
        };
        let of_key = uses.entry((process, key)).or_default();
        let of_grant = (process, deed.nonce.as_deref(), deed.token);
        let ended = match (deed.kind, deed.phase) {
            (Kind::Acquire, Phase::Invoke) => {
                asking.insert((process, deed.op), of_key.len());
                of_key.push((event.t_ns, None));
                continue;
            }
            (Kind::Acquire, Phase::Ok) => {
                let use_of_it = asking.remove(&(process, deed.op));
                held.extend(use_of_it.map(|place| (of_grant, place)));
                continue;
            }
            (Kind::Acquire, _) => asking.remove(&(process, deed.op)),
            (Kind::Release, Phase::Invoke) => held.remove(&of_grant),
            (Kind::GuardState, _) if deed.answer == Some(Answer::Lost) => held.remove(&of_grant),
            _ => continue,
        };
        if let Some(place) = ended {
            of_key[place].1 = Some(event.t_ns);
        }
    }
    uses
}

fn of_one(
    renewal: &Event,
    uses: &HashMap<(u32, &str), Uses>,
    stops: &[Window<'_>],
) -> Option<Violation> {
    let (process, key) = (renewal.process, renewal.deed.key.as_deref()?);
    let sent_ns = renewal.deed.sent_ns?;
    let of_key = uses.get(&(process, key)).map_or(&[][..], Vec::as_slice);
    let begun = of_key.iter().filter(|(from_ns, _)| *from_ns <= sent_ns);
    let last_ns = begun
        .map(|(_, until_ns)| until_ns.unwrap_or(u64::MAX))
        .max();
    let since_ns = last_ns.unwrap_or(0);
    let stopped = stops.iter().any(|stop| {
        stop.victim == Some(process) && stop.time.start <= sent_ns && since_ns <= stop.time.end
    });
    if stopped || sent_ns <= since_ns.saturating_add(SLACK_NS) {
        return None;
    }
    let what = format!(
        "process {process} renewed it at {}, and nobody there had or wanted it since {}",
        seconds(sent_ns),
        seconds(since_ns)
    );
    Some(Violation::new(Rule::Leftover, key, what, [renewal]))
}
