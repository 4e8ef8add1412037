//! The audit of accounts passes what can be true, and finds each thing that cannot.

use std::collections::HashSet;

use ringfence_chaos::counters::{
    Answer, Attempt, Balance, Call, Deed, EffectWord, End, ForgottenLayout, Handover, LatchCall,
    LatchDeed, Logged, LoggedEffect, Losses, Order, Rule, Visitor, audit, audit_latches,
    audit_losses, audit_visitors,
};

fn order(name: &str, amount: i64, deed: Deed) -> Order {
    Order {
        account: 0,
        time_ms: 1,
        name: name.into(),
        amount,
        deed,
    }
}

fn attempt(call: Call, asked_ns: u64, answer: Answer) -> Attempt {
    Attempt {
        call,
        asked_ns,
        answered: Some((asked_ns + 5, answer)),
    }
}

fn change(name: &str, amount: i64, deed: Deed, asked_ns: u64, answer: Answer) -> Attempt {
    attempt(Call::Change(order(name, amount, deed)), asked_ns, answer)
}

fn exact(account: usize, asked_ns: u64, available: i64, held: i64) -> Attempt {
    let balance = Balance {
        available,
        held,
        losses: 0,
    };
    attempt(Call::Exact(account), asked_ns, Answer::Balance(balance))
}

/// What two accounts can have been told, in the order of time.
fn told() -> Vec<Attempt> {
    let confirm = Call::Confirm(order("r", 20, Deed::Reserve(1)));
    vec![
        change("d", 100, Deed::Deposit, 10, Answer::Done),
        change("w", 30, Deed::Deduct, 20, Answer::Done),
        exact(0, 30, 70, 0),
        change("r", 20, Deed::Reserve(1), 40, Answer::Held),
        exact(0, 50, 50, 20),
        attempt(confirm, 60, Answer::Ended(End::Confirmed)),
        change("t", 10, Deed::Transfer(1), 70, Answer::Done),
        change("w", 30, Deed::Deduct, 80, Answer::Done),
        change("much", 41, Deed::Deduct, 90, Answer::Insufficient),
        exact(0, 100, 40, 0),
        exact(1, 110, 10, 0),
    ]
}

/// The violations found after `change` is applied to the reported attempts.
fn found(change: impl FnOnce(&mut Vec<Attempt>)) -> Vec<Rule> {
    let mut attempts = told();
    change(&mut attempts);
    let rules = audit(&attempts, 2, &[]).into_iter();
    rules.map(|violation| violation.rule).collect()
}

#[test]
fn what_can_be_true_passes() {
    assert_eq!(found(|_| ()), []);
}

#[test]
fn half_of_a_captured_reservation_is_at_the_receiver_and_half_is_back() {
    use EffectWord::{Cancelled, Delivered, Deposited, Expired, Received, Reserved};
    let rules = |paid: [i64; 2], own: &[(EffectWord, i64)], receipts: usize| {
        let deed = || Deed::ReserveFor(1, 1);
        let confirm = Call::Confirm(order("c", 20, deed()));
        let logged = |words: &[(EffectWord, i64)], available| {
            let effects = words.iter().map(|(word, amount)| LoggedEffect {
                account: 0,
                name: if *word == Deposited { "d" } else { "c" }.into(),
                word: *word,
                amount: *amount,
            });
            Answer::Logged(Logged {
                effects: effects.collect(),
                available,
                ..Logged::default()
            })
        };
        let own = [&[(Deposited, 100), (Reserved, 20)], own].concat();
        let attempts = [
            change("d", 100, Deed::Deposit, 10, Answer::Done),
            change("c", 20, deed(), 20, Answer::Held),
            attempt(confirm, 30, Answer::Ended(End::Confirmed)),
            exact(0, 40, paid[0], 0),
            exact(1, 50, paid[1], 0),
            attempt(Call::History(0), 60, logged(&own, paid[0])),
            attempt(
                Call::History(1),
                70,
                logged(&vec![(Received, 10); receipts], paid[1]),
            ),
        ];
        let rules = audit(&attempts, 2, &[]).into_iter();
        let mut rules: Vec<_> = rules.map(|violation| violation.rule).collect();
        rules.dedup();
        rules
    };
    let spent = [(Delivered, 10), (Cancelled, 10)];
    assert_eq!(rules([90, 10], &spent, 1), []);
    let unsound = [Rule::Conservation, Rule::Exact];
    assert_eq!(rules([80, 10], &spent, 1), unsound);
    assert_eq!(rules([90, 20], &spent, 1), unsound);
    assert_eq!(rules([90, 10], &spent, 2), [Rule::Log]);
    assert_eq!(rules([90, 10], &spent[..1], 1), [Rule::Log]);
    assert_eq!(rules([90, 10], &[(Expired, 20)], 1), [Rule::Log]);
}

