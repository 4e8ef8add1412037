//! After all faults are removed, every request without an answer is repeated, under its own id.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::Path,
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use ringfence_client::counter::Swept;
use tokio::time::{Instant, sleep};

use super::super::{Answer, Attempt, Call, Desk, Order, latches, read};

/// How long all of it may take.
const FINISHED_WITHIN: Duration = Duration::from_secs(120);
/// How long the balances at the end may take.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// Calls at a time.
const AT_A_TIME: usize = 64;
/// Before what has no answer yet is asked again.
const AGAIN: Duration = Duration::from_millis(100);

/// Has every order in the logs in `dir` answered, every reservation ended, every transfer finished; and looks at
/// every account, and those of `visitors`. What cannot be finished is for the audit to tell.
///
/// # Errors
///
/// A log cannot be read.
pub(super) async fn finish(
    desk: &Desk,
    dir: &Path,
    visitors: impl Iterator<Item = usize>,
) -> io::Result<()> {
    let until = Instant::now() + FINISHED_WITHIN;
    let attempts = read(dir)?;
    let looks = latches::looks(&attempts);
    let open = open(attempts);
    let calls = stream::iter(open).map(async |call| persistently(desk, call, until).await);
    calls.buffer_unordered(AT_A_TIME).collect::<Vec<()>>().await;
    while let Some(left) = left_to_sweep(desk).await {
        if Instant::now() > until {
            eprintln!("sweeps go on without an end: {left}");
            break;
        }
        sleep(AGAIN).await;
    }
    let until = Instant::now() + READ_WITHIN;
    for look in looks {
        persistently(desk, look, until).await;
    }
    for account in (0..desk.accounts.len()).chain(visitors) {
        persistently(desk, Call::Exact(account), until).await;
    }
    for account in 0..desk.accounts.len() {
        persistently(desk, Call::History(account), until).await;
    }
    Ok(())
}

/// Calls that have no answer yet, and the ends of reservations that have none.
fn open(attempts: Vec<Attempt>) -> Vec<Call> {
    let (mut answered, mut asked, mut held) = (HashSet::new(), HashMap::new(), HashMap::new());
    let key = |order: &Order| (order.account, order.name.clone());
    for attempt in attempts {
        let (Call::Change(order) | Call::Confirm(order) | Call::Cancel(order)) = attempt.call
        else {
            continue;
        };
        let key = key(&order);
        match attempt.answered.map(|(_, answer)| answer) {
            None | Some(Answer::Nothing(_) | Answer::Unknown(_) | Answer::Absent) => {
                asked.insert(key, order);
            }
            Some(Answer::Held) => {
                answered.insert(key.clone());
                held.insert(key, order);
            }
            Some(_) => {
                answered.insert(key);
            }
        }
    }
    asked.retain(|key, _| !answered.contains(key));
    let changes = asked.into_values().flat_map(|order| {
        let end = Call::Cancel(order.clone());
        let is_reservation = order.is_reservation();
        [Some(Call::Change(order)), is_reservation.then_some(end)]
    });
    let ends = held.into_values().map(Call::Cancel);
    changes.flatten().chain(ends).collect()
}

async fn persistently(desk: &Desk, call: Call, until: Instant) {
    while Instant::now() < until {
        match desk.call(&call).await {
            Answer::Nothing(_) | Answer::Unknown(_) => sleep(AGAIN).await,
            _ => return,
        }
    }
}

/// What a sweep did, or could not do; none if there was nothing to do.
async fn left_to_sweep(desk: &Desk) -> Option<String> {
    let all = match desk.sweep().await {
        Ok(all) => all,
        Err(error) => return Some(error.to_string()),
    };
    let is_idle = |swept: &Swept| {
        swept.errors.is_empty() && swept.delivered + swept.unpinned + swept.expired == 0
    };
    let left: Vec<_> = all.iter().filter(|swept| !is_idle(swept)).collect();
    (!left.is_empty()).then(|| format!("{left:?}"))
}
