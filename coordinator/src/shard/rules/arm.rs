//! Arming a life, and the rare requests to all of it.

use std::time::Duration;

use super::{
    end::End,
    head::{Armed, Head},
    millis,
    sightings::Sightings,
    slots::Slots,
    tokens::Tokens,
};
use crate::{
    failpoint::{Rule, is_off},
    ids::{Epoch, Incarnation, MapVersion, Token},
    shard::{Arm, ArmAnswer, Declare, Grace, MarkQuiet, Mode, ShardError},
};

/// Gives the life its slots, epoch and grace, unless it is armed with this epoch or a later one.
///
/// `up_ms`: for how long the shard has had this life and forgotten nothing; `None` if that is not known.
pub(crate) fn arm(
    head: &mut Head,
    slots: &mut Slots,
    arm: &Arm,
    up_ms: Option<u64>,
    now_ms: u64,
) -> Result<ArmAnswer, ShardError> {
    head.see_record(arm.incarnation, &arm.copy)?;
    let has_newest = head.newest() == Some((arm.incarnation, arm.copy.0));
    let stays = |former: &Armed| former.epoch >= arm.epoch || !has_newest;
    let armed_now = !head.armed.as_ref().is_some_and(stays);
    if armed_now {
        head.see_epoch(arm.epoch.max(arm.token_epoch));
        *slots = Slots::new(arm.slots.clone());
        head.armed = Some(armed_anew(head.armed.take(), arm, up_ms, now_ms));
    }
    Ok(ArmAnswer {
        armed_now,
        grace_left: head.armed()?.grace.left(now_ms),
    })
}

/// The arming that replaces `former`. It does not cut grace short, and repeats no token.
fn armed_anew(former: Option<Armed>, arm: &Arm, up_ms: Option<u64>, now_ms: u64) -> Armed {
    // A shard that was armed before may have locks that are younger than the life.
    let up_ms = up_ms.filter(|_| former.is_none());
    let mut armed = Armed {
        epoch: arm.epoch,
        tokens: Tokens {
            epoch: arm.token_epoch,
            counter: 0,
        },
        grace: End::default(),
        grace_from: Epoch::default(),
        seen: Sightings::default(),
        forced: Epoch::default(),
        declared: arm.declared,
        quiet: None,
    };
    if let Some(former) = former {
        armed.tokens.raise(former.tokens.last());
        (armed.grace, armed.grace_from) = (former.grace, former.grace_from);
        armed.forced = former.forced;
        armed.declared = armed.declared.max(former.declared);
    }
    let grace_ms = match arm.grace {
        _ if is_off(Rule::Grace) => 0,
        Grace::Full(length) => millis(length),
        Grace::LessUptime(length) => millis(length).saturating_sub(up_ms.unwrap_or(0)),
        Grace::None => 0,
    };
    if grace_ms > 0 {
        armed.grace_from = Epoch::default();
    }
    armed.grace.extend(grace_ms, now_ms);
    armed
}

/// Declares the life quiet at a map version, if every slot of that version is open and grace is over. Returns whether
/// the life is quiet at that version now.
pub(crate) fn mark_quiet(
    head: &mut Head,
    slots: &Slots,
    mark: &MarkQuiet,
    now_ms: u64,
) -> Result<bool, ShardError> {
    head.see_record(mark.incarnation, &mark.copy)?;
    let armed = head.armed_mut()?;
    if armed.quiet > Some(mark.map) || armed.declared > mark.map {
        // Engines that have not heard of the later version must not take the mark from those that have.
        return Ok(false);
    }
    let is_open = |slot: &_| slots.get(*slot).mode == Mode::Open;
    // The unknown version asks for every check.
    let is_known = mark.map != MapVersion::UNKNOWN;
    let quiet = is_known && !armed.grace.runs(now_ms) && mark.slots.iter().all(is_open);
    armed.quiet = quiet.then_some(mark.map);
    Ok(quiet)
}

/// Refuses acquires by older views than `declare` from now on. Returns how long the shard goes on granting nothing.
pub(crate) fn declare(
    head: &mut Head,
    declare: &Declare,
    now_ms: u64,
) -> Result<Duration, ShardError> {
    head.see_record(declare.incarnation, &declare.copy)?;
    let armed = head.armed_mut()?;
    if armed.declared < declare.declared {
        armed.declared = declare.declared;
        armed.quiet = None;
    }
    Ok(armed.grace.left(now_ms))
}

/// Makes every later token one of `epoch` or of a later epoch.
pub(crate) fn raise(
    head: &mut Head,
    incarnation: Incarnation,
    epoch: Epoch,
) -> Result<(), ShardError> {
    head.raise_fence(incarnation)?;
    head.armed_mut()?.tokens.raise(Token::new(epoch, 0));
    head.see_epoch(epoch);
    Ok(())
}
