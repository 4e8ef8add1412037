//! What must hold, and what must have happened.

use stateright::Property;

use super::{
    Event, SetsModel, World,
    process::each,
    state::{Doing, Entry},
};

pub(super) const NO_CIRCLE: &str = "no processes wait for each other in a circle";
pub(super) const ALL: &str = "a set that is granted is held in full";
pub(super) const NOTHING: &str = "nothing is held, or on its way, of a call that is over";
pub(super) const IN_TIME: &str = "a call is over by its deadline";
pub(super) const AFTER_A_CRASH: &str =
    "after a crash nothing is held beyond a lease, nor by a place in a queue beyond two";

pub(super) fn all() -> Vec<Property<SetsModel>> {
    vec![
        Property::always(NO_CIRCLE, |model: &SetsModel, world: &World| {
            (0..world.processes.len() as u8).all(|process| !model.waits_for_itself(world, process))
        }),
        Property::always(ALL, |model: &SetsModel, world: &World| {
            let (Some(Event::GrantedAtOnce(process)) | Some(Event::GrantedAfterAWait(process))) =
                world.happened
            else {
                return true;
            };
            each(model.all_of(process)).all(|key| world.has_record(key, process))
        }),
        Property::always(NOTHING, |model: &SetsModel, world: &World| {
            (0..model.config.keys).all(|key| {
                let entry = world.key(key);
                let mut entries = entry.record.iter().chain(&entry.queue);
                entries.all(|entry| model.is_wanted(world, key, *entry))
            })
        }),
        Property::always(IN_TIME, |model: &SetsModel, world: &World| {
            (0..world.processes.len() as u8).all(|process| model.is_in_time(world, process))
        }),
        Property::always(AFTER_A_CRASH, |model: &SetsModel, world: &World| {
            let records = world.keys.iter().filter_map(|key| key.record);
            let mut of_dead =
                records.filter_map(|record| match world.process(record.nonce.process).doing {
                    Doing::Dead(since) => Some(since),
                    _ => None,
                });
            of_dead.all(|since| world.now < since + 2 * model.config.lease)
        }),
    ]
}

impl SetsModel {
    /// Whether a process waits for a key of one that waits … for a key of the first.
    fn waits_for_itself(&self, world: &World, process: u8) -> bool {
        let mut at = process;
        for _ in 0..world.processes.len() {
            let Doing::Waiting { held, .. } = world.process(at).doing else {
                return false;
            };
            let next = self.next_of(at, held);
            // One that was given back is about to be free.
            let keeps = |key: u8, other: u8| {
                let its = world.process(other).doing.held(self.all_of(other));
                its >> key & 1 == 1 && world.has_record(key, other)
            };
            let mut others = 0..world.processes.len() as u8;
            match next.and_then(|key| others.find(|other| keeps(key, *other))) {
                Some(other) if other == process && at != process => return true,
                Some(other) if other != at => at = other,
                _ => return false,
            }
        }
        false
    }

    /// Whether a record or a ticket is of a call under way, ends with its process, or is about to be released.
    fn is_wanted(&self, world: &World, key: u8, entry: Entry) -> bool {
        let owner = entry.nonce.process;
        let doing = world.process(owner).doing;
        let held = doing.held(self.all_of(owner));
        let next = match doing {
            Doing::Dead(_) => return true,
            Doing::Waiting { .. } => self.next_of(owner, held),
            _ => None,
        };
        let of_call = held >> key & 1 == 1 || next == Some(key);
        of_call && world.is_of_call(entry.nonce) || world.releases.contains(&(key, entry.nonce))
    }

    fn is_in_time(&self, world: &World, process: u8) -> bool {
        let wish = self.config.wishes[usize::from(process)];
        match world.process(process).doing {
            Doing::Waiting { .. } => world.now < world.process(process).began + wish.wait,
            _ => true,
        }
    }
}

pub(super) fn reached(event: Event) -> Property<SetsModel> {
    macro_rules! sometimes {
        ($event:pat, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                matches!(world.happened, Some($event))
            })
        };
    }
    match event {
        Event::GrantedAtOnce(_) => sometimes!(Event::GrantedAtOnce(_), "a set granted at once"),
        Event::GrantedAfterAWait(0) => {
            sometimes!(
                Event::GrantedAfterAWait(0),
                "the first process granted after a wait"
            )
        }
        Event::GrantedAfterAWait(1) => {
            sometimes!(
                Event::GrantedAfterAWait(1),
                "the second process granted after a wait"
            )
        }
        Event::GrantedAfterAWait(_) => {
            sometimes!(
                Event::GrantedAfterAWait(2),
                "the third process granted after a wait"
            )
        }
        Event::FailedInPart => sometimes!(Event::FailedInPart, "a try that failed in part"),
        Event::TimedOut => sometimes!(Event::TimedOut, "a call that timed out"),
        Event::LostMeanwhile => sometimes!(Event::LostMeanwhile, "a set that was lost meanwhile"),
        Event::CrashedWithSome => {
            sometimes!(Event::CrashedWithSome, "a crash with some of the keys")
        }
    }
}
