//! The grants of a history, and when they were believed in.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use crate::history::{Answer, Event, Fault, History, Kind, Phase, Token};

/// How much the rates of two clocks may differ, in parts per thousand.
const RHO_PERMILLE: u64 = 10;
/// Taken off every deadline beside that.
const MARGIN_NS: u64 = 20_000_000;

/// One grant, and all that became of it.
#[derive(Debug)]
pub struct Grant<'h> {
    /// The answer that told its holder.
    pub acquired: &'h Event,
    /// When asking for it began.
    pub asked_ns: u64,
    /// The lock.
    pub key: &'h str,
    /// Which acquisition it is.
    pub nonce: &'h str,
    /// What the lock was granted with.
    pub token: Token,
    /// Answers to its renewals, in the order of time.
    pub renewals: Vec<&'h Event>,
    /// When giving it back began, and how that ended.
    pub release: Option<(&'h Event, Option<&'h Event>)>,
    /// When its process was killed.
    pub killed_ns: Option<u64>,
}

/// When belief ends that rests on a request sent at `sent_ns`.
fn believed_until(sent_ns: u64, lease_ms: u64) -> u64 {
    let lease_ns = lease_ms * 1_000_000;
    sent_ns + (lease_ns - lease_ns / 1000 * RHO_PERMILLE).saturating_sub(MARGIN_NS)
}

impl<'h> Grant<'h> {
    /// When its holder was told.
    pub fn told_ns(&self) -> u64 {
        self.acquired.t_ns
    }

    /// When the request that was granted had left.
    pub fn sent_ns(&self) -> u64 {
        self.acquired.deed.sent_ns.unwrap_or(self.asked_ns)
    }

    /// Each answer that says until when to believe, with the deadline that follows from it.
    pub fn deadlines(&self) -> impl Iterator<Item = (&'h Event, u64)> {
        let lease_ms = self.acquired.deed.lease_ms.unwrap_or(0);
        let mut deadline = believed_until(self.sent_ns(), lease_ms);
        let granted = (self.acquired, deadline);
        let renewed = self.renewals.iter().filter_map(move |event| {
            let sent = event
                .deed
                .sent_ns
                .filter(|_| event.deed.phase == Phase::Ok)?;
            if event.t_ns < deadline {
                deadline = deadline.max(believed_until(sent, lease_ms));
            }
            Some((*event, deadline))
        });
        std::iter::once(granted).chain(renewed)
    }

    /// Its deadline in the end.
    pub fn deadline_ns(&self) -> u64 {
        self.deadlines().last().map_or(0, |(_, deadline)| deadline)
    }

    /// When its holder certainly believed in it. May be empty.
    pub fn certain(&self) -> Range<u64> {
        let released = self.release.map(|(begun, _)| begun.t_ns);
        let ends = [released, self.killed_ns].into_iter().flatten();
        self.told_ns()..ends.fold(self.deadline_ns(), u64::min)
    }

    /// The shard's answer to its release, if one came while it was believed in.
    pub fn released(&self) -> Option<&'h Event> {
        let (_, ended) = self.release?;
        ended.filter(|event| event.deed.phase == Phase::Ok && event.t_ns < self.deadline_ns())
    }

    /// When a request of it last was answered with a record in place.
    pub fn last_sent_ns(&self) -> u64 {
        let renewed = self
            .renewals
            .iter()
            .filter(|event| event.deed.phase == Phase::Ok);
        let sent = renewed.filter_map(|event| event.deed.sent_ns).max();
        sent.map_or(self.sent_ns(), |sent| sent.max(self.sent_ns()))
    }
}

/// The grants of each key, in the order in which their holders were told.
#[derive(Debug)]
pub struct Grants<'h> {
    /// By key.
    pub of_key: BTreeMap<&'h str, Vec<Grant<'h>>>,
    by_nonce: HashMap<&'h str, (&'h str, usize)>,
}

impl<'h> Grants<'h> {
    /// Those of `history`.
    pub fn of(history: &'h History) -> Self {
        let mut grants = Self {
            of_key: BTreeMap::new(),
            by_nonce: HashMap::new(),
        };
        let (mut asked, mut ends) = (HashMap::new(), HashMap::new());
        for event in &history.events {
            let id = (event.process, event.deed.op);
            match (event.deed.kind, event.deed.phase) {
                (Kind::Acquire, Phase::Invoke) => drop(asked.insert(id, event.t_ns)),
                (Kind::Acquire, Phase::Ok) => grants.add(event, asked.get(&id).copied()),
                (Kind::Release, Phase::Ok | Phase::Info) => drop(ends.insert(id, event)),
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

    /// That of the acquisition `nonce`.
    pub fn of_nonce(&self, nonce: &str) -> Option<&Grant<'h>> {
        let (key, index) = self.by_nonce.get(nonce)?;
        self.of_key.get(key)?.get(*index)
    }

    fn add(&mut self, event: &'h Event, asked: Option<u64>) {
        let deed = &event.deed;
        let (Some(key), Some(nonce), Some(token)) = (&deed.key, &deed.nonce, deed.token) else {
            return;
        };
        let of_key = self.of_key.entry(key).or_default();
        self.by_nonce.insert(nonce, (key, of_key.len()));
        of_key.push(Grant {
            acquired: event,
            asked_ns: asked.unwrap_or(event.t_ns),
            key,
            nonce,
            token,
            renewals: Vec::new(),
            release: None,
            killed_ns: None,
        });
    }

    /// Notes what `event` is to the grants there are.
    fn note(&mut self, event: &'h Event, ends: &HashMap<(u32, u64), &'h Event>) {
        let deed = &event.deed;
        if deed.fault == Some(Fault::KillClient) && deed.phase == Phase::Ok {
            let of_killed = self.of_key.values_mut().flatten();
            let of_killed = of_killed.filter(|grant| Some(grant.acquired.process) == deed.victim);
            return of_killed.for_each(|grant| grant.killed_ns = Some(event.t_ns));
        }
        let place = deed
            .nonce
            .as_deref()
            .and_then(|nonce| self.by_nonce.get(nonce));
        let grant = place.and_then(|(key, index)| self.of_key.get_mut(key)?.get_mut(*index));
        let Some(grant) = grant else { return };
        match (deed.kind, deed.phase) {
            (Kind::Renew, _) => grant.renewals.push(event),
            (Kind::Release, Phase::Invoke) => {
                let ended = ends.get(&(event.process, deed.op)).copied();
                grant.release = Some((event, ended));
            }
            _ => {}
        }
    }
}

/// Whether `event` is an answer `answer` of `kind`.
pub(super) fn is_answer(event: &Event, kind: Kind, answer: Answer) -> bool {
    event.deed.kind == kind && event.deed.answer == Some(answer)
}
