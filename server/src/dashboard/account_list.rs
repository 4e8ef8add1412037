//! Lists the accounts of a namespace.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Query, State},
};
use ringfence_client::{
    ListedAccount,
    counter::{Inspection, segment::SegmentView},
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::{
    Dashboard,
    gate::{Refused, Visitor},
    locks::FailedShard,
};
use crate::{access::Call, errors, fields::namespace};

/// Accounts in a list.
const LISTED_MAX: usize = 200;

/// A walk ends after this many accounts, or this time, and says so.
const WALKED_MAX: usize = 20_000;
const WALK_FOR: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    /// Empty: `default`.
    #[serde(default)]
    namespace: String,
    /// The beginning of their names.
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    condition: Condition,
}

/// Which accounts are listed. Those that cannot be read always are.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Condition {
    #[default]
    All,
    InDoubt,
    Lost,
    Unfinished,
    Held,
    Hot,
}

#[derive(Default, Serialize)]
pub(super) struct Listed {
    accounts: Vec<Row>,
    /// Accounts that match.
    matched: usize,
    /// Not all accounts were looked at, so more may match.
    cut: bool,
    /// Shards that did not list their accounts.
    failed: Vec<FailedShard>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// Amounts are texts: scripts round such large numbers.
    available: String,
    held: String,
    segments: usize,
    /// What is to be done about it. Empty: nothing.
    state: String,
}

/// The accounts of a namespace.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Visitor(caller): Visitor,
    Query(Filter {
        namespace: of,
        prefix,
        condition,
    }): Query<Filter>,
) -> Result<Json<Listed>, Refused> {
    let of = namespace(&of);
    caller.admit(Call::List(Some(of)))?;
    let counters = dashboard.client.counters_of(of);
    let mut pages = counters
        .map_err(|error| errors::name(&error))?
        .list(&prefix);
    // One walk at a time: it reads every account.
    let _walks = dashboard.walks.lock().await;
    let deadline = Instant::now() + WALK_FOR;
    let (mut listed, mut walked) = (Listed::default(), 0);
    loop {
        let Ok(page) = timeout_at(deadline, pages.next()).await else {
            listed.cut = true;
            break;
        };
        let Some(page) = page else { break };
        match page.accounts {
            Ok(accounts) => {
                walked += accounts.len();
                let wanted = accounts.into_iter().filter(|one| condition.has(one));
                listed.add(wanted);
            }
            Err(error) => listed.failed.push(FailedShard::new(&page.shard, &error)),
        }
        if walked >= WALKED_MAX {
            listed.cut = true;
            break;
        }
    }
    listed
        .accounts
        .sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Json(listed))
}

impl Condition {
    fn has(self, listed: &ListedAccount) -> bool {
        let Ok(found) = &listed.found else {
            return true;
        };
        match self {
            Self::All => true,
            Self::InDoubt => found.is_in_doubt(),
            Self::Lost => !found.lost.0.is_empty(),
            Self::Unfinished => found.has_unfinished(),
            Self::Held => found.has_held(),
            Self::Hot => found.is_hot(),
        }
    }
}

impl Listed {
    fn add(&mut self, accounts: impl Iterator<Item = ListedAccount>) {
        for account in accounts {
            self.matched += 1;
            if self.accounts.len() < LISTED_MAX {
                self.accounts.push(Row::of(&account));
            }
        }
    }
}

impl Row {
    fn of(listed: &ListedAccount) -> Self {
        let name = listed.account.to_string();
        match &listed.found {
            Ok(found) => Self {
                name,
                available: sum(found, |view| view.value).to_string(),
                held: sum(found, |view| view.held).to_string(),
                segments: found.views.len(),
                state: state(found),
            },
            Err(error) => Self {
                name,
                available: String::from("?"),
                held: String::from("?"),
                segments: 0,
                state: format!("not read: {error}"),
            },
        }
    }
}

/// The sum over the segments.
pub(super) fn sum(found: &Inspection, amount: fn(&SegmentView) -> i64) -> i128 {
    let views = found.views.values();
    views.map(|view| i128::from(amount(view))).sum()
}

fn state(found: &Inspection) -> String {
    let doubtful = found.views.values().filter(|view| view.doubtful).count();
    let unfinished: usize = found.views.values().map(|view| view.unfinished).sum();
    let counted = [
        (doubtful, "segments in doubt"),
        (found.lost.0.len(), "segments lost"),
        (unfinished, "transfers unfinished"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    let counted = counted.map(|(count, what)| format!("{count} {what}"));
    let hot = found.is_hot().then(|| String::from("hot"));
    counted.chain(hot).collect::<Vec<_>>().join(", ")
}
