//! Stands for the election, leads for a while, resigns; again and again.

use std::{io, time::Duration};

use rand::{RngExt, rngs::StdRng};
use ringfence_coordinator::shard::LockMode;
use tokio::time::{Instant, sleep};

use super::{
    Asked, Holder,
    worker::{Held, PAUSE, WRITE_EVERY, WRITE_TAKES, part},
};
use crate::{election, history::Answer, resource::Resource};

/// How long a candidate waits, if it does.
const CAMPAIGN: Duration = Duration::from_secs(6);
/// Between two notices of the same danger.
const NOTICE_EVERY: Duration = Duration::from_millis(50);
/// So many leases a leader leads, at most.
const LEASES: u32 = 4;

/// Works until dropped.
pub(super) async fn run(
    holder: Holder,
    mut resource: Resource,
    mut random: StdRng,
) -> io::Result<()> {
    loop {
        let wait = random.random_bool(0.8).then_some(CAMPAIGN);
        let campaign = holder.take(election::KEY, LockMode::Exclusive, wait);
        match campaign.await {
            Some(asked) => {
                let length = part(holder.lease * LEASES, &mut random);
                lead(&holder, asked, length, &mut resource, &mut random).await?;
            }
            None => sleep(part(PAUSE, &mut random)).await,
        }
    }
}

/// Leads for `length`, and records what it is told of the end that it does not choose.
async fn lead(
    holder: &Holder,
    asked: Asked,
    length: Duration,
    resource: &mut Resource,
    random: &mut StdRng,
) -> io::Result<()> {
    let held = Held::of(holder, asked);
    let until = Instant::now() + length;
    while holder
        .write(held.asked(), resource, part(WRITE_TAKES, random))
        .await?
    {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if random.random_bool(0.8) {
                holder.release(held.take()).await;
            }
            return Ok(());
        }
        let guard = &held.asked().guard;
        tokio::select! {
            biased;
            () = guard.lost() => {}
            _ = guard.danger() => {
                holder.notice(&held.asked().of_grant, Answer::Danger);
                sleep(NOTICE_EVERY).await;
            }
            () = sleep(left.min(part(WRITE_EVERY, random))) => {}
        }
    }
    holder.lost(&held.take());
    Ok(())
}
