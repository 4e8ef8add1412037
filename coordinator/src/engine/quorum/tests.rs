//! The vote against a brute-force statement of its rules: every combination of answers of three and of
//! five ranks, with few tokens and deadlines.

use std::{sync::Arc, time::Duration};

use ringfence_ring::{Replicas, SlotCount};

use super::{
    super::local::{LeaseState, Terms},
    vote::{Answer, Grant, Vote, deadline, may_hold_unconfirmed, vote},
};
use crate::{
    clock::Instant,
    ids::{ClientId, Nonce, Token},
    name::{Label, LockKey, Namespace},
    shard::LockMode,
    topology::Constants,
    view::ViewLease,
};

const NOW: u64 = 1;
/// The first is `NOW`: it has passed.
const DEADLINES: [u64; 3] = [NOW, 2, 3];
const TOKENS: [u64; 3] = [1, 2, 3];

fn at(second: u64) -> Instant {
    Instant::default() + Duration::from_secs(second)
}

fn grant(token: u64, until: u64) -> Answer {
    Answer::Granted(Grant {
        token: Token::from_number(token),
        deadline: at(until),
    })
}

fn decide(replicas: Replicas, answers: &[Answer]) -> Vote {
    vote(replicas, answers, at(NOW))
}

fn live(answers: &[Answer]) -> Vec<Grant> {
    let grants = answers.iter().filter_map(|answer| match answer {
        Answer::Granted(grant) if at(NOW) < grant.deadline => Some(*grant),
        _ => None,
    });
    grants.collect()
}

fn is_majority(replicas: Replicas, ranks: usize) -> bool {
    2 * ranks > replicas.get() as usize
}

/// Whether the rule allows a holder to have `token`.
fn may_hold(replicas: Replicas, answers: &[Answer], token: Token) -> bool {
    let live = live(answers);
    let at_most = live.iter().filter(|grant| grant.token <= token).count();
    let at_least = live.iter().filter(|grant| grant.token >= token).count();
    is_majority(replicas, at_most) && is_majority(replicas, at_least)
}

fn held_token(replicas: Replicas, answers: &[Answer]) -> Option<Token> {
    let mut tokens = TOKENS.map(Token::from_number).into_iter();
    tokens.find(|token| may_hold(replicas, answers, *token))
}

/// Until when a majority of the live records lasts, counted second by second.
fn lasts(replicas: Replicas, answers: &[Answer]) -> Option<Instant> {
    let live = live(answers);
    let lasting = |end: &Instant| live.iter().filter(|grant| grant.deadline >= *end).count();
    let ends = DEADLINES.map(at).into_iter().rev();
    ends.filter(|end| is_majority(replicas, lasting(end))).max()
}

fn replaced(answers: &[Answer], from: Answer, to: Answer) -> Vec<Answer> {
    let replace = |answer: &Answer| if *answer == from { to } else { *answer };
    answers.iter().map(replace).collect()
}

/// Every list of answers of `ranks` ranks, `kinds` at each.
fn every(ranks: usize, kinds: &[Answer], mut check: impl FnMut(&[Answer])) {
    for number in 0..kinds.len().pow(u32::try_from(ranks).expect("at most 5")) {
        let place = |rank: usize| kinds.len().pow(u32::try_from(rank).expect("at most 5"));
        let answers: Vec<Answer> = (0..ranks)
            .map(|rank| kinds[number / place(rank) % kinds.len()])
            .collect();
        check(&answers);
    }
}

fn grants() -> Vec<Answer> {
    let all = TOKENS
        .iter()
        .flat_map(|token| DEADLINES.iter().map(|until| grant(*token, *until)));
    all.collect()
}

fn check_all(check: impl Fn(Replicas, &[Answer])) {
    let mut kinds = grants();
    kinds.extend([Answer::Pending, Answer::NotGranted]);
    for replicas in [Replicas::One, Replicas::Three, Replicas::Five] {
        every(replicas.get() as usize, &kinds, |answers| {
            check(replicas, answers)
        });
    }
}

#[test]
fn held_iff_a_majority_granted_at_most_and_a_majority_has_at_least_the_token() {
    check_all(|replicas, answers| {
        let token = match decide(replicas, answers) {
            Vote::Held { token, .. } => Some(token),
            _ => None,
        };
        assert_eq!(token, held_token(replicas, answers), "{answers:?}");
    });
}

#[test]
fn a_quorum_lasts_as_long_as_a_majority_of_its_live_records() {
    check_all(|replicas, answers| {
        if let Vote::Held { deadline, .. } = decide(replicas, answers) {
            assert_eq!(Some(deadline), lasts(replicas, answers), "{answers:?}");
            assert!(at(NOW) < deadline, "{answers:?}");
        }
    });
}