/// What the log of the first account says, if it is right.
fn first_log() -> Logged {
    use EffectWord::{Confirmed, Deducted, Delivered, Deposited, Reserved, Sent};
    let effects = [
        ("d", Deposited, 100),
        ("w", Deducted, 30),
        ("r", Reserved, 20),
        ("r", Confirmed, 20),
        ("t", Sent, 10),
        ("t", Delivered, 10),
    ];
    let effects = effects.map(|(name, word, amount)| LoggedEffect {
        account: 0,
        name: name.into(),
        word,
        amount,
    });
    Logged {
        effects: effects.into(),
        available: 40,
        held: 0,
        broken: None,
    }
}

#[test]
fn a_log_is_the_money_and_has_each_effect_once() {
    let rules = |change: fn(&mut Logged)| {
        let mut logged = first_log();
        change(&mut logged);
        found(|all| all.push(attempt(Call::History(0), 200, Answer::Logged(logged))))
    };
    assert_eq!(rules(|_| ()), []);
    assert_eq!(rules(|logged| logged.available = 41), [Rule::Log]);
    assert_eq!(rules(|logged| logged.held = 1), [Rule::Log]);
    assert_eq!(
        rules(|logged| logged.broken = Some("a gap".into())),
        [Rule::Log]
    );
    for nth in 0..6 {
        let mut without = first_log();
        without.effects.remove(nth);
        let mut twice = first_log();
        twice.effects.push(twice.effects[nth].clone());
        let mut other = first_log();
        other.effects[nth].amount += 1;
        for logged in [without, twice, other] {
            let found =
                found(|all| all.push(attempt(Call::History(0), 200, Answer::Logged(logged))));
            assert_eq!(found, [Rule::Log], "{nth}");
        }
    }
    // An order that was refused has no effect, and one of another account has none here.
    for (account, name) in [(0, "much"), (1, "d")] {
        let mut logged = first_log();
        logged.effects.push(LoggedEffect {
            account,
            name: name.into(),
            word: EffectWord::Deducted,
            amount: 41,
        });
        let found = found(|all| all.push(attempt(Call::History(0), 200, Answer::Logged(logged))));
        assert_eq!(found, [Rule::Log]);
    }
}

/// The violations found if the first account had a deposit refused as too old between 200 and 205, by the time of the
/// handovers, and has so much more in the end, and so many losses.
fn found_with(handovers: &[Handover], more: i64, losses: u64) -> Vec<Rule> {
    let mut attempts = told();
    attempts.push(change("old", 8, Deed::Deposit, 200, Answer::TooOld));
    let balance = Balance {
        available: 40 + more,
        held: 0,
        losses,
    };
    attempts.push(attempt(Call::Exact(0), 300, Answer::Balance(balance)));
    let rules = audit(&attempts, 2, handovers).into_iter();
    rules.map(|violation| violation.rule).collect()
}

#[test]
fn a_request_is_too_old_and_an_account_marked_only_after_a_handover() {
    let handover = |from_ns, over_ns, mark_ms| Handover {
        from_ns,
        over_ns,
        mark_ms,
    };
    let before = handover(150, 160, 1);
    assert_eq!(found_with(&[before], 0, 1), []);
    assert_eq!(found_with(&[], 0, 0), [Rule::Failure]);
    assert_eq!(found_with(&[], 0, 1), [Rule::Sound, Rule::Failure]);
    assert_eq!(found_with(&[handover(150, 160, 0)], 0, 1), [Rule::Failure]);
    // It was asked for when the shard had been handed over: it was never done.
    let too_much = [Rule::Conservation, Rule::Exact];
    assert_eq!(found_with(&[before], 8, 1), too_much);
    let between = handover(190, 201, 1);
    assert_eq!(found_with(&[between], 0, 1), []);
    assert_eq!(found_with(&[between], 8, 1), []);
    assert_eq!(found_with(&[between], 9, 1), too_much);
}

