//! One thing done wrong about queues, turns and hand-offs; see [`super::mutations`].

use ringfence_chaos::{
    checker::{Grant, Grants, Stay, Ticket, Tickets},
    history::{Answer, Deed, Event, Fault, History, Kind, Phase, Token},
};

use super::mutations::{BELIEVED, MS, changed, has_writes, is_of, ran_out, with};

/// The lock is handed on for no longer than this once it is known that another waits.
const HANDED_ON_FOR: u64 = 210 * MS;

/// A nonce's grant that was handed on to `wanted`, and that.
fn hand_off<'a, 'h>(
    grants: &'a Grants<'h>,
    wanted: impl Fn(&Grant<'h>, &Grant<'h>) -> bool,
) -> Option<(&'a Grant<'h>, &'a Grant<'h>)> {
    let handed = grants.all().filter(|grant| grant.acquired.deed.handed);
    let pairs = handed.filter_map(|handed| {
        let of_nonce = grants.of_nonce(handed.nonce);
        let before = of_nonce.filter(|grant| grant.told_ns() < handed.told_ns());
        Some((before.last()?, handed))
    });
    let mut pairs = pairs.into_iter();
    pairs.find(|(before, handed)| wanted(before, handed))
}

fn turn<'a, 'h>(grants: &'a Grants<'h>) -> Option<&'a Grant<'h>> {
    grants.all().find(|grant| grant.acquired.deed.turn)
}

/// `history` with `kind` for a ticket of nobody's, as of `like`.
fn of_nobody(history: &History, like: &Event, t_ns: u64, kind: Kind, sent_ns: u64) -> History {
    with(history, like, t_ns, |deed| {
        *deed = Deed {
            kind,
            phase: Phase::Ok,
            key: deed.key.clone(),
            nonce: Some("nobody's".into()),
            sent_ns: Some(sent_ns),
            ..Deed::default()
        };
    })
}

pub(crate) fn newcomer_granted_before_a_waiter(history: &History) -> Option<History> {
    let tickets = Tickets::of(history);
    let stay = tickets.all().find_map(|ticket| ticket.stays().next())?;
    let known = stay.known;
    Some(of_nobody(
        history,
        known,
        known.t_ns + 2,
        Kind::Grant,
        known.t_ns + 1,
    ))
}

/// A newcomer is granted a key of its own between two answers that a waiter has a place; meanwhile these
/// deeds happen to the waiter, or to all.
fn newcomer_granted_between(history: &History, meanwhile: &[Deed]) -> Option<History> {
    let like = history.events.first()?;
    let add = |history: &History, at_ms: u64, deed: Deed| {
        with(history, like, like.t_ns + at_ms * MS, |like| *like = deed)
    };
    let mut changed = history.clone();
    for (at_ms, kind, nonce) in [
        (1, Kind::Ask, "waiter's"),
        (2, Kind::Queue, "waiter's"),
        (1000, Kind::Ask, "newcomer's"),
        (1500, Kind::Grant, "newcomer's"),
        (2000, Kind::Queue, "waiter's"),
    ] {
        let deed = Deed {
            sent_ns: Some(like.t_ns + (at_ms - 1) * MS),
            ..of_its_own(nonce, kind)
        };
        changed = add(&changed, at_ms, deed);
    }
    for deed in meanwhile {
        changed = add(&changed, 1200, deed.clone());
    }
    Some(changed)
}

/// The same at one replica of a lock, where both are asked for under other nonces than the lock's.
pub(crate) fn newcomer_granted_by_the_lead_before_a_waiter(history: &History) -> Option<History> {
    let mut changed = newcomer_granted_between(history, &[])?;
    let its = |event: &&mut Event| event.deed.key.as_deref() == Some("a key of its own");
    for event in changed.events.iter_mut().filter(its) {
        let nonce = event.deed.nonce.take()?;
        event.deed.kind = match event.deed.kind {
            Kind::Grant => Kind::Replica,
            kind => kind,
        };
        event.deed.nonce = Some(format!("lock of {nonce}"));
        event.deed.replica = Some((0, nonce));
    }
    Some(changed)
}

fn of_its_own(nonce: &str, kind: Kind) -> Deed {
    Deed {
        key: Some("a key of its own".into()),
        nonce: Some(nonce.into()),
        ..Deed::ended(3_000_000, kind, Phase::Ok)
    }
}

pub(crate) fn newcomer_granted_before_one_that_kept_its_place(
    history: &History,
) -> Option<History> {
    newcomer_granted_between(history, &[])
}

/// It queues again at the next shard, where the newcomer came first: this is no violation.
pub(crate) fn newcomer_granted_before_one_whose_slot_moves(history: &History) -> Option<History> {
    newcomer_granted_between(history, &[of_its_own("waiter's", Kind::Moving)])
}

/// The slot may have left and come back: this is no violation.
pub(crate) fn newcomer_granted_before_one_whose_slot_turns_back(
    history: &History,
) -> Option<History> {
    let turns_back = Deed {
        fault: Some(Fault::TurnBack),
        ..Deed::invoke(2_000_000, Kind::Nemesis)
    };
    newcomer_granted_between(history, &[turns_back])
}

/// It may have been one of the holders, and not have heard of it: this is no violation.
pub(crate) fn newcomer_granted_before_one_that_was_released_by_force(
    history: &History,
) -> Option<History> {
    let forces = Deed {
        fault: Some(Fault::ForceRelease),
        key: Some("a key of its own".into()),
        ..Deed::invoke(2_000_000, Kind::Nemesis)
    };
    newcomer_granted_between(history, &[forces])
}

