//! One thing done wrong: a history in which nothing else changed, or none if it has no place for it.

use std::collections::HashSet;

use ringfence_chaos::{
    checker::{Grant, Grants},
    history::{Answer, Deed, Event, Fault, History, Kind, Phase, Token},
};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const BELIEVED: u64 = 3445 * MS;

/// Neighbours on one key for which `wanted` holds.
fn neighbours<'a, 'h>(
    grants: &'a Grants<'h>,
    wanted: impl Fn(&Grant<'h>, &Grant<'h>) -> bool,
) -> Option<(&'a Grant<'h>, &'a Grant<'h>)> {
    let of_keys = grants.of_key.values();
    let mut pairs = of_keys.flat_map(|of_key| of_key.windows(2).map(|pair| (&pair[0], &pair[1])));
    pairs.find(|(first, second)| wanted(first, second))
}

fn released<'h>(grant: &Grant<'h>) -> Option<&'h Event> {
    let answer = grant.released()?;
    (answer.deed.answer == Some(Answer::Released)).then_some(answer)
}

/// Ended by its deadline.
pub(crate) fn ran_out(grant: &Grant<'_>) -> bool {
    grant.release.is_none() && grant.killed_ns.is_none()
}

pub(crate) fn has_writes(history: &History, grant: &Grant<'_>) -> bool {
    history
        .events
        .iter()
        .any(|event| is_of(event, grant) && matches!(event.deed.kind, Kind::Write | Kind::Apply))
}

/// `history` with an event like `like` at `t_ns`, changed by `change`.
pub(crate) fn with(
    history: &History,
    like: &Event,
    t_ns: u64,
    change: impl FnOnce(&mut Deed),
) -> History {
    let mut event = Event {
        t_ns,
        ..like.clone()
    };
    event.deed.op = 1_000_000;
    change(&mut event.deed);
    let mut events = history.events.clone();
    events.push(event);
    History::new(events)
}

/// `history` with every event changed by `change`.
pub(crate) fn changed(history: &History, change: impl FnMut(&mut Event)) -> History {
    let mut events = history.events.clone();
    events.iter_mut().for_each(change);
    History::new(events)
}

fn without(history: &History, unwanted: impl Fn(&Event) -> bool) -> History {
    let events = history.events.iter().filter(|event| !unwanted(event));
    History::new(events.cloned().collect())
}

pub(crate) fn is_of(event: &Event, grant: &Grant<'_>) -> bool {
    event.deed.nonce.as_deref() == Some(grant.nonce) && event.deed.token == Some(grant.token)
}

fn renewal(sent_ns: u64, deadline_ns: Option<u64>) -> impl FnOnce(&mut Deed) {
    move |deed| {
        (deed.kind, deed.phase) = (Kind::Renew, Phase::Ok);
        (deed.sent_ns, deed.deadline_ns) = (Some(sent_ns), deadline_ns);
        deed.answer = Some(Answer::Renewed);
    }
}

pub(crate) fn hold_past_the_deadline(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (first, second) = neighbours(&grants, |first, second| {
        ran_out(first) && !second.certain().is_empty()
    })?;
    let mut mutated = history.clone();
    let mut deadline = first.deadline_ns();
    while deadline <= second.told_ns() {
        let sent = deadline - 10 * MS;
        deadline = sent + BELIEVED;
        mutated = with(
            &mutated,
            first.acquired,
            sent + 5 * MS,
            renewal(sent, Some(deadline)),
        );
    }
    Some(mutated)
}

/// `history` with an operator that took the lock of `grant` from its holder just before `t_ns`.
fn forced(history: &History, grant: &Grant<'_>, t_ns: u64) -> History {
    let key = Some(grant.key.to_owned());
    let forced = Deed {
        fault: Some(Fault::ForceRelease),
        key,
        ..Deed::default()
    };
    with_fault(history, grant.acquired, t_ns - 2, &forced)
}

/// `history` with a fault that began at `t_ns`, and ended at once.
fn with_fault(history: &History, like: &Event, t_ns: u64, fault: &Deed) -> History {
    let at = |phase| {
        move |deed: &mut Deed| {
            *deed = Deed {
                op: deed.op,
                kind: Kind::Nemesis,
                phase,
                ..fault.clone()
            };
        }
    };
    let history = with(history, like, t_ns, at(Phase::Invoke));
    with(&history, like, t_ns + 1, at(Phase::Ok))
}

