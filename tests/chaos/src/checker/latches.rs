//! A latch has as many counts left as distinct requests did not count it down: it never opens early, and a repeat counts once.

use super::{Rule, Violation};
use crate::{counters::audit_latches, history::History};

/// Nothing happens to shards where latches are used.
pub(super) fn check(history: &History) -> Vec<Violation> {
    let wrong = audit_latches(&history.latches, true).into_iter();
    wrong
        .map(|violation| Violation::new(Rule::Latch, "", violation.told, []))
        .collect()
}