/// Its turn may have come, and ended with its hold, before it heard of it: this is no violation.
pub(crate) fn newcomer_granted_before_one_whose_turn_is_short(
    history: &History,
) -> Option<History> {
    let short = Deed {
        hold_ms: Some(200),
        ..of_its_own("waiter's", Kind::Wait)
    };
    newcomer_granted_between(history, &[short])
}

pub(crate) fn ticket_overtaken_by_a_later_one(history: &History) -> Option<History> {
    let tickets = Tickets::of(history);
    let waits = |ticket: &&Ticket<'_>, of_key: &[Ticket<'_>]| {
        let (granted_ns, _) = ticket.granted?;
        let last: &Stay<'_> = ticket.stays().last()?;
        let came = last.known.t_ns + 1..last.until_ns.min(granted_ns) - 1;
        let mut behind = of_key.iter().filter(|other| came.contains(&other.began.0));
        let (_, later) = behind.find_map(|other| other.granted)?;
        Some((granted_ns - 1, later.clone())).filter(|_| last.until_ns == granted_ns)
    };
    let mut of_keys = tickets.of_key.values();
    let (at, later) =
        of_keys.find_map(|of_key| of_key.iter().find_map(|ticket| waits(&ticket, of_key)))?;
    Some(changed(history, |event| {
        if *event == later {
            event.t_ns = at;
        }
    }))
}

pub(crate) fn overtaken_in_its_own_process(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let grant = grants.all().next()?;
    let phases = [
        (grant.asked_ns - 3, Kind::Acquire, Phase::Invoke),
        (grant.asked_ns - 2, Kind::Wait, Phase::Ok),
        (grant.told_ns() + 1, Kind::Acquire, Phase::Fail),
    ];
    let add = |history: History, (t_ns, kind, phase)| {
        with(&history, grant.acquired, t_ns, |deed| {
            *deed = Deed {
                key: deed.key.clone(),
                ..Deed::ended(deed.op, kind, phase)
            };
        })
    };
    Some(phases.into_iter().fold(history.clone(), add))
}

pub(crate) fn handed_on_though_another_waits(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let known = |before: &Grant<'_>, handed: &Grant<'_>| {
        let mut known = before.renewals.iter();
        known.find_map(|event| {
            let renewed = event.deed.phase == Phase::Ok;
            let sent = event.deed.sent_ns.filter(|_| renewed)?;
            (event.t_ns + HANDED_ON_FOR < handed.judged_ns()).then_some((sent, event.t_ns))
        })
    };
    let (before, handed) = hand_off(&grants, |before, handed| known(before, handed).is_some())?;
    let (sent, judged) = known(before, handed)?;
    let mutated = of_nobody(history, before.acquired, sent - 2, Kind::Ask, sent - 2);
    let mutated = of_nobody(&mutated, before.acquired, sent - 1, Kind::Queue, sent - 2);
    Some(of_nobody(
        &mutated,
        before.acquired,
        judged + 1,
        Kind::GiveUp,
        0,
    ))
}

pub(crate) fn turn_believed_in_for_a_whole_lease(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let turn = turn(&grants)?;
    Some(changed(history, |event| {
        if event == turn.acquired {
            event.deed.deadline_ns = Some(turn.sent_ns() + BELIEVED);
        }
    }))
}

pub(crate) fn turn_counted_from_its_receipt(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let turn = turn(&grants)?;
    Some(changed(history, |event| {
        if event == turn.acquired {
            event.deed.sent_ns = Some(turn.told_ns());
        }
    }))
}

pub(crate) fn handed_on_with_a_deadline_from_nowhere(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (_, handed) = hand_off(&grants, |_, _| true)?;
    Some(changed(history, |event| {
        if event == handed.acquired {
            event.deed.sent_ns = Some(handed.judged_ns());
        }
    }))
}

pub(crate) fn handed_on_past_the_deadline(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let before = grants.all().find(|grant| ran_out(grant))?;
    let deadline = before.deadline_ns();
    Some(with(history, before.acquired, deadline, |deed| {
        let Token { te, ctr } = before.token;
        deed.token = Some(Token { te, ctr: ctr + 1 });
        deed.sent_ns = Some(before.last_sent_ns());
        (deed.judged_ns, deed.deadline_ns) = (Some(deadline), Some(deadline));
        (deed.handed, deed.turn) = (true, false);
    }))
}

pub(crate) fn handed_on_before_it_was_given_back(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (before, handed) = hand_off(&grants, |_, handed| {
        handed.certain().end > handed.told_ns() + 2
    })?;
    Some(changed(history, |event| {
        if event.deed.kind == Kind::Release && is_of(event, before) {
            let answered = event.deed.answer == Some(Answer::Released);
            event.t_ns = handed.told_ns() + 1 + u64::from(answered);
        }
    }))
}

pub(crate) fn handed_on_with_the_same_token(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (before, handed) = hand_off(&grants, |_, handed| !has_writes(history, handed))?;
    Some(changed(history, |event| {
        if is_of(event, handed) {
            event.deed.token = Some(before.token);
        }
    }))
}

pub(crate) fn handed_on_with_an_earlier_token(history: &History) -> Option<History> {
    let grants = Grants::of(history);
    let (before, handed) = hand_off(&grants, |before, handed| {
        !has_writes(history, before) && !has_writes(history, handed)
    })?;
    Some(changed(history, |event| {
        if is_of(event, before) {
            event.deed.token = Some(handed.token);
        } else if is_of(event, handed) {
            event.deed.token = Some(before.token);
        }
    }))
}
