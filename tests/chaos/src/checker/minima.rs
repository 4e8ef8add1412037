//! Enough happened: a run without contention or faults proves nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ringfence_coordinator::shard::LockMode;

use super::{
    Grant, Grants, Rule, Tickets, Violation,
    grants::is_answer,
    notice::is_deposed,
    stop,
    windows::{self, Window},
};
use crate::{
    counters::Answer as Looked,
    election,
    history::{Answer, Deed, Fault, History, Kind, Phase, Resized, Share},
    ledger, sets,
};

/// The counts of required events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Locks granted.
    pub grants: usize,
    /// Of them, granted during a fault of servers, processes or connections.
    pub grants_in_faults: usize,
    /// Locks with several replicas granted.
    pub grants_by_majorities: usize,
    /// Sets of locks granted.
    pub sets: usize,
    /// Sets of locks that were not.
    pub sets_refused: usize,
    /// Locks granted alone, of keys that are also taken in sets.
    pub beside_sets: usize,
    /// Leaders.
    pub leaders: usize,
    /// Of these, that did not resign before another led.
    pub deposed: usize,
    /// Looks that found a latch open.
    pub opened: usize,
    /// Permits of semaphores granted.
    pub permits: usize,
    /// Readers granted.
    pub readers: usize,
    /// Of these, that came to others of their process.
    pub readers_joined: usize,
    /// Writers granted.
    pub writers: usize,
    /// Of these, that had the lock from others of their process.
    pub writers_handed: usize,
    /// Of these, granted while others of the same key had shares.
    pub shared: usize,
    /// Writers that became readers.
    pub downgraded: usize,
    /// Fixed holds.
    pub fixed: usize,
    /// Writes the resource accepted.
    pub writes: usize,
    /// Writes it refused.
    pub rejected: usize,
    /// Leases renewed.
    pub renewed: usize,
    /// Records put back after a shard lost its memory.
    pub reclaimed: usize,
    /// Attempts that met another holder.
    pub held: usize,
    /// Tickets that had a place in a queue.
    pub queued: usize,
    /// Pairs of tickets of which one came while the other certainly had its place.
    pub behind: usize,
    /// Locks granted to a ticket by the shard.
    pub turns: usize,
    /// Locks handed on within a process.
    pub handed: usize,
    /// Attempts that met a recovery period.
    pub grace: usize,
    /// Operations of unknown outcome without any answer.
    pub unknown: usize,
    /// Guards that reported their loss to their holders.
    pub lost: usize,
    /// Locks that were held when something happened to a coordinator, and a lease later.
    pub kept: usize,
    /// Locks of clients that were told to end, that others had before the leases ended.
    pub given_back: usize,
    /// Resizes that ended.
    pub resizes: usize,
    /// Slots that they moved.
    pub slots_moved: usize,
    /// Locks that moved with their slots, as movers that ended counted them.
    pub locks_carried: usize,
    /// The faults injected by the nemesis.
    pub faults: BTreeMap<Fault, usize>,
    /// Of these, the faults during resizes: by phase, or by the side of the shard.
    pub amid_resizes: BTreeMap<(Fault, String), usize>,
}

/// The minimum count of each.
pub type Minima = Counts;