/// The violations found in accounts that lost something, the first of which has `available` in the end, after `change` is
/// applied to the reported attempts. The ids of orders have different times: 1, 2, 3, …
fn found_after(
    losses: [Losses; 2],
    (available, times): (i64, u64),
    change: impl FnOnce(&mut Vec<Attempt>),
) -> Vec<Rule> {
    let mut attempts = told();
    let Some((_, Answer::Balance(balance))) = &mut attempts[9].answered else {
        panic!("{attempts:?}");
    };
    (balance.available, balance.losses) = (available, times);
    change(&mut attempts);
    for attempt in &mut attempts {
        let (Call::Change(order) | Call::Confirm(order) | Call::Cancel(order)) = &mut attempt.call
        else {
            continue;
        };
        order.time_ms = time_of(&order.name);
    }
    let rules = audit_losses(&attempts, &losses).into_iter();
    rules.map(|violation| violation.rule).collect()
}

fn time_of(name: &str) -> u64 {
    let names = ["d", "w", "r", "t", "much"];
    let place = names.iter().position(|known| *known == name);
    place.map_or(99, |place| 1 + place as u64)
}

/// A segment of the first account went back: it forgot these orders, and that it lent so much.
fn back(forgotten: &[&str], lent: i64) -> [Losses; 2] {
    let forgotten: HashSet<u64> = forgotten.iter().map(|name| time_of(name)).collect();
    let went_back = true;
    let first = Losses {
        went_back,
        lent,
        forgotten,
        ..Losses::default()
    };
    [first, Losses::default()]
}

#[test]
fn an_account_that_lost_money_has_less_and_says_so() {
    let found = |available, times| {
        let gone = Losses {
            gone: 15,
            ..Losses::default()
        };
        found_after([gone, Losses::default()], (available, times), |_| ())
    };
    assert_eq!(found(25, 1), []);
    assert_eq!(found(20, 1), []);
    assert_eq!(found(26, 1), [Rule::Conservation]);
    assert_eq!(found(25, 0), [Rule::Sound]);
}

#[test]
fn an_account_that_went_back_says_so() {
    let found = |times| found_after(back(&[], 0), (40, times), |_| ());
    assert_eq!(found(1), []);
    assert_eq!(found(0), [Rule::Sound]);
}

#[test]
fn what_left_a_segment_that_forgot_it_may_be_there_again() {
    // A deduction of 30, a reservation of 20 that was spent, a transfer of 10.
    for (name, more) in [("w", 30), ("r", 20), ("t", 10)] {
        let found = |available| found_after(back(&[name], 0), (available, 1), |_| ());
        assert_eq!(found(40 + more), [], "{name}");
        assert_eq!(found(40 + more + 1), [Rule::Conservation], "{name}");
    }
    let found = |available| found_after(back(&[], 7), (available, 1), |_| ());
    assert_eq!(found(47), []);
    assert_eq!(found(48), [Rule::Conservation]);
}

#[test]
fn a_deposit_that_was_forgotten_counts_once() {
    let again = |available, lent| {
        found_after(back(&["d"], lent), (available, 1), |told| {
            told.push(change("d", 100, Deed::Deposit, 95, Answer::Done));
        })
    };
    assert_eq!(again(40, 0), []);
    assert_eq!(again(41, 0), [Rule::Conservation]);
    // It was lent before it was forgotten.
    assert_eq!(again(140, 100), []);
    assert_eq!(again(141, 100), [Rule::Conservation]);
}

#[test]
fn a_deposit_that_is_decided_by_a_forgotten_layout_and_its_successor_counts_twice() {
    let found = |from_ms, until_ns| {
        let mut losses = back(&[], 0);
        losses[0]
            .layouts
            .push(ForgottenLayout { from_ms, until_ns });
        found_after(losses, (140, 1), |_| ())
    };
    assert_eq!(found(1, 10), []);
    // It is of before the layout; or it came after the loss was accepted.
    assert_eq!(found(2, 10), [Rule::Conservation]);
    assert_eq!(found(1, 9), [Rule::Conservation]);
}

#[test]
fn a_refusal_that_a_destination_forgot_may_be_a_credit() {
    let found = |went_back, available| {
        let mut losses = back(&[], 0);
        losses[1].went_back = went_back;
        found_after(losses, (50, 1), |told| {
            told[6].answered = Some((75, Answer::Returned));
            let Some((_, Answer::Balance(balance))) = &mut told[10].answered else {
                panic!("{told:?}");
            };
            (balance.available, balance.losses) = (available, 1);
        })
    };
    assert_eq!(found(true, 10), []);
    assert_eq!(found(true, 11), [Rule::Conservation]);
    assert_eq!(found(false, 10), [Rule::Conservation]);
}

