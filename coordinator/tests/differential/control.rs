//! Operations on both shards as a whole.

use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Incarnation, MapVersion},
    shard::{Arm, ArmAnswer, Counters, Grace, MarkQuiet, Mode, SlotState, SlotStates},
};

use super::{
    pair::{Checked, Pair, gone, lock_key, slot_count},
    steps::{Arming, When},
};

impl Pair<'_> {
    /// Arms both, or finds them armed.
    pub(crate) async fn arm(&mut self, arming: &Arming) -> Checked {
        let arm = self.arming(arming);
        let [redis, memory] = &mut self.movers;
        let expected = redis.arm(&arm).await;
        let armed_now = matches!(
            expected,
            Ok(ArmAnswer {
                armed_now: true,
                ..
            })
        );
        let found = memory.arm(&arm).await;
        let Some((expected, found)) = self.both(expected, found, &arm).await? else {
            return Ok(());
        };
        self.tally
            .count(if armed_now { "armed" } else { "armed before" });
        if armed_now {
            self.away = arming.away.map(|_| gone()).into_iter().collect();
        }
        let same = expected.armed_now == found.armed_now && expected.grace_left == found.grace_left;
        self.check(same, &arm, &expected, &found)
    }

    fn arming(&mut self, arming: &Arming) -> Arm {
        self.last_epoch += 1;
        let epoch = Epoch(if arming.late { 1 } else { self.last_epoch });
        let away = arming.away.map(|(when, mode)| {
            let epoch = match when {
                When::New => self.epoch(when),
                _ => Epoch(1),
            };
            SlotState { mode, epoch }
        });
        let open = SlotState {
            mode: Mode::Open,
            epoch,
        };
        let state = |slot| away.filter(|_| slot == gone()).unwrap_or(open);
        Arm {
            topology: self.redis.topology(),
            incarnation: self.incarnation(arming.incarnation),
            epoch,
            token_epoch: epoch,
            declared: MapVersion::UNKNOWN,
            slots: SlotStates::new(slot_count().iter(), state),
            grace: arming.grace.map_or(Grace::None, Grace::Full),
            counters: Counters::Kept,
            copy: (self.last_epoch, "record".into()),
        }
    }

    /// Marks both shards quiet, or neither.
    pub(crate) async fn mark_quiet(&mut self, incarnation: u64, map: u64, all: bool) -> Checked {
        let ours = |slot: &_| all || !self.away.contains(slot);
        let slots = slot_count().iter().filter(ours).collect();
        let incarnation = self.incarnation(incarnation);
        let mark = MarkQuiet {
            incarnation,
            copy: (map, format!("record {map}")),
            map: MapVersion(map),
            slots,
        };
        let [redis, memory] = &mut self.movers;
        let expected = redis.mark_quiet(&mark).await;
        let found = memory.mark_quiet(&mark).await;
        let Some((expected, found)) = self.both(expected, found, &mark).await? else {
            return Ok(());
        };
        self.tally.count(if expected {
            "quiet marks"
        } else {
            "failed quiet marks"
        });
        self.check(expected == found, &mark, &expected, &found)
    }

    /// Raises both.
    pub(crate) async fn raise(&mut self, incarnation: u64, epoch: u64) -> Checked {
        let (incarnation, epoch) = (self.incarnation(incarnation), Epoch(epoch));
        self.last_epoch = self.last_epoch.max(epoch.0);
        let [redis, memory] = &mut self.movers;
        let expected = redis.raise(incarnation, epoch).await;
        let found = memory.raise(incarnation, epoch).await;
        self.tally.count("raises");
        self.both(expected, found, &(incarnation, epoch))
            .await
            .map(drop)
    }

    /// Looks at a key of both.
    pub(crate) async fn inspect(&mut self, key: usize) -> Checked {
        let key = lock_key(key);
        let [redis, memory] = &mut self.movers;
        let expected = redis.inspect(&key).await;
        let found = memory.inspect(&key).await;
        let Some((expected, found)) = self.both(expected, found, &key).await? else {
            return Ok(());
        };
        self.tally.count(if expected.holder.is_some() {
            "found"
        } else {
            "not found"
        });
        self.check(expected == found, &key, &expected, &found)
    }

    /// One below the usual, the usual, or one above, which is the usual from then on.
    pub(crate) fn incarnation(&mut self, offset: u64) -> Incarnation {
        let number = self.incarnation + offset - 1;
        self.incarnation = self.incarnation.max(number);
        Incarnation {
            number,
            engine: ClientId(u128::from(number)),
        }
    }
}