/// Its holder does not know that it was taken by force.
pub(crate) fn hold_past_the_deadline_by_force(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (first, _) = neighbours(&grants, |first, second| {
        ran_out(first) && !second.certain().is_empty()
    })?;
    let mutated = with(
        history,
        first.acquired,
        first.deadline_ns() - 5 * MS,
        renewal(first.deadline_ns() - 10 * MS, None),
    );
    Some(forced(&mutated, first, first.deadline_ns() - MS))
}

/// What was taken by force is put back after somebody else had it.
pub(crate) fn renewed_after_a_later_grant_by_force(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (first, second) = neighbours(&grants, |first, second| {
        let mut faults = history.events.iter();
        let is_hurt = faults.any(|event| {
            let time = first.told_ns()..=second.told_ns() + MS;
            event.deed.fault.is_some_and(Fault::ends_a_life) && time.contains(&event.t_ns)
        });
        ran_out(first) && !is_hurt
    })?;
    let sent = second.told_ns() + 1;
    let mutated = with(history, first.acquired, sent + 1, renewal(sent, None));
    Some(forced(&mutated, first, first.deadline_ns() - MS))
}

pub(crate) fn renewed_after_the_end_of_a_fixed_hold(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let mut renewed = grants.all().filter(|grant| !grant.acquired.deed.handed);
    let grant = renewed.find(|grant| {
        let mut renewals = grant.renewals.iter();
        renewals.any(|event| event.deed.sent_ns > Some(grant.judged_ns() + MS))
    })?;
    Some(changed(history, |event| {
        if event == grant.acquired {
            event.deed.hold_ms = Some(1);
        }
    }))
}

fn later_by_one_ms(history: &History, kind: Kind) -> Option<History> {
    let mut done = false;
    let mutated = changed(history, |event| {
        if let (false, true, Some(deadline)) =
            (done, event.deed.kind == kind, &mut event.deed.deadline_ns)
        {
            *deadline += MS;
            done = true;
        }
    });
    done.then_some(mutated)
}

pub(crate) fn later_deadline_logged(history: &History) -> Option<History> {
    later_by_one_ms(history, Kind::Acquire)
}

pub(crate) fn later_deadline_logged_by_a_renewal(history: &History) -> Option<History> {
    later_by_one_ms(history, Kind::Renew)
}

pub(crate) fn deadline_from_the_receipt(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let grant = grants.all().find(|grant| grant.renewals.is_empty())?;
    Some(changed(history, |event| {
        if event == grant.acquired {
            event.deed.sent_ns = Some(event.t_ns + 1);
        }
    }))
}

fn written_at(history: &History, grant: &Grant<'_>, t_ns: u64) -> History {
    with(history, grant.acquired, t_ns, |deed| {
        (deed.kind, deed.phase) = (Kind::Write, Phase::Invoke);
    })
}

pub(crate) fn write_after_the_deadline(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let grant = grants.all().find(|grant| ran_out(grant))?;
    Some(written_at(history, grant, grant.deadline_ns()))
}

pub(crate) fn write_after_the_release(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let grant = grants.all().find(|grant| released(grant).is_some())?;
    Some(written_at(history, grant, released(grant)?.t_ns))
}

pub(crate) fn write_without_a_grant(history: &History) -> Option<History> {
    let write = history
        .events
        .iter()
        .find(|event| event.deed.kind == Kind::Write)?;
    Some(with(history, write, write.t_ns, |deed| {
        deed.nonce = Some("nobody's".into())
    }))
}

pub(crate) fn smaller_token_accepted(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let mut applied = history
        .events
        .iter()
        .rev()
        .filter(|event| event.deed.kind == Kind::Apply);
    let last = applied.find(|event| event.deed.answer == Some(Answer::Accepted))?;
    let of_key = &grants.of_key[last.deed.key.as_deref()?];
    let smaller = of_key
        .iter()
        .find(|grant| Some(grant.token) < last.deed.token)?;
    Some(with(history, last, last.t_ns + 10 * MS, |deed| {
        (deed.token, deed.serial) = (Some(smaller.token), Some(1_000_000));
    }))
}