#[test]
fn a_confirm_by_the_asked_ranks_makes_the_holder() {
    check_all(|replicas, answers| {
        let differ =
            is_majority(replicas, live(answers).len()) && held_token(replicas, answers).is_none();
        let Vote::Confirm { token, ranks } = decide(replicas, answers) else {
            assert!(!differ, "{answers:?}");
            return;
        };
        assert!(differ, "{answers:?}");
        let mut confirmed = answers.to_vec();
        for rank in ranks {
            let Answer::Granted(record) = &mut confirmed[rank] else {
                panic!("rank {rank} has no record: {answers:?}");
            };
            assert!(
                at(NOW) < record.deadline && record.token < token,
                "{answers:?}"
            );
            record.token = token;
        }
        let held = decide(replicas, &confirmed);
        assert!(
            matches!(held, Vote::Held { token: now, .. } if now == token),
            "{answers:?}: {held:?}"
        );
    });
}

#[test]
fn an_attempt_waits_iff_the_missing_answers_can_make_a_majority() {
    check_all(|replicas, answers| {
        if is_majority(replicas, live(answers).len()) {
            return;
        }
        let best = replaced(answers, Answer::Pending, grant(1, 3));
        let hope = is_majority(replicas, live(&best).len());
        let expected = if hope { Vote::Wait } else { Vote::GiveUp };
        assert_eq!(decide(replicas, answers), expected, "{answers:?}");
    });
}

#[test]
fn no_confirmation_is_needed_iff_some_missing_answers_make_the_holder() {
    check_all(|replicas, answers| {
        if live(answers).is_empty() {
            return;
        }
        let holds = |number| {
            let best = replaced(answers, Answer::Pending, grant(number, 3));
            held_token(replicas, &best).is_some()
        };
        let may = may_hold_unconfirmed(replicas, answers, at(NOW));
        assert_eq!(may, TOKENS.into_iter().any(holds), "{answers:?}");
    });
}

/// The next holder's tokens are greater at each shard than the records it replaces. A rank without a
/// record of the first holder may grant any token.
#[test]
fn tokens_rise_from_holder_to_holder() {
    let replicas = Replicas::Three;
    let mut kinds = TOKENS.map(|token| grant(token, 3)).to_vec();
    kinds.push(Answer::NotGranted);
    let mut successions = 0;
    every(3, &kinds, |first| {
        let Vote::Held { token: earlier, .. } = decide(replicas, first) else {
            return;
        };
        every(3, &kinds, |second| {
            let rises = first.iter().zip(second).all(|pair| match pair {
                (Answer::Granted(first), Answer::Granted(second)) => second.token > first.token,
                _ => true,
            });
            if let (true, Vote::Held { token, .. }) = (rises, decide(replicas, second)) {
                successions += 1;
                assert!(token > earlier, "{first:?}, then {second:?}");
            }
        });
    });
    assert!(successions > 0);
}

#[test]
fn the_middle_of_three_tokens_needs_no_confirm() {
    let held = Vote::Held {
        token: Token::from_number(2),
        deadline: at(3),
    };
    let answers = [grant(3, 2), grant(1, 3), grant(2, 3)];
    assert_eq!(decide(Replicas::Three, &answers), held);
}

#[test]
fn a_guard_outlives_the_records_of_a_minority() {
    let answers = [grant(2, NOW), grant(2, 3), grant(2, 2)];
    assert_eq!(deadline(Replicas::Three, &answers), Some(at(2)));
    let minority = [grant(2, 3), Answer::NotGranted, Answer::NotGranted];
    assert_eq!(deadline(Replicas::Three, &minority), None);
}

#[test]
fn a_late_confirmation_revives_no_lease() {
    let view = Arc::new(ViewLease::new(&Constants::default()));
    let key = LockKey::new(&Namespace::default(), b"key", SlotCount::default()).unwrap();
    let nonce = Nonce {
        client: ClientId(1),
        sequence: 0,
    };
    let terms = Terms {
        label: Label::new("test"),
        mode: LockMode::Exclusive,
        preferred: false,
        share: 0,
        tokens: 1,
        lease: Duration::from_secs(1),
        hold_for: None,
    };
    let lease = LeaseState::new(key, nonce, terms, 1, &view);
    let (token, now) = (Token::default(), Instant::from_nanos(1));
    assert!(lease.granted(token, now, now, None));
    lease.end();
    assert!(!lease.granted(token, now, now, None));
    assert!(lease.is_over());
}