impl Counts {
    /// The counts of `history`.
    pub fn of(history: &History) -> Self {
        let (grants, tickets) = (Grants::of(history), Tickets::of(history));
        let events = || history.events.iter();
        let answers = |kind, answer| {
            events()
                .filter(|event| is_answer(event, kind, answer))
                .count()
        };
        let granted = |how: fn(&Deed) -> bool| {
            events()
                .filter(|event| event.deed.kind == Kind::Grant && how(&event.deed))
                .count()
        };
        let windows = windows::of(history);
        let in_faults = |t_ns| windows.iter().any(|window| window.time.contains(&t_ns));
        let (faults, amid_resizes) = faults(history);
        let resizes = resizes(history);
        let [reader, writer] = [LockMode::Read, LockMode::Write].map(Share::from);
        let of_share = |is_it: &dyn Fn(Share) -> bool| {
            let shares = grants.all().map(|grant| grant.acquired.deed.share);
            shares.filter(|share| is_it(*share)).count()
        };
        Self {
            grants: grants.all().count(),
            grants_in_faults: grants
                .all()
                .filter(|grant| in_faults(grant.told_ns()))
                .count(),
            grants_by_majorities: grants.all().filter(|grant| ledger::has(grant.key)).count(),
            sets: sets_of(history, |phase| phase == Phase::Ok),
            sets_refused: sets_of(history, |phase| phase == Phase::Fail),
            beside_sets: grants.all().filter(|grant| is_beside_sets(grant)).count(),
            leaders: leaders(&grants).map(<[_]>::len).sum(),
            deposed: deposed(&grants),
            opened: opened(history),
            permits: of_share(&|share| ![Share::WHOLE, reader, writer].contains(&share)),
            readers: of_share(&|share| share == reader),
            readers_joined: handed(&grants, reader),
            writers: of_share(&|share| share == writer),
            writers_handed: handed(&grants, writer),
            shared: grants.of_key.values().map(|of_key| shared(of_key)).sum(),
            downgraded: grants.count(|grant| grant.downgraded_ns.is_some()),
            fixed: grants.count(|grant| grant.ends_ns().is_some()),
            writes: answers(Kind::Apply, Answer::Accepted),
            rejected: answers(Kind::Apply, Answer::Rejected),
            renewed: answers(Kind::Renew, Answer::Renewed),
            reclaimed: answers(Kind::Renew, Answer::Reclaimed),
            held: answers(Kind::Acquire, Answer::Held),
            queued: tickets
                .all()
                .filter(|ticket| ticket.stays().next().is_some())
                .count(),
            behind: tickets.all().map(|ticket| tickets.behind(ticket)).sum(),
            turns: granted(|deed| deed.turn && !deed.handed),
            handed: granted(|deed| deed.handed),
            grace: answers(Kind::Acquire, Answer::Grace),
            unknown: events()
                .filter(|event| event.deed.phase == Phase::Info && event.deed.answer.is_none())
                .count(),
            lost: answers(Kind::GuardState, Answer::Lost),
            kept: kept(&grants, &windows),
            given_back: stop::in_time(history, &grants),
            resizes: resizes.len(),
            slots_moved: resizes.iter().map(|resized| resized.slots as usize).sum(),
            locks_carried: resizes.iter().map(|resized| resized.locks as usize).sum(),
            faults,
            amid_resizes,
        }
    }

    /// Each count except those of the faults, by name.
    pub fn named(&self) -> [(&'static str, usize); 34] {
        [
            ("grants", self.grants),
            ("grants during faults", self.grants_in_faults),
            ("grants by majorities", self.grants_by_majorities),
            ("sets granted", self.sets),
            ("sets refused", self.sets_refused),
            ("locks of sets granted alone", self.beside_sets),
            ("leaders", self.leaders),
            ("leaders deposed", self.deposed),
            ("latches found open", self.opened),
            ("permits granted", self.permits),
            ("readers", self.readers),
            ("readers that joined others", self.readers_joined),
            ("writers", self.writers),
            ("writers that others handed it to", self.writers_handed),
            ("grants beside others", self.shared),
            ("writers that became readers", self.downgraded),
            ("fixed holds", self.fixed),
            ("writes accepted", self.writes),
            ("writes refused", self.rejected),
            ("renewals", self.renewed),
            ("records put back", self.reclaimed),
            ("attempts that met a holder", self.held),
            ("tickets in a queue", self.queued),
            ("tickets behind another", self.behind),
            ("turns", self.turns),
            ("hand-offs", self.handed),
            ("attempts that met a grace", self.grace),
            ("unknown outcomes", self.unknown),
            ("guards lost", self.lost),
            ("locks kept while a coordinator failed", self.kept),
            ("locks given back at orderly stops", self.given_back),
            ("resizes", self.resizes),
            ("slots moved", self.slots_moved),
            ("locks carried", self.locks_carried),
        ]
    }
}

/// How many sets of locks were taken, or not.
fn sets_of(history: &History, ended: impl Fn(Phase) -> bool) -> usize {
    let acquired = history
        .events
        .iter()
        .filter(|event| event.deed.kind == Kind::Acquire && ended(event.deed.phase));
    let sets = acquired.filter_map(|event| Some((event.process, event.deed.set?)));
    sets.collect::<BTreeSet<_>>().len()
}

fn is_beside_sets(grant: &Grant<'_>) -> bool {
    sets::has(grant.key) && grant.acquired.deed.set.is_none()
}

fn deposed(grants: &Grants<'_>) -> usize {
    let changes = leaders(grants).flat_map(|leaders| leaders.windows(2));
    changes
        .filter(|pair| is_deposed(&pair[0], &pair[1]))
        .count()
}

fn opened(history: &History) -> usize {
    let answers = history
        .latches
        .iter()
        .filter_map(|look| look.answered.as_ref());
    answers
        .filter(|(_, answer)| *answer == Looked::Left(0))
        .count()
}

/// The leaders of each election, in their order.
fn leaders<'g, 'h>(grants: &'g Grants<'h>) -> impl Iterator<Item = &'g [Grant<'h>]> {
    let elections = grants.of_key.iter().filter(|(key, _)| election::has(key));
    elections.map(|(_, leaders)| leaders.as_slice())
}