pub(crate) fn refused_without_a_greater(history: &History) -> Option<History> {
    let first = history
        .events
        .iter()
        .find(|event| event.deed.kind == Kind::Apply)?
        .clone();
    Some(changed(history, |event| {
        if *event == first {
            event.deed.answer = Some(Answer::Rejected);
        }
    }))
}

pub(crate) fn token_of_nobody_accepted(history: &History) -> Option<History> {
    let mut applied = history.events.iter().rev();
    let last = applied.find(|event| event.deed.kind == Kind::Apply)?;
    Some(with(history, last, last.t_ns + 10 * MS, |deed| {
        deed.token = Some(Token { te: 9999, ctr: 1 });
        (deed.serial, deed.answer) = (Some(1_000_000), Some(Answer::Accepted));
    }))
}

pub(crate) fn token_granted_twice(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (first, second) = neighbours(&grants, |_, second| !has_writes(history, second))?;
    Some(changed(history, |event| {
        if is_of(event, second) {
            event.deed.token = Some(first.token);
        }
    }))
}

pub(crate) fn tokens_swapped(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (first, second) = neighbours(&grants, |first, second| {
        !has_writes(history, first) && !has_writes(history, second)
    })?;
    Some(changed(history, |event| {
        if is_of(event, first) {
            event.deed.token = Some(second.token);
        } else if is_of(event, second) {
            event.deed.token = Some(first.token);
        }
    }))
}

pub(crate) fn renewed_after_the_release(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let grant = grants.all().find(|grant| released(grant).is_some())?;
    let at = released(grant)?.t_ns;
    Some(with(history, grant.acquired, at + 2, renewal(at + 1, None)))
}

pub(crate) fn renewal_overtaken_by_the_release(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let grant = grants.all().find(|grant| released(grant).is_some())?;
    let (begun, answered) = (grant.release?.0.t_ns, released(grant)?.t_ns);
    Some(with(
        history,
        grant.acquired,
        answered + 1,
        renewal(begun - 1, None),
    ))
}

pub(crate) fn renewed_after_a_later_grant(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (first, second) = neighbours(&grants, |first, _| ran_out(first))?;
    let sent = second.told_ns() + 1;
    Some(with(history, first.acquired, sent + 1, renewal(sent, None)))
}

pub(crate) fn release_answered_not_there(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let kept = |grant: &&Grant<'_>| {
        let reclaimed = |event: &&Event| event.deed.answer == Some(Answer::Reclaimed);
        released(grant).is_some() && !grant.renewals.iter().any(reclaimed)
    };
    let answer = released(grants.all().find(kept)?)?.clone();
    Some(changed(history, |event| {
        if *event == answer {
            event.deed.answer = Some(Answer::NotThere);
        }
    }))
}

pub(crate) fn renewal_answered_lost(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let grant = grants.all().find(|grant| !grant.certain().is_empty())?;
    Some(with(history, grant.acquired, grant.told_ns() + 1, |deed| {
        renewal(grant.told_ns(), None)(deed);
        (deed.phase, deed.answer) = (Phase::Fail, Some(Answer::Lost));
    }))
}

/// `history` with a coordinator that was killed at its beginning.
pub(crate) fn of_service(history: &History) -> History {
    let first = &history.events[0];
    let killed = Deed {
        fault: Some(Fault::KillCoordinator),
        ..Deed::default()
    };
    with_fault(history, first, first.t_ns, &killed)
}

pub(crate) fn lost_though_a_coordinator_served(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let is_hurt = |grant: &Grant<'_>, until_ns| {
        let mut during = history.events.iter();
        during.any(|event| {
            let deed = &event.deed;
            let is_its = deed.shard == grant.acquired.deed.shard;
            let time = grant.told_ns()..=until_ns;
            deed.fault.is_some() && is_its && time.contains(&event.t_ns)
        })
    };
    let ended = grants.all().filter(|grant| released(grant).is_some());
    let mut ended = ended.filter_map(|grant| Some((grant, grant.release?.0)));
    let (grant, at) = ended.find(|(grant, at)| !is_hurt(grant, at.t_ns))?;
    let lost = with(history, grant.acquired, at.t_ns, |deed| {
        (deed.kind, deed.answer) = (Kind::GuardState, Some(Answer::Lost));
    });
    Some(of_service(&lost))
}

