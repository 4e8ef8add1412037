//! The audit of accounts passes what can be true, and finds each thing that cannot.

use ringfence_chaos::counters::{
    Answer, Attempt, Balance, Call, Deed, End, Order, Rule, audit, audit_losses,
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
    let rules = audit(&attempts, 2).into_iter();
    rules.map(|violation| violation.rule).collect()
}

#[test]
fn what_can_be_true_passes() {
    assert_eq!(found(|_| ()), []);
}

#[test]
fn an_account_that_lost_money_has_less_and_says_so() {
    let found = |available, losses| {
        let mut attempts = told();
        let Some((_, Answer::Balance(balance))) = &mut attempts[9].answered else {
            panic!("{attempts:?}");
        };
        (balance.available, balance.losses) = (available, losses);
        let rules = audit_losses(&attempts, &[15, 0]).into_iter();
        rules.map(|violation| violation.rule).collect::<Vec<_>>()
    };
    assert_eq!(found(25, 1), []);
    assert_eq!(found(20, 1), []);
    assert_eq!(found(26, 1), [Rule::Conservation]);
    assert_eq!(found(25, 0), [Rule::Sound]);
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
