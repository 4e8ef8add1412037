//! Requests about a whole shard, apart from its locks and counters: rules, each applied in one step.

use std::{future::Future, time::Duration};

use ringfence_ring::Slot;
use serde::{Deserialize, Serialize};

use super::{
    Admit, Arm, ArmAnswer, Armed, Arrive, AskArmed, AskGroups, Control, ControlReply, CopyIn,
    CopyOut, Counters, Declare, DropGroups, ForceOpen, ForcedOpen, Grace, Inspect, List, Listing,
    MarkQuiet, Mode, Raise, Scan, ShardError, SlotState, Step, Stepped, StillHeld,
    rules::{self, Head, Slots},
};
use crate::{clock::Moment, ids::Token};

/// What a shard keeps apart from locks and counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whole {
    pub(crate) head: Head,
    /// The slots, as far as they were read.
    pub(crate) slots: Slots,
    pub(crate) affiliation: Affiliation,
    /// By how much the server's clock may have been late at the last read.
    pub(crate) slack_ms: u64,
    /// When that was answered, on a clock that other processes read.
    pub(crate) moment: Option<Moment>,
    /// For how long the shard has had this life and forgotten nothing; `None` if that is not known.
    pub(crate) up_ms: Option<u64>,
    /// What a change means for counters. A shard that keeps none ignores it.
    pub(crate) counters: OfCounters,
    /// A change is refused by a server without memory for new data.
    pub(crate) needs_memory: bool,
}

/// The topology that a shard belongs to. It outlasts lives, as the server's other data does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Affiliation {
    /// `topology-id home-address`.
    pub(crate) pointer: Option<String>,
    /// The record, if the shard is its home; `n version …` in the first line.
    pub(crate) record: Option<String>,
}

/// What a change of the whole shard means for its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum OfCounters {
    /// Nothing.
    #[default]
    Unchanged,
    /// Those that were ever made in the slots that a life is armed with.
    Armed(Counters),
    /// What was put aside for these slots goes: they leave.
    Leaving(Vec<Slot>),
    /// Some may be missing.
    Incomplete,
}

/// What a rule needs, beside the head.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Needs<'a> {
    /// No more.
    Head,
    /// The affiliation, and the states of these slots.
    Topology(&'a [Slot]),
    /// The affiliation, all slots, and for how long the life has been up.
    All,
    /// The states of these slots, and the imports of those that arrive.
    States(&'a [Slot]),
    /// Their states, and their imports, whether they arrive or not.
    Moves(&'a [Slot]),
}

/// A connection over which the whole shard is changed.
pub(crate) trait ChangeWhole: Send {
    /// Applies `rule`, with the time, in one step. It is applied again if something has changed in between. A rule that
    /// refuses may have raised the fence, and kept the copy.
    fn change<T: Send>(
        &mut self,
        needs: Needs<'_>,
        rule: impl Fn(&mut Whole, u64) -> Result<T, ShardError> + Send + Sync,
    ) -> impl Future<Output = Result<T, ShardError>> + Send;

    /// The last token, now or a little earlier: after the last change.
    fn last_token(&mut self) -> impl Future<Output = Result<Token, ShardError>> + Send;
}

impl Whole {
    /// Whether all of `slots` are shut; so they are in a life that is not armed.
    pub(crate) fn are_shut(&self, slots: &[Slot]) -> bool {
        let is_shut = |slot: &Slot| self.slots.get(*slot).mode == Mode::Shut;
        self.head.armed.is_none() || slots.iter().all(is_shut)
    }
}

impl Affiliation {
    /// The id that the pointer names.
    pub(crate) fn id(&self) -> Option<&str> {
        self.pointer.as_deref()?.split(' ').next()
    }

    /// Incarnation and version of the record.
    pub(super) fn announcement(&self) -> Option<String> {
        let mut words = self.record.as_deref()?.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?))
    }
}

