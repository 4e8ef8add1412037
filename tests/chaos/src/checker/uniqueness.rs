//! No two grants of one key have the same token.

use std::collections::HashMap;

use super::{Grant, Grants, Rule, Violation};

pub(super) fn check(grants: &Grants<'_>) -> Vec<Violation> {
    let mut seen: HashMap<_, &Grant<'_>> = HashMap::new();
    let mut violations = Vec::new();
    for grant in grants.all() {
        if let Some(first) = seen.insert((grant.key, grant.token), grant) {
            let what = format!(
                "token {} was granted to process {}, and again to process {}",
                grant.token, first.acquired.process, grant.acquired.process
            );
            let events = [first.acquired, grant.acquired];
            violations.push(Violation::new(Rule::Uniqueness, grant.key, what, events));
        }
    }
    violations
}
