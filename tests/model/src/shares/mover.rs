//! The mover's steps: seal, import, list, open, shut, finish. A step may happen whenever some mover can
//! know that it may.

use super::{
    Action, Event, Rule, SharesModel, Token, World,
    state::{Guard, Mode, Slot},
};

/// A step of the move, by any mover that knows enough.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Step {
    /// A grants nothing more.
    Seal,
    /// B takes holders over, and grants by proof.
    Import,
    /// A is asked for the shares still held.
    Scan,
    /// B is told.
    List,
    /// A is asked whether it holds nothing.
    Empty,
    /// B grants.
    Open,
    /// A is told so.
    Shut,
    /// The topology is.
    Finish,
}

/// The move, and the answers to its movers.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Migration {
    pub(super) epoch: u8,
    /// A's last token.
    sealed: Option<Token>,
    /// The fewest shares that a scan found.
    listed: Option<u8>,
    empty: bool,
    opened: bool,
    shut: bool,
    pub(super) finished: bool,
}

/// Steps of the guard.
pub(super) const ARMED: u8 = 0;
pub(super) const BEGUN: u8 = 1;
pub(super) const DONE: u8 = 3;

impl SharesModel {
    /// The move is planned, with a fresh epoch.
    pub(super) fn plan(&self, world: &mut World) {
        world.epoch += 1;
        world.migration = Some(Migration {
            epoch: world.epoch,
            ..Migration::default()
        });
    }

    /// The steps that some mover may take.
    pub(super) fn enabled_steps(&self, world: &World, actions: &mut Vec<Action>) {
        let Some(known) = world.migration else {
            if self.config.moves {
                actions.push(Action::Plan);
            }
            return;
        };
        let sealed = known.sealed.is_some();
        let may_open = known.empty || self.breaks(Rule::OpenAfterEmpty);
        let steps = [
            (true, Step::Seal),
            (sealed, Step::Import),
            (self.config.lists, Step::Scan),
            (sealed && known.listed.is_some(), Step::List),
            (true, Step::Empty),
            (sealed && may_open, Step::Open),
            (known.opened, Step::Shut),
            (known.opened && known.shut, Step::Finish),
        ];
        let steps = steps.into_iter().filter(|(enabled, _)| *enabled);
        actions.extend(steps.map(|(_, step)| Action::Step(step)));
    }

    /// It is taken, if the shard is armed and nothing newer was done to its slot.
    pub(super) fn step(&self, world: &mut World, step: Step) {
        let Some(mut known) = world.migration else {
            return;
        };
        match step {
            Step::Seal => {
                if let Some(slot) = change(world, 0, Mode::Sealed, known.epoch) {
                    known.sealed.get_or_insert(slot.token);
                }
            }
            Step::Import => import(world, &known),
            Step::Scan => self.scan(world, &mut known),
            Step::List => list(world, &known),
            Step::Empty => known.empty |= self.is_empty(world, known.epoch),
            Step::Open => known.opened |= open(world, &known),
            Step::Shut => known.shut |= change(world, 0, Mode::Shut, known.epoch).is_some(),
            Step::Finish => {
                known.finished = true;
                let older = |guard: Guard| guard.shard == 1 && guard.token.epoch < known.epoch;
                if world.guards().any(older) {
                    world.ledger.happened = Some(Event::FinishedUnderHolder);
                }
            }
        }
        world.migration = Some(known);
    }

    /// A is asked while it is sealed, and past its grace.
    fn scan(&self, world: &World, known: &mut Migration) {
        let Some(slot) = world.shards[0].slot else {
            return;
        };
        let sealed = slot.mode == Mode::Sealed && slot.grace == 0;
        if sealed || self.breaks(Rule::ListAfterTheSeal) {
            let left = self.left_at(world, 0, &slot);
            known.listed = Some(known.listed.map_or(left, |least| least.min(left)));
        }
    }

    fn is_empty(&self, world: &World, epoch: u8) -> bool {
        let Some(slot) = world.shards[0].slot else {
            return false;
        };
        let past_grace = slot.grace == 0 || self.breaks(Rule::NotEmptyInGrace);
        match slot.mode {
            Mode::Shut => slot.guard.0 == epoch,
            Mode::Sealed => past_grace && self.live_sum(world, 0, &slot) == 0,
            _ => false,
        }
    }
}

impl Migration {
    /// A shard is in a new life: the move has another version, and is not finished by answers of before.
    pub(super) fn forget_answers_of(&mut self, shard: u8) {
        if shard == 0 {
            self.shut = false;
        } else {
            self.opened = false;
        }
    }
}

fn import(world: &mut World, known: &Migration) {
    if let Some(slot) = change(world, 1, Mode::Import, known.epoch) {
        slot.raise_above_seal(known);
    }
}

fn list(world: &mut World, known: &Migration) {
    let imports =
        |slot: &&mut Slot| slot.mode == Mode::Import && slot.guard == (known.epoch, BEGUN);
    if let Some(slot) = world.shard(1).slot.as_mut().filter(imports)
        && let Some(left) = known.listed
    {
        slot.lower_left(left);
    }
}

fn open(world: &mut World, known: &Migration) -> bool {
    let slot = change(world, 1, Mode::Open, known.epoch);
    slot.map(|slot| slot.raise_above_seal(known)).is_some()
}

/// Sets the mode, if (epoch, step) is above the slot's, or equal and it is there already. The
/// slot, if it is so now.
fn change(world: &mut World, shard: u8, mode: Mode, epoch: u8) -> Option<&mut Slot> {
    let slot = world.shard(shard).slot.as_mut()?;
    let guard = match mode {
        Mode::Sealed | Mode::Import => (epoch, BEGUN),
        Mode::Open | Mode::Shut => (epoch, DONE),
    };
    if guard > slot.guard {
        slot.mode = mode;
        slot.guard = guard;
        slot.left = None;
    } else if guard != slot.guard || mode != slot.mode {
        return None;
    }
    Some(slot)
}

impl Slot {
    /// Above all that A granted before it was sealed, and above the move's epoch.
    fn raise_above_seal(&mut self, known: &Migration) {
        self.raise(Token::none_of(known.epoch));
        if let Some(token) = known.sealed {
            self.raise(token);
        }
    }
}