/// A request about the keys of a shard: its locks, or its counters.
#[derive(Debug)]
pub(crate) enum AboutKeys {
    Inspect(Inspect),
    List(List),
    Scan(Scan),
    StillHeld(StillHeld),
    AskGroups(AskGroups),
    CopyOut(CopyOut),
    CopyIn(CopyIn),
    Arrive(Arrive),
    DropGroups(DropGroups),
}

/// Makes a request about the whole shard. Gives back one about its keys.
pub(super) async fn control(
    shard: &mut impl ChangeWhole,
    control: Control,
) -> Result<Result<ControlReply, AboutKeys>, ShardError> {
    Ok(Ok(match control {
        Control::Arm(its) => ControlReply::Arm(arm(shard, &its).await?),
        Control::AskArmed(AskArmed) => ControlReply::AskArmed(armed(shard).await?),
        Control::MarkQuiet(mark) => ControlReply::MarkQuiet(mark_quiet(shard, &mark).await?),
        Control::Declare(its) => ControlReply::Declare(declare(shard, &its).await?),
        Control::Raise(its) => ControlReply::Raise(raise(shard, its).await?),
        Control::Step(its) => ControlReply::Step(step(shard, &its).await?),
        Control::Listing(list) => ControlReply::Listing(take_list(shard, &list).await?),
        Control::Admit(its) => ControlReply::Admit(admit(shard, &its).await?),
        Control::ForceOpen(force) => ControlReply::ForceOpen(force_open(shard, &force).await?),
        Control::Inspect(inspect) => return Ok(Err(AboutKeys::Inspect(inspect))),
        Control::List(list) => return Ok(Err(AboutKeys::List(list))),
        Control::Scan(scan) => return Ok(Err(AboutKeys::Scan(scan))),
        Control::StillHeld(still) => return Ok(Err(AboutKeys::StillHeld(still))),
        Control::AskGroups(ask) => return Ok(Err(AboutKeys::AskGroups(ask))),
        Control::CopyOut(copy) => return Ok(Err(AboutKeys::CopyOut(copy))),
        Control::CopyIn(copy) => return Ok(Err(AboutKeys::CopyIn(copy))),
        Control::Arrive(arrive) => return Ok(Err(AboutKeys::Arrive(arrive))),
        Control::DropGroups(drop) => return Ok(Err(AboutKeys::DropGroups(drop))),
    }))
}

/// As [`rules::arm`], for the topology that the shard belongs to.
async fn arm(shard: &mut impl ChangeWhole, arm: &Arm) -> Result<ArmAnswer, ShardError> {
    let rule = |whole: &mut Whole, now_ms| {
        if whole.affiliation.id() != Some(&*arm.topology) {
            return Err(ShardError::Refused {
                what: "arm",
                reason: "its pointer does not name this topology".into(),
            });
        }
        let arm = Arm {
            grace: longer_grace(arm.grace, whole.slack_ms),
            ..arm.clone()
        };
        let Whole {
            head, slots, up_ms, ..
        } = whole;
        let answer = rules::arm(head, slots, &arm, *up_ms, now_ms)?;
        if answer.armed_now {
            whole.counters = OfCounters::Armed(arm.counters);
        }
        Ok(answer)
    };
    shard.change(Needs::All, rule).await
}

/// The arming, if the life is armed.
async fn armed(shard: &mut impl ChangeWhole) -> Result<Option<Armed>, ShardError> {
    let rule = |whole: &mut Whole, now_ms| {
        let armed = whole.head.armed.as_ref();
        Ok(armed.map(|armed| Armed {
            epoch: armed.epoch,
            grace_left: armed.grace.left(now_ms),
        }))
    };
    shard.change(Needs::Head, rule).await
}

/// As [`rules::mark_quiet`].
async fn mark_quiet(shard: &mut impl ChangeWhole, mark: &MarkQuiet) -> Result<bool, ShardError> {
    let rule =
        |whole: &mut Whole, now_ms| rules::mark_quiet(&mut whole.head, &whole.slots, mark, now_ms);
    shard.change(Needs::States(&mark.slots), rule).await
}

