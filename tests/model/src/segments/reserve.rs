//! Reservations: confirmed, cancelled, or expired.

use super::{
    Ask, Kind, Rule, SegmentsModel, Verb, World,
    ledger::Told,
    network::{Answer, Request},
    state::{Entry, Outcome, Phase},
};

impl SegmentsModel {
    /// A task confirms, or cancels.
    pub(super) fn end(&self, world: &mut World, task: u8) {
        let home = self.home(world, task);
        let ask = match self.config.caller(task).verb {
            Verb::Confirm => Ask::Confirm,
            Verb::Cancel | Verb::Operate => Ask::Cancel,
        };
        self.send(world, task, Phase::Ending, [(home, ask)]);
    }

    pub(super) fn confirm_at(&self, world: &mut World, request: &Request) -> Answer {
        let refused = self.unfit_unless_ended(world, request);
        if let Some(answer) = refused.or_else(|| self.no_reservation(world, request)) {
            return answer;
        }
        let operation = self.config.caller(request.task).operation;
        let Some(entry) = world.segment(request.segment).entry(operation) else {
            return self.too_old(world, request).unwrap_or(Answer::Unknown);
        };
        let late = entry.outcome == Outcome::Expired && self.breaks(Rule::OnlyHeldIsConfirmed);
        if entry.outcome != Outcome::Held && !late {
            return Answer::Recorded(entry.outcome);
        }
        let segment = world.segment_mut(request.segment);
        segment.turn(operation, Outcome::Confirmed);
        world.ledger.fate(operation).ends += 1;
        world.ledger.inside -= self.amount_of(operation, entry);
        Answer::Recorded(Outcome::Confirmed)
    }

    pub(super) fn cancel_at(&self, world: &mut World, request: &Request) -> Answer {
        let refused = self.unfit_unless_ended(world, request);
        if let Some(answer) = refused.or_else(|| self.no_reservation(world, request)) {
            return answer;
        }
        let operation = self.config.caller(request.task).operation;
        let outcome = Outcome::Cancelled;
        let Some(entry) = world.segment(request.segment).entry(operation) else {
            return self.too_old(world, request).unwrap_or_else(|| {
                if self.holds(Rule::CancelIsRecorded) {
                    let entry = Entry {
                        outcome,
                        content: None,
                    };
                    self.record_unasked(world, request, entry);
                }
                Answer::Recorded(outcome)
            });
        };
        if entry.outcome != Outcome::Held && self.holds(Rule::OnlyHeldIsCancelled) {
            return Answer::Recorded(entry.outcome);
        }
        let segment = world.segment_mut(request.segment);
        if segment.is_frozen_to(request.task) {
            return Answer::Busy;
        }
        segment.money.add(self.amount_of(operation, entry));
        segment.turn(operation, outcome);
        Answer::Recorded(outcome)
    }

    /// What a transfer holds is its destination's to end.
    fn no_reservation(&self, world: &World, request: &Request) -> Option<Answer> {
        let operation = self.config.caller(request.task).operation;
        let kind = self.config.operation(request.task).kind;
        let recorded = world.segment(request.segment).entry(operation).is_some();
        let other = recorded && kind != Kind::Reserve;
        (other && self.holds(Rule::OnlyReservationsEnd)).then_some(Answer::Unknown)
    }

    /// Records what did not come by the operation itself.
    fn record_unasked(&self, world: &mut World, request: &Request, entry: Entry) {
        let time = self.config.operation(request.task).time;
        let counts = self.holds(Rule::EveryDecisionCounts);
        let operation = self.config.caller(request.task).operation;
        world
            .segment_mut(request.segment)
            .record(operation, if counts { time } else { 0 }, entry);
    }

    /// The task that confirmed or cancelled learns what became of it.
    pub(super) fn ended(&self, world: &mut World, task: u8, outcome: Outcome) {
        let confirmed = outcome == Outcome::Confirmed;
        let told = if confirmed {
            Told::Confirmed
        } else {
            Told::Cancelled
        };
        self.answer(world, task, told);
    }

    /// Whether the segment may give an operation's money back by itself.
    pub(super) fn may_expire(&self, entry: Entry, operation: u8) -> bool {
        let held = entry.outcome == Outcome::Held;
        match self.config.operations[usize::from(operation)].kind {
            Kind::Reserve => {
                let again = entry.outcome == Outcome::Expired && self.breaks(Rule::OnlyHeldExpires);
                self.config.expires && (held || again)
            }
            Kind::Transfer { .. } => held && self.breaks(Rule::SourceTakesNothingBack),
            _ => false,
        }
    }

    pub(super) fn expire(&self, world: &mut World, segment: u8, operation: u8) {
        let segment = world.segment_mut(segment);
        let Some(entry) = segment
            .entry(operation)
            .filter(|entry| self.may_expire(*entry, operation))
        else {
            return;
        };
        let version = segment.money.version;
        segment.money.add(self.amount_of(operation, entry));
        if self.breaks(Rule::ExpiryRaisesTheVersion) {
            segment.money.version = version;
        }
        segment.turn(operation, Outcome::Expired);
    }

    /// What it holds, or held.
    pub(super) fn amount_of(&self, operation: u8, entry: Entry) -> i8 {
        self.config.operations[usize::from(operation)].amount(entry.content.unwrap_or(0))
    }
}
