//! The grants of a history, in the order in which their holders were told.

use std::collections::{BTreeMap, HashMap};

use ringfence_coordinator::shard::LockMode;

use super::{Grant, nonces::Nonces};
use crate::{
    history::{Answer, Event, Fault, History, Kind, Phase, Share, Token},
    shares,
};

/// The grants of each key, in the order in which their holders were told.
#[derive(Debug)]
pub struct Grants<'h> {
    /// By key.
    pub of_key: BTreeMap<&'h str, Vec<Grant<'h>>>,
    /// Where those of each nonce are, in the same order.
    by_nonce: HashMap<&'h str, (&'h str, Vec<usize>)>,
}

impl<'h> Grants<'h> {
    /// Those of `history`.
    pub fn of(history: &'h History) -> Self {
        let mut grants = Self {
            of_key: BTreeMap::new(),
            by_nonce: HashMap::new(),
        };
        let nonces = Nonces::of(history);
        let (mut asked, mut ends) = (HashMap::new(), HashMap::new());
        for event in &history.events {
            let id = (event.process, event.deed.op);
            match (event.deed.kind, event.deed.phase) {
                (Kind::Acquire, Phase::Invoke) => drop(asked.insert(id, event.t_ns)),
                (Kind::Acquire, Phase::Ok) => grants.add(event, asked.get(&id).copied(), &nonces),
                (Kind::Release, Phase::Ok | Phase::Info) => drop(ends.insert(id, event)),
                (Kind::Nemesis, Phase::Ok) => drop(ends.insert(id, event)),
                _ => {}
            }
        }
        for event in &history.events {
            grants.note(event, &ends);
        }
        grants
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Grant<'h>> {
        self.of_key.values().flatten()
    }

    /// How many of them are so.
    pub(super) fn count(&self, are_so: impl Fn(&Grant<'h>) -> bool) -> usize {
        self.all().filter(|grant| are_so(grant)).count()
    }

    /// Those of the acquisition `nonce`: more than one if its process handed the lock on.
    pub fn of_nonce(&self, nonce: &str) -> impl Iterator<Item = &Grant<'h>> {
        let found = self.by_nonce.get(nonce);
        found.into_iter().flat_map(|(key, places)| {
            let of_key = &self.of_key[key];
            places.iter().map(|place| &of_key[*place])
        })
    }

    fn add(&mut self, event: &'h Event, asked: Option<u64>, nonces: &Nonces<'h>) {
        let Some(grant) = Grant::new(event, asked.unwrap_or(event.t_ns), nonces) else {
            return;
        };
        let of_key = self.of_key.entry(grant.key).or_default();
        let of_nonce = self.by_nonce.entry(grant.nonce);
        let (_, places) = of_nonce.or_insert((grant.key, Vec::new()));
        places.push(of_key.len());
        of_key.push(grant);
    }

    /// Notes what `event` is to the grants there are.
    fn note(&mut self, event: &'h Event, ends: &HashMap<(u32, u64), &'h Event>) {
        let deed = &event.deed;
        if deed.fault.is_some_and(Fault::ends_a_process) && deed.phase == Phase::Ok {
            let of_killed = self.of_key.values_mut().flatten();
            let of_killed = of_killed.filter(|grant| Some(grant.acquired.process) == deed.victim);
            return of_killed.for_each(|grant| grant.killed_ns = Some(event.t_ns));
        }
        match (deed.kind, deed.phase) {
            (Kind::Nemesis, Phase::Invoke) if deed.fault == Some(Fault::ForceRelease) => {
                let ended = ends.get(&(event.process, deed.op));
                self.forced(event, ended.map_or(u64::MAX, |ended| ended.t_ns));
            }
            (Kind::Renew, _) => self.renewed(event),
            (Kind::Downgrade, _) => {
                if let Some(grant) = self.open(event, deed.token) {
                    grant.downgraded_ns = Some(event.t_ns);
                }
            }
            (Kind::Release, Phase::Invoke) => {
                let ended = ends.get(&(event.process, deed.op)).copied();
                if let Some(grant) = self.open(event, deed.token) {
                    grant.release = Some((event, ended));
                    self.note_last(event);
                }
            }
            _ => {}
        }
    }

