//! A batch, split into script calls.

use hashbrown::HashMap;

use crate::{
    ids::MapVersion,
    name::LockKey,
    shard::{LockMode, Op, Request},
};

/// Which script runs an operation. An acquire never shares a call with the others: they must
/// work on a full server, and it must not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Verb {
    Release,
    Remove,
    Renew,
    Confirm,
    Adopt,
    Acquire,
    Share,
}

impl Verb {
    /// The order of the calls of one batch, unless the order of its operations demands another.
    const ALL: [Self; 7] = [
        Self::Release,
        Self::Remove,
        Self::Renew,
        Self::Confirm,
        Self::Adopt,
        Self::Acquire,
        Self::Share,
    ];

    fn of(op: &Op) -> Self {
        match op {
            Op::Acquire {
                mode: LockMode::Exclusive,
                ..
            } => Self::Acquire,
            Op::Acquire { .. } => Self::Share,
            Op::Renew { .. } => Self::Renew,
            Op::Confirm { .. } => Self::Confirm,
            Op::Release { .. } => Self::Release,
            Op::Adopt { .. } => Self::Adopt,
            Op::Remove { .. } => Self::Remove,
        }
    }
}

/// Operations of one script call, by their place in the batch.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) places: Vec<usize>,
}

impl Call {
    /// Its operations, each with its offset: the place of its first token among those that the call
    /// reserves, from 1.
    pub(super) fn ops<'a>(&'a self, batch: &'a [Request]) -> impl Iterator<Item = (&'a Op, u64)> {
        let mut next = 1;
        self.places.iter().map(move |&place| {
            let op = &batch[place].op;
            let offset = next;
            next += tokens(op);
            (op, offset)
        })
    }

    /// The map version of the operations that have one.
    pub(super) fn map(&self, batch: &[Request]) -> MapVersion {
        batch[self.places[0]].map
    }

    /// When a namespace was last declared, by the senders' view.
    pub(super) fn declared(&self, batch: &[Request]) -> MapVersion {
        batch[self.places[0]].declared
    }

    /// How many operations have it: the first ones. The script checks the slots of the others.
    pub(super) fn by_map(&self, batch: &[Request]) -> usize {
        by_map(self.places.iter().map(|&place| batch[place].map))
    }

    /// How many tokens the call reserves, granted or not.
    pub(super) fn tokens(&self, batch: &[Request]) -> u64 {
        self.places
            .iter()
            .map(|&place| tokens(&batch[place].op))
            .sum()
    }
}

/// How many of `maps`, from the first, are versions.
pub(super) fn by_map(maps: impl Iterator<Item = MapVersion>) -> usize {
    maps.take_while(|&map| map != MapVersion::UNKNOWN).count()
}

fn tokens(op: &Op) -> u64 {
    match op {
        Op::Acquire { tokens, .. } => u64::from(*tokens),
        _ => 0,
    }
}

/// Splits `batch` into script calls. Consecutive operations of one verb go together if they have the same map version,
/// and behind them those that have none; and if their senders know the same declarations. If an operation would then overtake another on the same key, a new round of
/// calls begins.
pub(super) fn plan(batch: &[Request]) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut from = 0;
    for run in batch.chunk_by(Request::takes_along) {
        calls.append(&mut plan_run(run, from));
        from += run.len();
    }
    calls
}

/// Splits a run of such operations; its first request has the place `from`.
fn plan_run(run: &[Request], from: usize) -> Vec<Call> {
    let first = Verb::of(&run[0].op);
    if run.iter().all(|request| Verb::of(&request.op) == first) {
        return vec![Call {
            verb: first,
            places: (from..from + run.len()).collect(),
        }];
    }
    let mut calls = Vec::new();
    let mut round = Round {
        last: HashMap::with_capacity(run.len()),
        ..Round::default()
    };
    for (place, request) in (from..).zip(run) {
        let verb = Verb::of(&request.op);
        if !round.add(verb, place, &request.key) {
            calls.append(&mut round.finish());
            round.add(verb, place, &request.key);
        }
    }
    calls.append(&mut round.finish());
    calls
}