/// A holder that loses a lock as soon as it knows that it has it: a coordinator failed, and told it late.
pub(crate) fn lost_as_a_coordinator_told_it_late(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let ended_ns = |grant: &Grant<'_>| grant.release.map_or(grant.deadline_ns(), |(at, _)| at.t_ns);
    let mut all = grants.all().filter(|grant| grant.killed_ns.is_none());
    let grant = all.find(|grant| {
        let is_plain = grant.renewals.is_empty() && !has_writes(history, grant);
        is_plain && ended_ns(grant) > grant.told_ns() + 3 * MS
    })?;
    let (told_ns, acquired) = (grant.told_ns(), grant.acquired);
    let mut events = history.events.clone();
    let at = events.iter().position(|event| event == acquired)?;
    events[at].deed.deadline_ns = Some(told_ns + MS);
    let lost = with(&History::new(events), acquired, told_ns + 2 * MS, |deed| {
        (deed.kind, deed.answer) = (Kind::GuardState, Some(Answer::Lost));
    });
    let killed = Deed {
        fault: Some(Fault::KillCoordinator),
        ..Deed::default()
    };
    Some(with_fault(&lost, &history.events[0], told_ns - MS, &killed))
}

pub(crate) fn nobody_granted_after_healing(history: &History) -> Option<History> {
    let healed = history
        .events
        .iter()
        .find(|event| event.deed.fault == Some(Fault::Heal))?;
    Some(without(history, |event| {
        let asks = event.deed.kind == Kind::Acquire && event.deed.phase == Phase::Invoke;
        event.t_ns > healed.t_ns && !asks
    }))
}

pub(crate) fn resize_without_an_end(history: &History) -> Option<History> {
    let mut events = history.events.iter();
    let healed = events.find(|event| event.deed.fault == Some(Fault::Heal))?;
    Some(with(history, healed, healed.t_ns + MS, |deed| {
        *deed = Deed::invoke(deed.op, Kind::Resize);
    }))
}

/// The first refusal, in a history that goes on for long enough.
fn early_refusal(history: &History) -> Option<Event> {
    let refused =
        |event: &&Event| event.deed.kind == Kind::Acquire && event.deed.phase == Phase::Fail;
    let refusal = history.events.iter().find(refused)?;
    let goes_on = history.events.last()?.t_ns - refusal.t_ns > 21_000 * MS;
    goes_on.then(|| refusal.clone())
}

pub(crate) fn asked_without_an_answer(history: &History) -> Option<History> {
    let refusal = early_refusal(history)?;
    Some(without(history, |event| *event == refusal))
}

pub(crate) fn answered_much_too_late(history: &History) -> Option<History> {
    let refusal = early_refusal(history)?;
    Some(changed(history, |event| {
        if *event == refusal {
            event.t_ns += 20_500 * MS;
        }
    }))
}

pub(crate) fn no_grants_during_faults(history: &History) -> Option<History> {
    let mut begun: Vec<&Event> = Vec::new();
    let (mut nonces, mut ops): (HashSet<&str>, HashSet<_>) = Default::default();
    for event in &history.events {
        match (event.deed.kind, event.deed.phase) {
            (Kind::Nemesis, Phase::Invoke) => begun.push(event),
            (Kind::Nemesis, _) => begun.retain(|begun| begun.deed.op != event.deed.op),
            (Kind::Acquire, Phase::Ok) if !begun.is_empty() => {
                nonces.extend(event.deed.nonce.as_deref());
            }
            _ => {}
        }
    }
    for event in &history.events {
        let nonce = event.deed.nonce.as_deref();
        if event.deed.kind == Kind::Acquire && nonce.is_some_and(|nonce| nonces.contains(nonce)) {
            ops.insert((event.process, event.deed.op));
        }
    }
    Some(without(history, |event| {
        let of_grant = event.deed.nonce.as_deref();
        of_grant.is_some_and(|nonce| nonces.contains(nonce))
            || ops.contains(&(event.process, event.deed.op))
            || event.deed.answer == Some(Answer::Rejected)
    }))
}