    /// Notes that the key was taken from its holders between `event` and `until_ns`.
    fn forced(&mut self, event: &Event, until_ns: u64) {
        let key = event.deed.key.as_deref().unwrap_or_default();
        let of_key = self.of_key.get_mut(key).into_iter().flatten();
        for grant in of_key.filter(|grant| grant.sent_ns() <= until_ns) {
            grant.forced_ns = grant.forced_ns.or(Some(event.t_ns));
        }
    }

    /// Notes a renewal of each grant that it counts for: of readers that have a nonce together, all that have not given
    /// it back, or, if there is none, the last one that did; otherwise the last one made.
    fn renewed(&mut self, renewal: &'h Event) {
        let key = renewal.deed.key.as_deref().unwrap_or_default();
        let nonce = renewal.deed.nonce.as_deref().unwrap_or_default();
        let mut counted = false;
        if shares::has(key) {
            for grant in self.of_nonce_mut(nonce) {
                if grant.judged_ns() <= renewal.t_ns && grant.release.is_none() {
                    grant.renewals.push(renewal);
                    counted = true;
                }
            }
        }
        let counts = match (counted, shares::has(key)) {
            (true, _) => None,
            (false, true) => self.last_released(nonce, renewal.t_ns),
            (false, false) => self.current(renewal),
        };
        if let Some(grant) = counts {
            grant.renewals.push(renewal);
        }
    }

    /// Of readers that have a nonce together, the one that gives it back last ends its record.
    fn note_last(&mut self, release: &Event) {
        let key = release.deed.key.as_deref().filter(|key| shares::has(key));
        let Some(nonce) = release.deed.nonce.as_deref().filter(|_| key.is_some()) else {
            return;
        };
        let open = self.of_nonce(nonce).any(|grant| grant.release.is_none());
        let writer = Share::from(LockMode::Write);
        for grant in self.of_nonce_mut(nonce) {
            // Writers hand their lock on, also to one that left and was told nothing.
            let reads = grant.acquired.deed.share != writer;
            if reads && grant.token == release.deed.token.unwrap_or(grant.token) {
                grant.handed_on = open;
            }
        }
    }

    fn of_nonce_mut(&mut self, nonce: &str) -> impl Iterator<Item = &mut Grant<'h>> {
        let found = self.by_nonce.get(nonce);
        let of_key = found.and_then(|(key, _)| self.of_key.get_mut(key));
        let of_key = of_key.into_iter().flatten();
        of_key.filter(move |grant| grant.nonce == nonce)
    }

    /// The grant of `nonce`, made by then, that was given back last.
    fn last_released(&mut self, nonce: &str, t_ns: u64) -> Option<&mut Grant<'h>> {
        let made = self
            .of_nonce_mut(nonce)
            .filter(|grant| grant.judged_ns() <= t_ns);
        made.max_by_key(|grant| grant.release.map(|(begun, _)| begun.t_ns))
    }

    /// The grant that a renewal counts for: the last one made of its nonce by then.
    fn current(&mut self, renewal: &Event) -> Option<&mut Grant<'h>> {
        let (key, places) = self.by_nonce.get(renewal.deed.nonce.as_deref()?)?;
        let of_key = self.of_key.get_mut(key)?;
        let made = |place: &&usize| of_key[**place].judged_ns() <= renewal.t_ns;
        let place = *places.iter().rev().find(made).or(places.first())?;
        of_key.get_mut(place)
    }

    /// The grant with `token`, not given back yet, that `event` is of.
    fn open(&mut self, event: &Event, token: Option<Token>) -> Option<&mut Grant<'h>> {
        let (key, places) = self.by_nonce.get(event.deed.nonce.as_deref()?)?;
        let of_key = self.of_key.get_mut(key)?;
        let open = |place: &&usize| {
            let grant = &of_key[**place];
            Some(grant.token) == token && grant.release.is_none()
        };
        let place = *places.iter().find(open)?;
        of_key.get_mut(place)
    }
}

/// Whether `event` is an answer `answer` of `kind`.
pub(super) fn is_answer(event: &Event, kind: Kind, answer: Answer) -> bool {
    event.deed.kind == kind && event.deed.answer == Some(answer)
}
