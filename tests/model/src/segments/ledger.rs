use std::collections::BTreeSet;

use super::{Kind, SegmentsModel, World, state::Phase};

/// Facts that no participant knows, for the properties.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Ledger {
    /// What was put in, less what was taken out, as far as it is remembered.
    pub(super) inside: i8,
    /// What may be missing of it: it was on its way as something was lost.
    pub(super) lost: i8,
    /// By operation.
    pub(super) fates: Vec<Fate>,
    /// By task.
    pub(super) seen: Vec<Seen>,
    /// An `insufficient` or an exact balance that was not so at any instant of its call.
    pub(super) untrue: bool,
    /// An id had an effect after it was told to be too old.
    pub(super) late: bool,
}

/// What became of an operation.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Fate {
    /// How often it took effect, with each content.
    pub(super) effects: [u8; 2],
    /// How often a transfer was credited, or a reservation confirmed.
    pub(super) ends: u8,
    /// What its callers were told.
    pub(super) told: BTreeSet<Told>,
    /// One of a transfer's ends may have forgotten it, and the other not.
    pub(super) in_doubt: bool,
}

/// What was so at some instant since a task began.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Seen {
    /// There was not enough in the whole account.
    pub(super) short: bool,
    /// The account's balances, as bits.
    pub(super) balances: u32,
}

/// An answer to a caller. Numbers are contents.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    Ok(u8),
    Insufficient(u8),
    Conflict(u8),
    TooOld,
    /// The destination refused a transfer.
    Refused,
    /// The reservation is not held any more.
    Ended,
    Confirmed,
    Cancelled,
    Unknown,
    Exact,
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// Every operation was answered `ok`.
    AllOk,
    /// One was answered `insufficient`.
    Insufficient,
    /// Money is in flight.
    InFlight,
    /// An id is too old.
    TooOld,
    /// An id is another's.
    Conflict,
    /// A new segment is home to an id that took effect.
    NewHome,
    /// A transfer was refused.
    Refused,
    /// A reservation expired.
    Expired,
    /// One was confirmed.
    Confirmed,
    /// A segment may have lost its tail.
    Doubtful,
    /// One went on after that.
    Accepted,
}

impl Ledger {
    pub(super) fn fate(&mut self, operation: u8) -> &mut Fate {
        &mut self.fates[usize::from(operation)]
    }

    pub(super) fn told(&self, operation: u8) -> &BTreeSet<Told> {
        &self.fates[usize::from(operation)].told
    }

    /// The operation takes effect, by the task that asks for it.
    pub(super) fn takes_effect(&mut self, operation: u8, content: u8) {
        let fate = self.fate(operation);
        fate.effects[usize::from(content)] += 1;
        let late = fate.told.contains(&Told::TooOld);
        self.late |= late;
    }
}

impl SegmentsModel {
    /// Notes the present facts. Called after every action.
    pub(super) fn witness(&self, world: &mut World) {
        for (task, caller) in (0..).zip(&self.config.callers) {
            let operation = self.config.operation(task);
            let reads = operation.kind == Kind::Read;
            let phase = world.task(task).phase;
            let mut seen = world.ledger.seen[usize::from(task)];
            if phase == Phase::Idle || seen.short || !(reads || operation.takes()) {
                continue;
            }
            let whole = self.whole(world, operation.account);
            if operation.takes() {
                seen.short = whole < operation.amount(caller.content);
            } else {
                let over = phase == Phase::Over;
                seen.balances = if over { 0 } else { seen.balances | bit(whole) };
            }
            world.ledger.seen[usize::from(task)] = seen;
        }
    }
}

impl Seen {
    pub(super) fn has(self, balance: i8) -> bool {
        self.balances & bit(balance) != 0
    }
}

/// Balances that are negative, or beyond what any configuration has, are of no account here.
fn bit(balance: i8) -> u32 {
    let place = u32::try_from(balance).ok();
    place
        .and_then(|place| 1_u32.checked_shl(place))
        .unwrap_or(0)
}