#[test]
fn only_an_order_that_was_forgotten_has_two_answers() {
    let insufficient = |told: &mut Vec<Attempt>| {
        told.push(change("w", 30, Deed::Deduct, 95, Answer::Insufficient));
    };
    assert_eq!(found_after(back(&["w"], 0), (40, 1), insufficient), []);
    let other = found_after(back(&["d"], 0), (40, 1), insufficient);
    assert_eq!(other, [Rule::Agreement]);
    let denied = |told: &mut Vec<Attempt>| {
        let nothing = Answer::Nothing("busy".into());
        told.push(change("w", 30, Deed::Deduct, 95, nothing));
    };
    assert_eq!(found_after(back(&["w"], 0), (40, 1), denied), []);
    let other = found_after(back(&["d"], 0), (40, 1), denied);
    assert_eq!(other, [Rule::Agreement]);
}

#[test]
fn only_a_reservation_that_was_forgotten_is_not_known() {
    let unreserved = |told: &mut Vec<Attempt>| {
        let confirm = Call::Confirm(order("r", 20, Deed::Reserve(1)));
        told.push(attempt(confirm, 95, Answer::Unreserved));
    };
    assert_eq!(found_after(back(&["r"], 0), (40, 1), unreserved), []);
    let other = found_after(back(&["d"], 0), (40, 1), unreserved);
    assert_eq!(other, [Rule::Failure]);
}

/// A caller that did not know the layout had it decided by a segment that forgot the layout. Another caller finds nothing at
/// its home by the layout.
#[test]
fn only_a_request_of_a_forgotten_layout_has_two_answers_at_two_homes() {
    let asked_ns = 40; // Of the reservation, whose time is 3.
    let found = |from_ms, until_ns, told: fn(&mut Vec<Attempt>)| {
        let mut losses = back(&[], 0);
        losses[0]
            .layouts
            .push(ForgottenLayout { from_ms, until_ns });
        found_after(losses, (40, 1), told)
    };
    let unreserved = |told: &mut Vec<Attempt>| {
        let confirm = Call::Confirm(order("r", 20, Deed::Reserve(1)));
        told.push(attempt(confirm, 95, Answer::Unreserved));
    };
    let insufficient = |told: &mut Vec<Attempt>| {
        let reserve = change("r", 20, Deed::Reserve(1), 95, Answer::Insufficient);
        told.push(reserve);
    };
    assert_eq!(found(3, asked_ns, unreserved), []);
    assert_eq!(found(4, asked_ns, unreserved), [Rule::Failure]);
    assert_eq!(found(3, asked_ns - 1, unreserved), [Rule::Failure]);
    assert_eq!(found(3, asked_ns, insufficient), []);
    assert_eq!(found(4, asked_ns, insufficient), [Rule::Agreement]);
}

#[test]
fn a_transfer_that_was_decided_twice_may_have_come_back_and_arrived() {
    let found = |from_ms, available| {
        let mut losses = back(&[], 0);
        let until_ns = 100;
        losses[0]
            .layouts
            .push(ForgottenLayout { from_ms, until_ns });
        found_after(losses, (50, 1), |told| {
            told[6].answered = Some((75, Answer::Returned));
            told[10] = exact(1, 110, available, 0);
        })
    };
    assert_eq!(found(4, 10), []);
    assert_eq!(found(4, 11), [Rule::Conservation]);
    assert_eq!(found(5, 10), [Rule::Conservation]);
}

#[test]
fn what_is_under_way_may_count_or_not() {
    let slow = |available| {
        found(|told| {
            told[1].answered.as_mut().unwrap().0 = 36;
            told[2] = exact(0, 30, available, 0);
        })
    };
    assert_eq!((slow(70), slow(100)), (vec![], vec![]));
    assert_eq!(
        (slow(69), slow(101)),
        (vec![Rule::Exact], vec![Rule::Exact])
    );
}

#[test]
fn a_coin_made_or_lost_is_found() {
    for available in [39, 41] {
        let rules = found(|told| told[9] = exact(0, 100, available, 0));
        assert_eq!(rules, [Rule::Conservation, Rule::Exact]);
    }
    assert_eq!(
        found(|told| told[10] = exact(1, 110, 10, 1)),
        [Rule::Conservation]
    );
    assert_eq!(found(|told| drop(told.pop())), [Rule::Conservation]);
}

