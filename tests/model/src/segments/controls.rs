//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Caller, Configuration, Rule,
    operations::{
        Operation, calls, cancels, confirms, deduct, deposit, differs, read, reserve, transfer,
    },
    properties::{ANSWERS_AGREE, CAN_FINISH, CONSERVED, ONE_EFFECT, TOO_OLD_IS_FINAL, TRUE_ONCE},
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    Control {
        rule,
        config: config(rule),
        violates: violates(rule),
    }
}

fn violates(rule: Rule) -> &'static str {
    match rule {
        Rule::ContentIsCompared
        | Rule::InsufficientIsRecorded
        | Rule::RecordedStays
        | Rule::CancelIsRecorded => ANSWERS_AGREE,
        Rule::LendRepeatsItsAnswer
        | Rule::LendFollowsTheLanded
        | Rule::LandOnce
        | Rule::SourceTakesNothingBack
        | Rule::PinnedIsNotPurged
        | Rule::ForgottenAfterTheFinish
        | Rule::OnlyReservationsEnd
        | Rule::OnlyHeldIsConfirmed
        | Rule::OnlyHeldIsCancelled
        | Rule::OnlyHeldExpires
        | Rule::NumbersNeverRepeat
        | Rule::AnewHasHadEveryLoan
        | Rule::AcceptNamesTheVersion
        | Rule::AnewVersionFollowsTheClock
        | Rule::AnewMayHaveCredited
        | Rule::RefusedInTheManifest
        | Rule::CreatedAboveTheRefused => CONSERVED,
        Rule::LendRaisesTheVersion
        | Rule::LandRaisesTheVersion
        | Rule::InsufficientTakesTwoReads
        | Rule::OthersAreReadAgain
        | Rule::SecondReadsFollowEveryFirst
        | Rule::HomesVersionIsCompared
        | Rule::InFlightIsSummed
        | Rule::FreezeProvesNothing
        | Rule::ExactTakesTwoReads
        | Rule::CollectByTheLayout
        | Rule::ShortByTheLayout
        | Rule::ExpiryRaisesTheVersion
        | Rule::LossRaisesTheVersion => TRUE_ONCE,
        Rule::StrandedIsLanded
        | Rule::PurgedSourceIsFinished
        | Rule::LostManifestIsRestored
        | Rule::LenderBelievesTheLanded
        | Rule::NoAccountRefuses => CAN_FINISH,
        Rule::PrepareComparesTheMark => TOO_OLD_IS_FINAL,
        Rule::IdsAreRemembered
        | Rule::PurgeRaisesTheMark
        | Rule::HomeByTheIdsTime
        | Rule::PreparedBeforeCommit
        | Rule::PreparedRefusesNewIds
        | Rule::PrepareComparesDecided
        | Rule::EveryDecisionCounts
        | Rule::BaseIsKept
        | Rule::RestoredFromTheCopy
        | Rule::RestoredPlanMarks
        | Rule::CreditOnce
        | Rule::CreditAboveTheMark
        | Rule::LostTailIsDoubtful
        | Rule::AnewBeginsAtNow => ONE_EFFECT,
    }
}

fn config(rule: Rule) -> Configuration {
    match rule {
        Rule::IdsAreRemembered => new(&[1, 1]).asking(&[deduct(1, 0)], TWICE),
        Rule::ContentIsCompared => two_contents(&[2, 0]),
        Rule::PurgeRaisesTheMark => new(&[2, 0]).asking(&[deduct(1, 0)], TWICE).purging(1),

        Rule::LendRepeatsItsAnswer => lending(&[deduct(1, 0)]),
        Rule::LendFollowsTheLanded => lending(&[deduct(1, 0), deduct(2, 0)]),
        Rule::LandOnce => lending(&[deduct(1, 0), deduct(1, 0)]),
        Rule::LendRaisesTheVersion => lending(&[deduct(2, 0), read(), deposit(1, 0)]),
        Rule::LandRaisesTheVersion => {
            new(&[1, 1]).asking(&[deduct(2, 0), deduct(1, 1)], FIRST_TWICE)
        }
        Rule::StrandedIsLanded => one_each(&[deduct(2, 0), deduct(2, 1)]),

        Rule::InsufficientTakesTwoReads
        | Rule::OthersAreReadAgain
        | Rule::SecondReadsFollowEveryFirst => spread(),
        Rule::FreezeProvesNothing => spread().freezing_from(0),
        Rule::HomesVersionIsCompared => one_each(&[deduct(2, 0), deduct(1, 1), deposit(1, 0)]),
        Rule::InFlightIsSummed => new(&[0, 2]).asking(&[deduct(2, 0)], TWICE),
        Rule::InsufficientIsRecorded => {
            new(&[1, 0]).asking(&[deduct(2, 0), deposit(1, 1)], FIRST_TWICE)
        }
        Rule::RecordedStays => two_contents(&[0, 0]),
        Rule::ExactTakesTwoReads => one_each(&[deduct(1, 0), deposit(1, 1), read()]),

        Rule::HomeByTheIdsTime => growing(&[2, 0], &[deduct(1, 0).at(1, 1)], TWICE),
        Rule::PreparedBeforeCommit | Rule::PreparedRefusesNewIds | Rule::PrepareComparesDecided => {
            taken_anew()
        }
        Rule::EveryDecisionCounts => {
            let comes = [transfer(1, 2, 0).from(1).to(2, 1)];
            growing(&[0, 0, 1], &comes, TWICE).of(&[0, 0, 1])
        }
        Rule::PrepareComparesTheMark => taken_anew().purging(2),
        Rule::BaseIsKept => taken_anew().growing(&[2, 3]),
        Rule::LostManifestIsRestored | Rule::RestoredFromTheCopy => {
            taken_anew().losing_the_manifest()
        }
        Rule::RestoredPlanMarks => taken_anew().growing(&[2, 3]).losing_the_manifest(),
        Rule::CollectByTheLayout => growing(&[1, 0], &[read(), fed_anew()], EACH),
        Rule::ShortByTheLayout => growing(&[1, 0], &[deduct(2, 0), fed_anew()], EACH),

        Rule::SourceTakesNothingBack | Rule::CreditOnce => transferring(),
        Rule::PinnedIsNotPurged | Rule::ForgottenAfterTheFinish | Rule::CreditAboveTheMark => {
            transferring().purging(1)
        }
        Rule::PurgedSourceIsFinished => transferring().purging(2),

        Rule::NoAccountRefuses | Rule::RefusedInTheManifest | Rule::CreatedAboveTheRefused => {
            to_nobody()
        }

        Rule::OnlyReservationsEnd => {
            let callers = [calls(0), confirms(0), cancels(0)];
            let goes = [transfer(1, 0, 1)];
            new(&[1, 0]).of(&[0, 1]).asking(&goes, &callers)
        }
        Rule::OnlyHeldIsConfirmed => reserving(&[calls(0), confirms(0)]),
        Rule::OnlyHeldIsCancelled => reserving(&[calls(0), cancels(0)]),
        Rule::OnlyHeldExpires => reserving(&[calls(0)]),
        Rule::CancelIsRecorded => reserving(&[calls(0), cancels(0), confirms(0)]),
        Rule::ExpiryRaisesTheVersion => {
            let operations = [reserve(1, 1), deduct(1, 0), deduct(1, 2)];
            new(&[0, 1, 1]).asking(&operations, EACH).expiring()
        }

        Rule::LostTailIsDoubtful => lending(&[deduct(2, 0), deduct(1, 1)]).losing(1, 1),
        Rule::LossRaisesTheVersion => deposited_otherwise().losing(1, 1),
        Rule::LenderBelievesTheLanded => lending(&[deduct(1, 0); 2]).losing(1, 1),
        Rule::NumbersNeverRepeat => fed_later().vanishing(1),

        Rule::AnewHasHadEveryLoan => one_each(&[deduct(2, 0), deduct(2, 1)]).vanishing(1),
        Rule::AcceptNamesTheVersion => fed_by_the_other().vanishing(2),
        Rule::AnewVersionFollowsTheClock => lost_twice().crashing(0),
        Rule::AnewMayHaveCredited => transferring().vanishing(1),
        Rule::AnewBeginsAtNow => new(&[1, 1]).asking(&[deposit(1, 0)], TWICE).vanishing(1),
    }
}