/// How many grants lasted from before a fault of a coordinator to a lease after its beginning.
fn kept(grants: &Grants<'_>, windows: &[Window<'_>]) -> usize {
    let faults = || windows.iter().filter(|window| window.is_of_a_coordinator());
    let lasted = |grant: &&Grant<'_>| {
        let lease = Duration::from_millis(grant.acquired.deed.lease_ms.unwrap_or(0));
        let certain = grant.certain();
        faults().any(|fault| {
            let later = fault.time.start + lease.as_nanos() as u64;
            certain.contains(&fault.time.start) && certain.contains(&later)
        })
    };
    grants.all().filter(lasted).count()
}

/// The injected faults, and those during resizes.
fn faults(history: &History) -> (BTreeMap<Fault, usize>, BTreeMap<(Fault, String), usize>) {
    let (mut faults, mut amid_resizes) = (BTreeMap::new(), BTreeMap::new());
    for event in &history.events {
        let fault = event.deed.fault.filter(|_| event.deed.phase == Phase::Ok);
        let Some(fault) = fault.filter(|fault| *fault != Fault::Heal) else {
            continue;
        };
        *faults.entry(fault).or_default() += 1;
        if let Some(phase) = event.deed.phase_of_move.clone() {
            *amid_resizes.entry((fault, phase)).or_default() += 1;
        }
    }
    (faults, amid_resizes)
}

/// How many holders of that `share` have it from others of their process: readers came to them, writers after them.
fn handed(grants: &Grants<'_>, share: Share) -> usize {
    let handed = grants.all().filter(|grant| grant.acquired.deed.handed);
    handed
        .filter(|grant| grant.acquired.deed.share == share)
        .count()
}

/// How many of the grants of a key were told while others were believed in.
fn shared(of_key: &[Grant<'_>]) -> usize {
    let mut until_ns = 0;
    let told = of_key.iter().filter(|grant| {
        let beside = grant.told_ns() < until_ns;
        until_ns = until_ns.max(grant.certain().end);
        beside
    });
    told.count()
}

/// The result of each finished resize, by the mover that saw most of it.
fn resizes(history: &History) -> Vec<Resized> {
    let mut resizes: Vec<Option<Resized>> = Vec::new();
    for event in &history.events {
        if event.deed.kind == Kind::Begin {
            resizes.push(None);
        }
        let (Some(resized), Some(last)) = (event.deed.resized, resizes.last_mut()) else {
            continue;
        };
        let most = last.get_or_insert(resized);
        most.slots = most.slots.max(resized.slots);
        most.locks = most.locks.max(resized.locks);
    }
    resizes.into_iter().flatten().collect()
}

pub(super) fn check(counts: &Counts, minima: &Minima) -> Vec<Violation> {
    let named = counts.named().into_iter().zip(minima.named());
    let few = named.map(|((name, count), (_, least))| (name.to_owned(), count, least));
    let faults = minima.faults.iter().map(|(fault, least)| {
        (
            fault.to_string(),
            counts.faults.get(fault).copied().unwrap_or(0),
            *least,
        )
    });
    few.chain(faults)
        .filter(|(_, count, least)| count < least)
        .map(|(name, count, least)| {
            let what = format!("{name}: {count}, and it takes {least} to mean something");
            Violation::new(Rule::Minima, "", what, [])
        })
        .collect()
}