#[test]
fn a_balance_that_never_was_is_found() {
    assert_eq!(found(|told| told[2] = exact(0, 30, 71, 0)), [Rule::Exact]);
}

#[test]
fn an_account_that_was_never_short_is_found() {
    let enough = |told: &mut Vec<Attempt>| {
        told[8] = change("much", 40, Deed::Deduct, 90, Answer::Insufficient);
    };
    assert_eq!(found(enough), [Rule::Insufficient]);
}

#[test]
fn another_answer_to_a_repeat_is_found() {
    let insufficient = |told: &mut Vec<Attempt>| {
        told[7] = change("w", 30, Deed::Deduct, 80, Answer::Insufficient);
    };
    assert_eq!(found(insufficient), [Rule::Agreement]);
    let cancelled = |told: &mut Vec<Attempt>| {
        let cancel = Call::Cancel(order("r", 20, Deed::Reserve(1)));
        told.push(attempt(cancel, 120, Answer::Ended(End::Cancelled)));
    };
    assert_eq!(found(cancelled), [Rule::Agreement]);
}

#[test]
fn what_was_answered_and_was_never_seen_is_found() {
    let find = |name: &str, deed: Deed, at_ns: u64, answer: Answer| {
        let call = Call::Find(order(name, 30, deed));
        move |told: &mut Vec<Attempt>| told.push(attempt(call, at_ns, answer))
    };
    let unseen = || Answer::Unseen;
    assert_eq!(
        found(find("w", Deed::Deduct, 120, unseen())),
        [Rule::Agreement]
    );
    let other = Answer::Insufficient;
    assert_eq!(
        found(find("w", Deed::Deduct, 120, other)),
        [Rule::Agreement]
    );
    assert_eq!(found(find("w", Deed::Deduct, 120, Answer::Done)), []);
    // Before it was asked for.
    assert_eq!(found(find("w", Deed::Deduct, 1, unseen())), []);
}

#[test]
fn what_is_never_answered_is_found() {
    assert_eq!(found(|told| told[6].answered = None), [Rule::Answered]);
    let unknown = Answer::Unknown("lost".into());
    let held = |told: &mut Vec<Attempt>| told[5].answered = Some((65, unknown));
    assert_eq!(found(held), [Rule::Answered]);
}

#[test]
fn what_says_that_it_did_nothing_must_have_done_nothing() {
    let nothing = || Answer::Nothing("contended".into());
    let rules = found(|told| told[0].answered = Some((15, nothing())));
    assert!(rules.contains(&Rule::Exact) && rules.contains(&Rule::Conservation));
    let harmless = |told: &mut Vec<Attempt>| {
        told.insert(0, change("w", 30, Deed::Deduct, 1, nothing()));
    };
    assert_eq!(found(harmless), []);
}

#[test]
fn doubt_and_failures_are_found() {
    let lost = Balance {
        available: 70,
        held: 0,
        losses: 1,
    };
    let looked = attempt(Call::Fast(0), 30, Answer::Balance(lost));
    assert_eq!(found(|told| told.push(looked)), [Rule::Sound]);
    let failed = change("f", 1, Deed::Deduct, 95, Answer::Failed("conflict".into()));
    assert_eq!(
        found(|told| told.push(failed)),
        [Rule::Answered, Rule::Failure]
    );
}

#[test]
fn a_repeat_that_is_told_that_nothing_was_done_is_found() {
    let denied = |asked_ns| {
        let nothing = Answer::Nothing("too many".into());
        found(|told| told.push(change("w", 30, Deed::Deduct, asked_ns, nothing)))
    };
    assert_eq!(denied(120), [Rule::Agreement]);
    assert_eq!(denied(15), []);
}

#[test]
fn what_was_sent_to_nobody_must_come_back() {
    let sent = |answer| found(|told| told.push(change("n", 5, Deed::Transfer(2), 95, answer)));
    assert_eq!(sent(Answer::Returned), []);
    assert!(sent(Answer::Done).contains(&Rule::Conservation));
}

/// The violations found in two visitors' accounts: the first one is there since 100 to 110, and has `available`; the second one is
/// gone since 100. A transfer of 10 to number `to` is asked at `asked_ns`.
fn visited(available: i64, to: usize, asked_ns: u64, answer: Answer) -> Vec<Rule> {
    let visitors = [
        Visitor {
            gone_ns: Some(90),
            created_ns: Some((100, 110)),
        },
        Visitor {
            gone_ns: Some(100),
            created_ns: None,
        },
    ];
    let attempts = [
        change("t", 10, Deed::Transfer(to), asked_ns, answer),
        exact(1, 200, available, 0),
    ];
    let rules = audit_visitors(&attempts, 1, &visitors).into_iter();
    rules.map(|violation| violation.rule).collect()
}

