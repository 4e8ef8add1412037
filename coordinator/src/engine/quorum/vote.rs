//! The decision of a client, from the answers of the ranks. Rules: docs/protocol.md, "Replicated namespaces".

use ringfence_ring::Replicas;

use crate::{
    clock::Instant,
    failpoint::{Rule, is_off},
    ids::Token,
};

/// The latest answer of one rank to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// None yet, and one may come.
    Pending,
    /// The rank has this client's record.
    Granted(Grant),
    /// Another client holds the key there, the rank refused, or the outcome is unknown and no answer
    /// is waited for any more.
    NotGranted,
}

/// This client's record at one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// As granted, or as confirmed since then.
    pub(super) token: Token,
    /// The lease, counted from the send of the request that was answered.
    pub(super) deadline: Instant,
}

/// What follows from the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    /// The client holds the lock.
    Held {
        /// Greater than the tokens of all earlier holders.
        token: Token,
        /// Until when a majority of the records certainly lasts.
        deadline: Instant,
    },
    /// A majority granted, with tokens that differ. The lock is held once enough of these ranks confirmed.
    Confirm {
        /// The token to confirm.
        token: Token,
        /// The ranks with a lower one, by index.
        ranks: Vec<usize>,
    },
    /// The answers that are missing decide.
    Wait,
    /// No majority can come about: release at every rank, where the outcome is unknown, too.
    GiveUp,
}

/// Decides at `now`. `answers` has one entry per rank, in the order of the ranks.
pub(super) fn vote(replicas: Replicas, answers: &[Answer], now: Instant) -> Vote {
    let majority = majority(replicas);
    let live = || granted(answers).filter(|(_, grant)| now < grant.deadline);
    let Some(deadline) = deadline(replicas, answers).filter(|deadline| now < *deadline) else {
        let pending = answers.iter().filter(|answer| **answer == Answer::Pending);
        let possible = live().count() + pending.count();
        return if possible < majority {
            Vote::GiveUp
        } else {
            Vote::Wait
        };
    };
    // The least token that the records of a majority do not exceed. If any token will do, this one will.
    let mut tokens: Vec<Token> = live().map(|(_, grant)| grant.token).collect();
    tokens.sort_unstable();
    let token = tokens[majority - 1];
    let lower = live().filter(|(_, grant)| grant.token < token);
    let ranks: Vec<usize> = lower.map(|(rank, _)| rank).collect();
    if tokens.len() - ranks.len() < majority && !is_off(Rule::Confirm) {
        return Vote::Confirm { token, ranks };
    }
    Vote::Held { token, deadline }
}

/// Until when a guard lives on these records: the deadline, best first, that completes a majority. It
/// may have passed. None: no majority ever granted.
pub(super) fn deadline(replicas: Replicas, answers: &[Answer]) -> Option<Instant> {
    let mut deadlines: Vec<Instant> = granted(answers).map(|(_, grant)| grant.deadline).collect();
    deadlines.sort_unstable_by(|one, other| other.cmp(one));
    deadlines.get(majority(replicas) - 1).copied()
}

/// Whether the missing answers may make the client the holder, without a confirmation: if all of them have the token of
/// one of the records.
pub(super) fn may_hold_unconfirmed(replicas: Replicas, answers: &[Answer], now: Instant) -> bool {
    let live = || granted(answers).filter(|(_, grant)| now < grant.deadline);
    let pending = answers.iter().filter(|answer| **answer == Answer::Pending);
    let (pending, majority) = (pending.count(), majority(replicas));
    let at_most = |token| live().filter(|(_, grant)| grant.token <= token).count();
    let at_least = |token| live().filter(|(_, grant)| grant.token >= token).count();
    live()
        .any(|(_, Grant { token, .. })| at_most(*token).min(at_least(*token)) + pending >= majority)
}

fn granted(answers: &[Answer]) -> impl Iterator<Item = (usize, &Grant)> {
    answers
        .iter()
        .enumerate()
        .filter_map(|(rank, answer)| match answer {
            Answer::Granted(grant) => Some((rank, grant)),
            Answer::Pending | Answer::NotGranted => None,
        })
}

/// How many ranks are the lock.
pub(super) fn majority(replicas: Replicas) -> usize {
    replicas.minority() as usize + 1
}
