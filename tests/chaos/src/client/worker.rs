//! Takes a lock, works for a while, gives it back; again and again.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use rand::{RngExt, rngs::StdRng};
use ringfence_coordinator::shard::LockMode;
use tokio::time::{Instant, sleep, timeout};

use super::{Asked, Holder};
use crate::{resource::Resource, sets, shares};

/// Between two writes in one.
pub(super) const WRITE_EVERY: Duration = Duration::from_millis(300);
/// How long a write is under way, at most: a process may be stopped meanwhile.
pub(super) const WRITE_TAKES: Duration = Duration::from_millis(100);
/// After a refusal.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// How long those wait who do.
pub(super) const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(6)];
/// Of so many keys in a row, the first is hot.
const KEYS_TO_A_HOT_ONE: usize = 4;

/// Works until dropped. The process asks for the key in place `own` more often than others do.
pub(super) async fn run(
    holder: Holder,
    mut resource: Resource,
    section_max: Duration,
    keys: &[String],
    own: usize,
    next: &AtomicUsize,
    mut random: StdRng,
) -> io::Result<()> {
    loop {
        let key = pick(keys, own, next, &mut random);
        let wait = random
            .random_bool(0.8)
            .then(|| WAITS[random.random_range(0..WAITS.len())]);
        let mode = shares::choose(key, holder.process, &mut random);
        let hold = hold(&holder, section_max, &mut random);
        let asking = holder.take_for(key, mode, wait, hold);
        let asked = if random.random_bool(0.1) {
            // Dropped amid whatever it is doing: what it may be granted is given back unseen.
            let abandoned = timeout(part(PAUSE, &mut random), asking).await;
            abandoned.ok().flatten()
        } else {
            asking.await
        };
        match asked {
            Some(asked) => section(&holder, asked, section_max, &mut resource, &mut random).await?,
            None => sleep(part(PAUSE, &mut random)).await,
        }
    }
}

/// How long the lock is held, at most: some holds are fixed, and often too short. Not over the service, where no lock is lost.
fn hold(holder: &Holder, section_max: Duration, random: &mut StdRng) -> Option<Duration> {
    let is_fixed = random.random_bool(0.15) && !holder.tap.over_the_service;
    let hold = section_max / 10 + part(section_max * 2, random);
    // Histories have whole milliseconds.
    is_fixed.then(|| Duration::from_millis(hold.as_millis() as u64))
}

/// A key: some are hot, so that there is a queue; and the process' own has a line, while no other process
/// waits for it. The `next` one comes by itself: a few processes soon ask for every key. Those of sets, which come last, are
/// asked for in sets as often.
fn pick<'a>(keys: &'a [String], own: usize, next: &AtomicUsize, random: &mut StdRng) -> &'a String {
    let any = random.random_range(0..keys.len());
    let place = match random.random_range(0..5) {
        0 | 1 => next.fetch_add(1, Relaxed) % alone(keys),
        2 => any - any % KEYS_TO_A_HOT_ONE,
        _ => own % keys.len(),
    };
    &keys[place]
}

/// How many of the keys are not asked for in sets. They come first.
pub(super) fn alone(keys: &[String]) -> usize {
    keys.iter().take_while(|key| !sets::has(key)).count()
}

/// Half of the sections are short, so that locks change hands often; the others up to `section_max`, so
/// that they are renewed.
async fn section(
    holder: &Holder,
    asked: Asked,
    section_max: Duration,
    resource: &mut Resource,
    random: &mut StdRng,
) -> io::Result<()> {
    let is_of_sets = asked.of_grant.key.as_deref().is_some_and(sets::has);
    let section_max = match is_of_sets {
        true => section_max.min(sets::SECTION),
        false => section_max,
    };
    let mut held = Held::of(holder, asked);
    let short = random.random_bool(0.5);
    let length = part(section_max / if short { 20 } else { 1 }, random);
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
        if held.asked().of_grant.share == LockMode::Write.into() && random.random_bool(0.3) {
            holder.downgrade(held.asked_mut());
        }
        tokio::select! {
            () = held.asked().guard.lost() => {}
            () = sleep(left.min(part(WRITE_EVERY, random))) => {}
        }
    }
    let asked = held.take();
    holder.lost(&asked);
    Ok(())
}

/// A lock in use. Its drop is recorded, also at the end of the process.
pub(super) struct Held<'a> {
    holder: &'a Holder,
    asked: Option<Asked>,
}

impl<'a> Held<'a> {
    pub(super) fn of(holder: &'a Holder, asked: Asked) -> Self {
        let asked = Some(asked);
        Self { holder, asked }
    }

    pub(super) fn asked(&self) -> &Asked {
        self.asked.as_ref().expect("there until it is taken")
    }

    fn asked_mut(&mut self) -> &mut Asked {
        self.asked.as_mut().expect("there until it is taken")
    }

    pub(super) fn take(mut self) -> Asked {
        self.asked.take().expect("there until it is taken")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.holder.drop_guard(asked);
        }
    }
}

pub(super) fn part(of: Duration, random: &mut StdRng) -> Duration {
    of.mul_f64(random.random())
}
