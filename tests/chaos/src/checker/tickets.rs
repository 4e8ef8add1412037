//! The tickets with a place in a key's queue, and the times during which this is certain.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    ops::Range,
};

use super::grant::{CLAIM_MAX_MS, believed_until};
use crate::history::{Event, Fault, History, Kind, Phase};

/// A ticket stays in the queue for this long after a request that carried it.
const TICKET_KEEP_MS: u64 = 3000;

/// An acquisition that sent a request to a shard.
#[derive(Debug)]
pub struct Ticket<'h> {
    /// The lock.
    pub key: &'h str,
    /// The replica at which it is, if the lock has several.
    pub rank: Option<u64>,
    /// Its nonce.
    pub nonce: &'h str,
    /// Whether it goes before tickets that are not preferred.
    pub preferred: bool,
    /// The time when its first request left, and the event that shows it.
    pub began: (u64, &'h Event),
    /// The time when its process knew of its grant, and the event that shows it.
    pub granted: Option<(u64, &'h Event)>,
    /// The times when it was certainly in the queue, in order.
    stays: Vec<Stay<'h>>,
}

/// A time during which a ticket certainly was in its key's queue, in one place.
///
/// It begins with an answer that says so. It ends when its process knows that it is granted, or
/// that it gives up. It also ends when no request of it is known to have arrived for so long that
/// the shard may have dropped it; or may have granted it the lock, got no renewal, and gone on
/// after the claim time. That is so if its process was stopped or killed, or its connection was in
/// trouble, for so long; a lost message is no excuse. It also ends if its shard began another life,
/// and the queue vanished or came back as it had been: a recovery period is no shorter than a
/// lease, grants nothing, and no answer in it tells of a place. It ends when its key is taken from its holders by force:
/// the ticket may be one of them, and not know it yet.
///
/// A place is at one shard, and is lost once the slot is sealed there: the waiter queues again at the next
/// shard. So once slots move, a place is certain only until another answer or a grant shows that the waiter
/// kept it: its request went to no other shard meanwhile. And it is not certain while a resize is turned
/// back, when the slot may have come back.
///
/// What the shard says afterwards begins another stay.
#[derive(Debug)]
pub struct Stay<'h> {
    /// The answer that shows it.
    pub known: &'h Event,
    /// The earliest possible end.
    pub until_ns: u64,
    /// When the last request left that found it there.
    pub(super) found_ns: u64,
}

/// A key's queue at a shard. A lock with replicas has one per rank, and requests without a replica are the lock's own.
type Line<'h> = (&'h str, Option<u64>);

/// The tickets of each key.
#[derive(Debug)]
pub struct Tickets<'h> {
    /// By key and rank, in the order in which their first requests left.
    pub of_key: BTreeMap<Line<'h>, Vec<Ticket<'h>>>,
}

/// The records of one nonce.
#[derive(Debug, Default)]
struct Recorded<'h> {
    first: Option<(u64, &'h Event)>,
    /// The answers at which it has a place, and the times at which it goes to another shard.
    places: Vec<&'h Event>,
    granted: Option<(u64, &'h Event)>,
    preferred: bool,
    gave_up_ns: Option<u64>,
}

impl<'h> Tickets<'h> {
    /// The tickets of `history`.
    pub fn of(history: &'h History) -> Self {
        let mut recorded: BTreeMap<(Line<'_>, &str), Recorded<'_>> = BTreeMap::new();
        let mut leases_ms: HashMap<&str, u64> = HashMap::new();
        // Of each process: a record for a fixed hold ends with it, and so does a turn.
        let mut holds_ms: HashMap<(&str, u32), u64> = HashMap::new();
        for event in &history.events {
            let Some(key) = event.deed.key.as_deref() else {
                continue;
            };
            note_shortest(&mut leases_ms, key, event.deed.lease_ms);
            note_shortest(&mut holds_ms, (key, event.process), event.deed.hold_ms);
            let replica = event.deed.replica.as_ref();
            if let Some((rank, nonce)) = replica {
                let line = (key, Some(*rank));
                recorded.entry((line, nonce)).or_default().note(event);
            }
            // The lock's first request is one to a replica.
            if let Some(nonce) = event.deed.nonce.as_deref()
                && (replica.is_none() || event.deed.kind == Kind::Ask)
            {
                recorded
                    .entry(((key, None), nonce))
                    .or_default()
                    .note(event);
            }
        }
        let moves = Moves::of(history);
        let forced = times_of(history, Fault::ForceRelease);
        let mut of_key: BTreeMap<Line<'_>, Vec<Ticket<'_>>> = BTreeMap::new();
        for (((key, rank), nonce), recorded) in recorded {
            let Some(began) = recorded.first else {
                continue;
            };
            let lease_ms = leases_ms.get(key).copied().unwrap_or(u64::MAX);
            let hold_ms = holds_ms.get(&(key, began.1.process));
            let record_ms = hold_ms.map_or(lease_ms, |hold_ms| lease_ms.min(*hold_ms));
            let keep_ms = record_ms.min(TICKET_KEEP_MS).min(CLAIM_MAX_MS);
            of_key.entry((key, rank)).or_default().push(Ticket {
                key,
                rank,
                nonce,
                preferred: recorded.preferred,
                began,
                granted: recorded.granted,
                stays: recorded.stays(keep_ms, &moves, forced.get(key).map_or(&[], Vec::as_slice)),
            });
        }
        let all = of_key.values_mut();
        all.for_each(|of_key| of_key.sort_by_key(|ticket| ticket.began.0));
        Self { of_key }
    }

    /// All tickets.
    pub fn all(&self) -> impl Iterator<Item = &Ticket<'h>> {
        self.of_key.values().flatten()
    }

    /// How many came while `ticket` certainly had its place.
    pub fn behind(&self, ticket: &Ticket<'_>) -> usize {
        let of_key = &self.of_key[&(ticket.key, ticket.rank)];
        let before = |t_ns| of_key.partition_point(|other| other.began.0 < t_ns);
        let mut counted_ns = 0;
        let during = |stay: &Stay<'_>| {
            let from_ns = counted_ns.max(stay.known.t_ns + 1);
            counted_ns = from_ns.max(stay.until_ns);
            before(counted_ns) - before(from_ns)
        };
        ticket.stays().map(during).sum()
    }
}