#[test]
fn a_visitor_has_what_was_delivered_since_its_creation() {
    let (first, conservation) = (1, [Rule::Conservation]);
    // Before, perhaps before, after.
    assert_eq!(visited(0, first, 80, Answer::Done), []);
    assert_eq!(visited(10, first, 80, Answer::Done), conservation);
    assert_eq!(visited(0, first, 99, Answer::Done), []);
    assert_eq!(visited(10, first, 99, Answer::Done), []);
    assert_eq!(visited(0, first, 120, Answer::Done), conservation);
    assert_eq!(visited(10, first, 120, Answer::Done), []);
    // The money of these is back, or was never taken.
    for answer in [Answer::Returned, Answer::Insufficient] {
        assert_eq!(visited(0, first, 120, answer.clone()), []);
        assert_eq!(visited(10, first, 120, answer), conservation);
    }
}

#[test]
fn nothing_is_delivered_to_a_visitor_that_is_gone() {
    assert_eq!(visited(0, 2, 80, Answer::Done), []);
    assert_eq!(visited(0, 2, 120, Answer::Done), [Rule::Nowhere]);
    assert_eq!(visited(0, 2, 120, Answer::Returned), []);
}

#[test]
fn a_transfer_that_found_no_account_took_nothing() {
    let absent = || change("n", 5, Deed::Transfer(2), 95, Answer::Absent);
    assert_eq!(found(|told| told.push(absent())), []);
    let denied = |told: &mut Vec<Attempt>| {
        told.push(change("t", 10, Deed::Transfer(1), 95, Answer::Absent));
    };
    assert_eq!(found(denied), [Rule::Agreement]);
}

/// A call on a latch that is set to 2.
fn latch(deed: LatchDeed, asked_ns: u64, answer: Answer) -> Attempt {
    let latch = LatchCall {
        latch: "latch".into(),
        count: 2,
        deed,
    };
    attempt(Call::Latch(latch), asked_ns, answer)
}

fn counted(name: &str, asked_ns: u64, answer: Answer) -> Attempt {
    let (time_ms, name) = (1, name.into());
    latch(LatchDeed::CountDown { time_ms, name }, asked_ns, answer)
}

fn left(counts: u64, asked_ns: u64) -> Attempt {
    latch(LatchDeed::Look, asked_ns, Answer::Left(counts))
}

/// What was wrong with a latch, where everything that was acknowledged is kept, and where it is not.
fn wrong_with_a_latch(attempts: &[Attempt]) -> [bool; 2] {
    let set = latch(LatchDeed::Set, 10, Answer::Done);
    let all: Vec<_> = attempts.iter().cloned().chain([set]).collect();
    [true, false].map(|keeps| !audit_latches(&all, keeps).is_empty())
}

#[test]
fn a_latch_has_as_many_counts_left_as_requests_did_not_count_it_down() {
    let once = |answer| counted("1", 20, answer);
    let again = || counted("1", 30, Answer::Done);
    let other = || counted("2", 60, Answer::Done);
    let right = [
        once(Answer::Done),
        again(),
        left(1, 40),
        other(),
        left(0, 70),
    ];
    assert_eq!(wrong_with_a_latch(&right), [false, false]);
    // A repeat counts again; or it opens before the second request.
    let early = [once(Answer::Done), again(), left(0, 40), other()];
    assert_eq!(wrong_with_a_latch(&early), [true, true]);
    let forgotten = [once(Answer::Done), left(2, 40)];
    assert_eq!(wrong_with_a_latch(&forgotten), [true, false]);
    for counts in [1, 2] {
        let unknown = [once(Answer::Unknown(String::new())), left(counts, 40)];
        assert_eq!(wrong_with_a_latch(&unknown), [false, false]);
    }
}

#[test]
fn a_latch_on_a_disk_is_not_lost() {
    let gone = || latch(LatchDeed::Look, 40, Answer::Gone(String::new()));
    assert_eq!(wrong_with_a_latch(&[gone()]), [true, false]);
    let before_it_was_set = latch(LatchDeed::Look, 5, Answer::Gone(String::new()));
    assert_eq!(wrong_with_a_latch(&[before_it_was_set]), [false, false]);
}