/// One id, sent twice.
const TWICE: &[Caller] = &[calls(0), calls(0)];
/// The first of two ids, sent twice.
const FIRST_TWICE: &[Caller] = &[calls(0), calls(0), calls(1)];
/// Each of as many ids as there are.
const EACH: &[Caller] = &[calls(0), calls(1), calls(2)];

fn new(values: &[i8]) -> Configuration {
    Configuration::new("control", values)
}

/// One id is used for two deductions.
fn two_contents(values: &[i8]) -> Configuration {
    new(values).asking(&[deduct(1, 0).or(2)], &[calls(0), differs(0)])
}

/// Everything is at the other segment.
fn lending(operations: &[Operation]) -> Configuration {
    new(&[0, 2]).asking(operations, EACH)
}

/// Both segments have something.
fn one_each(operations: &[Operation]) -> Configuration {
    new(&[1, 1]).asking(operations, EACH)
}

/// The missing money arrives at a second segment before it is deducted from a third.
fn spread() -> Configuration {
    let operations = [deduct(2, 0), deduct(1, 2), deposit(1, 1)];
    new(&[1, 0, 1]).asking(&operations, EACH)
}

/// A second segment is on its way.
fn growing(values: &[i8], operations: &[Operation], callers: &[Caller]) -> Configuration {
    new(values).asking(operations, callers).growing(&[2])
}

/// An id that is at home there is sent twice.
fn taken_anew() -> Configuration {
    growing(&[2, 0], &[deduct(1, 0).at(2, 1)], TWICE)
}

/// Money comes in there.
fn fed_anew() -> Operation {
    deposit(1, 0).at(2, 1)
}

fn transferring() -> Configuration {
    new(&[1, 0]).of(&[0, 1]).asking(&[transfer(1, 0, 1)], TWICE)
}

/// The destination's account is created at some time, or not at all.
fn to_nobody() -> Configuration {
    Configuration {
        absent: Some(1),
        ..transferring()
    }
}

/// An id that a segment forgot comes again with other content.
fn deposited_otherwise() -> Configuration {
    let operations = [deposit(1, 0).or(2), deposit(1, 1), read()];
    let callers = [calls(0), differs(0), calls(1), calls(2)];
    new(&[1, 1]).asking(&operations, &callers)
}

/// Ids of later times come, when a segment may have been made anew.
fn fed_later() -> Configuration {
    let operations = [deduct(1, 0), deposit(1, 1).at(2, 1), deduct(1, 0).at(2, 0)];
    new(&[0, 1]).asking(&operations, EACH)
}

/// Two may be lost, and each lends to the other.
fn lost_twice() -> Configuration {
    one_each(&[deduct(2, 0), deduct(2, 1)]).vanishing(2)
}

/// The other segment lends to the home of two ids, of which one is of a later time.
fn fed_by_the_other() -> Configuration {
    let operations = [deduct(1, 0), deduct(1, 0).at(2, 0)];
    new(&[0, 2]).asking(&operations, EACH)
}

fn reserving(callers: &[Caller]) -> Configuration {
    new(&[1, 0]).asking(&[reserve(1, 0)], callers).expiring()
}