impl<'h> Ticket<'h> {
    /// The times when it was certainly in the queue, in order.
    pub fn stays(&self) -> impl Iterator<Item = &Stay<'h>> {
        self.stays.iter()
    }
}

impl<'h> Recorded<'h> {
    fn note(&mut self, event: &'h Event) {
        let deed = &event.deed;
        match (deed.kind, deed.phase) {
            (Kind::Ask, _) => {
                self.preferred |= deed.preferred;
                self.left(event.t_ns, event);
            }
            (Kind::Queue | Kind::Moving, _) => self.places.push(event),
            (Kind::GiveUp, _) => self.gave_up_ns = Some(event.t_ns),
            // A record that was written where it was missing has no request of its own: it is no ticket.
            (Kind::Replica, _) => drop(self.granted.get_or_insert((event.t_ns, event))),
            (Kind::Grant, Phase::Ok) if !deed.handed => {
                self.left(deed.sent_ns.unwrap_or(event.t_ns), event);
                self.granted.get_or_insert((event.t_ns, event));
            }
            _ => {}
        }
    }

    fn left(&mut self, sent_ns: u64, event: &'h Event) {
        if self.first.is_none_or(|(first, _)| sent_ns < first) {
            self.first = Some((sent_ns, event));
        }
    }

    fn stays(&self, keep_ms: u64, moves: &Moves, forced: &[Range<u64>]) -> Vec<Stay<'h>> {
        let granted = self.granted.map(|(t_ns, _)| t_ns);
        let over = [granted, self.gave_up_ns].into_iter().flatten().min();
        let grant = self.granted.map(|(_, grant)| grant);
        let mut answers = self.places.iter().copied().chain(grant).peekable();
        let mut stays: Vec<Stay<'h>> = Vec::new();
        while let Some(known) = answers.next() {
            if known.deed.kind != Kind::Queue {
                continue;
            }
            let found_ns = known.deed.sent_ns.unwrap_or(known.t_ns);
            let silent = believed_until(found_ns, keep_ms);
            let until_ns = over.map_or(silent, |over| over.min(silent));
            let next = answers.peek().filter(|next| next.t_ns <= until_ns);
            let until_ns = next.map_or(until_ns, |next| next.t_ns);
            let forced = forced.iter().filter(|time| time.end > known.t_ns);
            let until_ns = forced.map(|time| time.start).fold(until_ns, u64::min);
            let stay = Stay {
                known,
                until_ns,
                found_ns,
            };
            if known.t_ns >= until_ns || !moves.keeps(&stay, next.copied()) {
                continue;
            }
            match stays.last_mut() {
                Some(last) if known.t_ns <= last.until_ns => {
                    (last.until_ns, last.found_ns) = (until_ns, found_ns);
                }
                _ => stays.push(stay),
            }
        }
        stays
    }
}

fn note_shortest<K: Eq + Hash>(shortest: &mut HashMap<K, u64>, of: K, length_ms: Option<u64>) {
    if let Some(length_ms) = length_ms {
        let shortest_ms = shortest.entry(of).or_insert(length_ms);
        *shortest_ms = length_ms.min(*shortest_ms);
    }
}

/// The times at which slots may have moved.
#[derive(Debug)]
struct Moves {
    /// When the first resize was begun.
    since_ns: u64,
    /// The times during which a resize was being turned back.
    turned_back: Vec<Range<u64>>,
}

impl Moves {
    fn of(history: &History) -> Self {
        let mut resizes = history.events.iter();
        let begun = resizes.find(|event| matches!(event.deed.kind, Kind::Begin | Kind::Resize));
        Self {
            since_ns: begun.map_or(u64::MAX, |event| event.t_ns),
            turned_back: times_of(history, Fault::TurnBack)
                .into_values()
                .flatten()
                .collect(),
        }
    }

    /// Whether no move can have ended `stay`, by the `next` that is known of it, if that is within it.
    fn keeps(&self, stay: &Stay<'_>, next: Option<&Event>) -> bool {
        let overlaps =
            |time: &Range<u64>| time.start < stay.until_ns && stay.known.t_ns <= time.end;
        match next {
            Some(next) => next.deed.kind != Kind::Moving && !self.turned_back.iter().any(overlaps),
            None => stay.until_ns < self.since_ns,
        }
    }
}

/// The times of that fault, by the key that it concerns.
fn times_of(history: &History, fault: Fault) -> HashMap<&str, Vec<Range<u64>>> {
    let mut times: HashMap<&str, Vec<Range<u64>>> = HashMap::new();
    let events = history.events.iter();
    for event in events.filter(|event| event.deed.fault == Some(fault)) {
        let of_key = times.entry(event.deed.key.as_deref().unwrap_or_default());
        let of_key = of_key.or_default();
        match (event.deed.phase, of_key.last_mut()) {
            (Phase::Invoke, _) => of_key.push(event.t_ns..u64::MAX),
            (_, Some(last)) => last.end = event.t_ns,
            (_, None) => {}
        }
    }
    times
}