/// As [`rules::declare`].
async fn declare(shard: &mut impl ChangeWhole, declare: &Declare) -> Result<Duration, ShardError> {
    let rule = |whole: &mut Whole, now_ms| rules::declare(&mut whole.head, declare, now_ms);
    shard.change(Needs::Head, rule).await
}

/// As [`rules::raise`].
async fn raise(shard: &mut impl ChangeWhole, raise: Raise) -> Result<(), ShardError> {
    let rule = |whole: &mut Whole, _| rules::raise(&mut whole.head, raise.incarnation, raise.epoch);
    shard.change(Needs::Head, rule).await
}

/// As [`rules::step`].
async fn step(shard: &mut impl ChangeWhole, step: &Step) -> Result<Stepped, ShardError> {
    let state = SlotState {
        mode: step.mode,
        epoch: step.epoch,
    };
    let rule = |whole: &mut Whole, now_ms| {
        let Whole { head, slots, .. } = whole;
        let changing = step.slots.iter().filter(|slot| slots.get(**slot) != state);
        let changing: Vec<Slot> = changing.copied().collect();
        let stepped = rules::step(head, slots, step, now_ms)?;
        if step.mode == Mode::Sealed {
            let changed = changing.into_iter();
            let changed = changed.filter(|slot| !stepped.refused.contains(slot));
            whole.counters = OfCounters::Leaving(changed.collect());
        }
        Ok(stepped)
    };
    let stepped = shard.change(Needs::Moves(&step.slots), rule).await?;
    // Tokens were made while the step was on its way: those of its slots, before it.
    let last = shard.last_token().await?;
    Ok(Stepped {
        last_token: stepped.last_token.max(last),
        ..stepped
    })
}

/// As [`rules::take_list`].
async fn take_list(
    shard: &mut impl ChangeWhole,
    listing: &Listing,
) -> Result<Vec<Slot>, ShardError> {
    let mut slots: Vec<Slot> = listing.held.iter().map(|key| key.slot()).collect();
    slots.extend(&listing.complete);
    let rule = |whole: &mut Whole, _| rules::take_list(&whole.head, &mut whole.slots, listing);
    shard.change(Needs::States(&slots), rule).await
}

/// As [`rules::admit`].
async fn admit(shard: &mut impl ChangeWhole, admit: &Admit) -> Result<Vec<Slot>, ShardError> {
    let rule = |whole: &mut Whole, _| {
        let refused = rules::admit(&whole.head, &mut whole.slots, admit)?;
        if !admit.complete {
            whole.counters = OfCounters::Incomplete;
        }
        Ok(refused)
    };
    shard.change(Needs::States(&admit.slots), rule).await
}

/// As [`rules::force_open`].
async fn force_open(
    shard: &mut impl ChangeWhole,
    force: &ForceOpen,
) -> Result<ForcedOpen, ShardError> {
    let rule = |whole: &mut Whole, now_ms| {
        let force = ForceOpen {
            grace_for: longer(force.grace_for, whole.slack_ms),
            ..force.clone()
        };
        let forced = rules::force_open(&mut whole.head, &mut whole.slots, &force, now_ms)?;
        // The other shard has their counters.
        if forced.refused.len() < force.slots.len() {
            whole.counters = OfCounters::Incomplete;
        }
        Ok(forced)
    };
    shard.change(Needs::Moves(&force.slots), rule).await
}

/// A length that counts from a clock which may be late by `slack_ms`. None stays none.
fn longer(length: Duration, slack_ms: u64) -> Duration {
    match length.is_zero() {
        true => length,
        false => length + Duration::from_millis(slack_ms),
    }
}

fn longer_grace(grace: Grace, slack_ms: u64) -> Grace {
    match grace {
        Grace::Full(length) => Grace::Full(longer(length, slack_ms)),
        Grace::LessUptime(length) => Grace::LessUptime(longer(length, slack_ms)),
        Grace::None => Grace::None,
    }
}
