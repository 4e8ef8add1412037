//! What must hold, and what must have happened.

use stateright::Property;

use super::{
    Event, Nonce, Pace, QueueModel, Token, World,
    ledger::Ledger,
    state::{Guard, Phase},
};

pub(super) const ONE_HOLDER: &str = "one holder";
pub(super) const HOLDER_IS_NEWEST: &str =
    "a holder has the shard's newest grant and the newest token";
pub(super) const TOKENS_RISE: &str = "tokens of holders rise";
pub(super) const TOKENS_RISE_AT_SHARD: &str = "tokens given out or reserved rise";
pub(super) const FIRST_COME: &str = "first come, first served";
pub(super) const HAND_OFFS_BOUNDED: &str = "hand-offs are bounded once another process waits";
pub(super) const HEALTHY_GUARD: &str = "a healthy guard is not lost";
pub(super) const NOTHING_LEFT: &str = "no ticket and no record is left behind";
pub(super) const ORPHAN_ENDS: &str = "a dead process's record is gone within a lease";
pub(super) const WAITS_END: &str = "every wait ends within its bound";
pub(super) const NEVER_STUCK: &str = "something can always happen while anybody waits or holds";

pub(super) fn safety() -> Vec<Property<QueueModel>> {
    vec![
        Property::always(ONE_HOLDER, |_, world| holders(world).count() <= 1),
        Property::always(HOLDER_IS_NEWEST, |_, world: &World| {
            holders(world).all(|(nonce, guard)| is_newest(&world.ledger, nonce, guard.token))
        }),
        Property::always(TOKENS_RISE, |_, world: &World| {
            !world.ledger.held_out_of_order
        }),
        Property::always(TOKENS_RISE_AT_SHARD, |_, world: &World| {
            !world.ledger.reserved_out_of_order
        }),
        Property::always(FIRST_COME, |_, world: &World| !world.ledger.overtaken),
        Property::always(HAND_OFFS_BOUNDED, |_, world: &World| {
            !world.ledger.too_many_hand_offs
        }),
        Property::always(HEALTHY_GUARD, |_, world: &World| {
            !world.ledger.healthy_guard_lost
        }),
    ]
}

impl QueueModel {
    /// Once all is delivered, and no process died, every ticket and record has a process.
    fn is_tidy(&self, world: &World) -> bool {
        let restarted = world.restarts < self.config.restarts;
        let crashed = world.crashes < self.config.crashes;
        let under_way = !world.network.requests.is_empty();
        let mut tickets = world.shard.memory.queue.iter();
        let mut owned =
            || self.orphan(world).is_none() && tickets.all(|ticket| world.is_waiting(ticket.nonce));
        restarted || crashed || under_way || owned()
    }

    fn is_stuck(&self, world: &World) -> bool {
        let mut actions = Vec::new();
        self.enabled(world, &mut actions);
        let mut processes = world.processes.iter();
        actions.is_empty() && processes.any(|process| process.phase != Phase::Idle)
    }

    /// What can only be asked where the network answers and processes do their part.
    pub(super) fn progress(&self) -> Vec<Property<Self>> {
        if self.config.pace != Pace::AllPrompt {
            return Vec::new();
        }
        vec![
            Property::always(NOTHING_LEFT, Self::is_tidy),
            Property::always(ORPHAN_ENDS, |model: &Self, world: &World| {
                (world.ledger.orphan).is_none_or(|(_, ticks)| ticks <= model.config.lease)
            }),
            Property::always(WAITS_END, |model: &Self, world: &World| {
                let max = model.config.wait_max;
                (world.processes.iter()).all(|process| match process.phase {
                    Phase::Waiting(attempt) => attempt.waited <= max,
                    _ => true,
                })
            }),
            Property::always(NEVER_STUCK, |model: &Self, world| !model.is_stuck(world)),
        ]
    }
}

/// The processes that believe they hold the lock.
fn holders(world: &World) -> impl Iterator<Item = (Nonce, Guard)> {
    (world.processes.iter()).filter_map(|process| match process.phase {
        Phase::Holding(guard) if guard.busy => Some((process.nonce, guard)),
        _ => None,
    })
}

fn is_newest(ledger: &Ledger, nonce: Nonce, token: Token) -> bool {
    ledger.granted == Some(nonce) && ledger.newest_held == token
}

pub(super) fn reached(event: Event) -> Property<QueueModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.ledger.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::TurnTaken => sometimes!(TurnTaken, "a turn is taken"),
        Event::TurnTakenAfterRestart => {
            sometimes!(TurnTakenAfterRestart, "a turn is taken after a restart")
        }
        Event::StayedInVain => sometimes!(StayedInVain, "a ticket is put again in vain"),
        Event::GrantFound => sometimes!(GrantFound, "a re-check finds its grant"),
        Event::HandedOff => sometimes!(HandedOff, "a hand-off"),
        Event::GrantedAgain => sometimes!(GrantedAgain, "a grant while lingering"),
        Event::GivenBack => sometimes!(GivenBack, "given back when contended"),
        Event::Reclaimed => sometimes!(Reclaimed, "put back in grace"),
        Event::RestartedWithQueue => sometimes!(RestartedWithQueue, "a restart with a queue"),
        Event::GrantedElsewhere => {
            sometimes!(
                GrantedElsewhere,
                "a grant elsewhere, with a queue left here"
            )
        }
    }
}