/// Calls that are being filled, one per verb.
#[derive(Default)]
struct Round<'a> {
    places: [Vec<usize>; Verb::ALL.len()],
    /// The last of them with an operation on a key.
    last: HashMap<&'a LockKey, Verb>,
}

impl<'a> Round<'a> {
    /// Adds an operation on `key`, unless it would run before one on it that was added earlier.
    fn add(&mut self, verb: Verb, place: usize, key: &'a LockKey) -> bool {
        let last = self.last.entry(key).or_insert(verb);
        let behind = *last <= verb;
        if behind {
            *last = verb;
            self.places[verb as usize].push(place);
        }
        behind
    }

    fn finish(&mut self) -> Vec<Call> {
        self.last.clear();
        let places = std::mem::take(&mut self.places);
        let calls = Verb::ALL
            .into_iter()
            .zip(places)
            .map(|(verb, places)| Call { verb, places });
        calls.filter(|call| !call.places.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringfence_ring::SlotCount;

    use super::*;
    use crate::{
        ids::{ClientId, MapVersion, Nonce},
        name::{Label, Namespace},
    };

    fn request(key: &str, acquire: bool) -> Request {
        let nonce = Nonce {
            client: ClientId(1),
            sequence: 1,
        };
        let op = if acquire {
            Op::Acquire {
                nonce,
                label: Label::default(),
                lease: Duration::from_secs(1),
                mode: LockMode::Exclusive,
                preferred: false,
                tokens: 1,
                ticket: None,
                proof: None,
            }
        } else {
            Op::Release { nonce }
        };
        let key =
            LockKey::new(&Namespace::default(), key.as_bytes(), SlotCount::default()).unwrap();
        Request {
            key,
            map: MapVersion::UNKNOWN,
            declared: MapVersion::UNKNOWN,
            op,
        }
    }

    fn planned(batch: &[Request]) -> Vec<(Verb, Vec<usize>)> {
        plan(batch)
            .into_iter()
            .map(|call| (call.verb, call.places))
            .collect()
    }

    #[test]
    fn operations_of_one_verb_travel_together() {
        let batch = [
            request("a", true),
            request("b", false),
            request("c", true),
            request("d", false),
        ];
        let expected = vec![(Verb::Release, vec![1, 3]), (Verb::Acquire, vec![0, 2])];
        assert_eq!(planned(&batch), expected);
    }

    /// Per call: the map version, how many operations go by it, and which operations it has.
    fn planned_by_map(maps: &[u64]) -> Vec<(MapVersion, usize, Vec<usize>)> {
        let mut batch: Vec<_> = maps.iter().map(|_| request("a", true)).collect();
        for (request, map) in batch.iter_mut().zip(maps) {
            request.map = MapVersion(*map);
        }
        let calls = plan(&batch).into_iter();
        calls
            .map(|call| (call.map(&batch), call.by_map(&batch), call.places))
            .collect()
    }

    #[test]
    fn requests_of_another_map_go_in_another_call() {
        let expected = [
            (MapVersion::UNKNOWN, 0, vec![0, 1]),
            (MapVersion(7), 1, vec![2]),
            (MapVersion(8), 1, vec![3]),
        ];
        assert_eq!(planned_by_map(&[0, 0, 7, 8]), expected);
    }

    #[test]
    fn requests_without_a_map_follow_those_with_one() {
        let expected = [
            (MapVersion(7), 2, vec![0, 1, 2, 3]),
            (MapVersion(7), 1, vec![4]),
        ];
        assert_eq!(planned_by_map(&[7, 7, 0, 0, 7]), expected);
    }

    #[test]
    fn no_operation_overtakes_another_on_its_key() {
        let batch = [request("a", true), request("a", false), request("a", true)];
        let expected = vec![
            (Verb::Acquire, vec![0]),
            (Verb::Release, vec![1]),
            (Verb::Acquire, vec![2]),
        ];
        assert_eq!(planned(&batch), expected);
        let batch = [false, true, false].map(|acquire| request("a", acquire));
        let expected = vec![
            (Verb::Release, vec![0]),
            (Verb::Acquire, vec![1]),
            (Verb::Release, vec![2]),
        ];
        assert_eq!(planned(&batch), expected);
    }
}
