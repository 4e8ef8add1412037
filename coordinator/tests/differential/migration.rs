//! Slots that move, at both.

use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    name::LockKey,
    shard::{ControlLink, Listing, Mode, Scan, ScanPage, ShardError, Step, StillHeld},
};
use ringfence_ring::Slot;

use super::{
    pair::{Checked, Pair, lock_key, slot_count},
    steps::{MOVING, When},
};

impl Pair<'_> {
    /// The epoch of a move; a new one is the latest from now on.
    pub(crate) fn epoch(&mut self, when: When) -> Epoch {
        if matches!(when, When::New) {
            self.last_epoch += 1;
            self.moved = self.last_epoch;
        }
        self.known(when)
    }

    /// The epoch of a move that has begun.
    pub(crate) fn known(&self, when: When) -> Epoch {
        match when {
            When::New | When::Latest => Epoch(self.moved),
            When::Earlier => Epoch(self.moved - 1),
        }
    }

    /// The change that a mover makes.
    pub(crate) fn change(
        &mut self,
        incarnation: u64,
        (when, mode): (When, Mode),
        slots: Vec<Slot>,
        above: Option<(u64, u64)>,
    ) -> Step {
        let epoch = self.epoch(when);
        let above = above.map(|(epoch, counter)| Token::new(Epoch(epoch), counter));
        Step {
            incarnation: self.incarnation(incarnation),
            map: MapVersion(1 + epoch.0 % 2),
            copy: (epoch.0, format!("record {epoch}")),
            epoch,
            mode,
            slots,
            above: above.unwrap_or_default(),
        }
    }

    /// Makes a change at both.
    pub(crate) async fn make(&mut self, step: &Step) -> Checked {
        let [redis, memory] = &mut self.movers;
        let expected = redis.step(step).await;
        let found = memory.step(step).await;
        let Some((expected, found)) = self.both(expected, found, step).await? else {
            return Ok(());
        };
        for slot in &step.slots {
            if expected.refused.contains(slot) {
                self.tally.count("refused steps");
                continue;
            }
            self.tally.count("steps");
            self.away.retain(|away| away != slot);
            if step.mode != Mode::Open {
                self.away.push(*slot);
            }
        }
        self.check(expected == found, step, &expected, &found)
    }

    /// Scans both, to the end.
    pub(crate) async fn scan(&mut self, when: When) -> Checked {
        let epoch = self.known(when);
        let [redis, memory] = &mut self.movers;
        let expected = scanned(redis.as_mut(), epoch).await;
        let found = scanned(memory.as_mut(), epoch).await;
        let Some((expected, found)) = self.both(expected, found, &epoch).await? else {
            return Ok(());
        };
        for _ in &expected.held {
            self.tally.count("left, held");
        }
        let same = expected.grace_left == found.grace_left && expected.held == found.held;
        self.check(same, &epoch, &expected, &found)
    }

    /// Lets both take a list.
    pub(crate) async fn list(&mut self, when: When, held: &[usize], complete: &[usize]) -> Checked {
        let listing = Listing {
            epoch: self.known(when),
            held: held.iter().map(|key| lock_key(*key)).collect(),
            complete: complete.iter().map(|key| lock_key(*key).slot()).collect(),
        };
        let [redis, memory] = &mut self.movers;
        let expected = redis.take_list(&listing).await;
        let found = memory.take_list(&listing).await;
        let Some((mut expected, mut found)) = self.both(expected, found, &listing).await? else {
            return Ok(());
        };
        expected.sort();
        found.sort();
        self.check(expected == found, &listing, &expected, &found)?;
        let is_taken = |key: &&LockKey| !expected.contains(&key.slot());
        for _ in listing.held.iter().filter(is_taken) {
            self.tally.count("listed");
        }
        Ok(())
    }

    /// Asks both for the keys that are still held.
    pub(crate) async fn still_held(&mut self, when: When) -> Checked {
        let still = StillHeld {
            epoch: self.known(when),
            keys: MOVING.map(lock_key).to_vec(),
            slots: slot_count().iter().collect(),
        };
        let [redis, memory] = &mut self.movers;
        let expected = redis.still_held(&still).await;
        let found = memory.still_held(&still).await;
        let Some((expected, found)) = self.both(expected, found, &still).await? else {
            return Ok(());
        };
        for _ in &expected.keys {
            self.tally.count("still held");
        }
        self.check(expected == found, &still, &expected, &found)
    }
}

/// All pages as one, in the order of the keys.
async fn scanned(link: &mut dyn ControlLink, epoch: Epoch) -> Result<ScanPage, ShardError> {
    let mut all: Option<ScanPage> = None;
    let mut after = None;
    loop {
        let page = link.scan(&Scan { epoch, after }).await?;
        after = page.next.clone();
        let all = all.get_or_insert_with(|| ScanPage {
            held: Vec::new(),
            ..page.clone()
        });
        all.held.extend(page.held);
        if after.is_none() {
            break;
        }
    }
    let mut all = all.expect("there was a page");
    all.held.sort();
    all.held.dedup();
    Ok(all)
}
