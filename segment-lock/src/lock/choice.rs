//! Chooses the sub-lock that `any` asks for, by the knowledge of one process.

use crate::limits::TRIES_MAX;

/// One process's knowledge of one sub-lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The number of tasks of this process that hold it or ask for it.
    pub here: u32,
    /// Another process held it when this one tried it last.
    pub is_held_elsewhere: bool,
    /// Its shard refused a grant recently, for a reason that does not concern this sub-lock.
    pub is_in_trouble: bool,
}

impl Known {
    /// The known number of waiters before a newcomer.
    fn load(&self) -> u32 {
        self.here.max(u32::from(self.is_held_elsewhere))
    }
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Try this one.
    Try(u32),
    /// None is known to be free: wait for this one.
    Wait(u32),
}

/// The next step of `any`, after `tried` were not free. `last` is the one that this process had last.
///
/// It tries sub-locks that no task of this process has: first the last one, because its data is probably cached, then
/// those after it, in a circle; those that another process had come after the others. It tries at most [`TRIES_MAX`].
/// Then the caller waits for the least loaded one. Sub-locks on shards with errors come last.
///
/// # Panics
///
/// `known` is empty.
pub fn choose(known: &[Known], last: u32, tried: &[u32]) -> Choice {
    let segments = u32::try_from(known.len()).expect("no more than there may be segments");
    let from_last = |index: u32| (index + segments - last % segments) % segments;
    let all = || (0_u32..).zip(known);
    let looks_free = |(index, its): &(u32, &Known)| {
        its.here == 0 && !its.is_in_trouble && !tried.contains(index)
    };
    let untried = all().filter(looks_free).filter(|_| tried.len() < TRIES_MAX);
    if let Some((index, _)) =
        untried.min_by_key(|(index, its)| (its.is_held_elsewhere, from_last(*index)))
    {
        return Choice::Try(index);
    }
    let least = all().min_by_key(|(index, its)| (its.is_in_trouble, its.load(), from_last(*index)));
    Choice::Wait(least.expect("there is one").0)
}

#[cfg(test)]
mod tests {
    use Choice::{Try, Wait};
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const FREE: Known = Known {
        here: 0,
        is_held_elsewhere: false,
        is_in_trouble: false,
    };
    const HELD: Known = Known {
        is_held_elsewhere: true,
        ..FREE
    };
    const TROUBLED: Known = Known {
        is_in_trouble: true,
        ..FREE
    };

    fn here(here: u32) -> Known {
        Known { here, ..FREE }
    }

    #[test]
    fn the_last_one_is_tried_first_then_those_after_it() {
        assert_eq!(choose(&[FREE; 4], 2, &[]), Try(2));
        assert_eq!(choose(&[FREE; 4], 2, &[2]), Try(3));
        assert_eq!(choose(&[FREE; 4], 2, &[2, 3]), Try(0));
    }

    #[test]
    fn the_last_one_may_be_in_use_no_more() {
        assert_eq!(choose(&[FREE; 4], 6, &[]), Try(2));
    }

    #[test]
    fn sub_locks_of_this_process_are_not_tried() {
        assert_eq!(choose(&[here(1), FREE], 0, &[]), Try(1));
    }

    #[test]
    fn sub_locks_of_others_are_tried_after_free_ones() {
        assert_eq!(choose(&[HELD, FREE], 0, &[]), Try(1));
        assert_eq!(choose(&[HELD, here(1)], 1, &[]), Try(0));
    }

    #[test]
    fn the_least_loaded_is_waited_for() {
        assert_eq!(choose(&[here(3), here(2), here(4)], 0, &[]), Wait(1));
        assert_eq!(choose(&[here(2), HELD], 0, &[1]), Wait(1));
        assert_eq!(choose(&[here(1), HELD], 0, &[1]), Wait(0));
    }

    #[test]
    fn trouble_is_kept_away_from_as_long_as_there_is_another() {
        assert_eq!(choose(&[TROUBLED, FREE], 0, &[]), Try(1));
        assert_eq!(choose(&[TROUBLED, here(9)], 0, &[]), Wait(1));
        assert_eq!(choose(&[TROUBLED], 0, &[]), Wait(0));
    }

    fn known() -> impl Strategy<Value = Known> {
        let parts = (0_u32..4, any::<bool>(), any::<bool>());
        parts.prop_map(|(here, is_held_elsewhere, is_in_trouble)| Known {
            here,
            is_held_elsewhere,
            is_in_trouble,
        })
    }

    proptest! {
        /// Each is tried at most once, then there is one to wait for.
        #[test]
        fn it_comes_to_an_end(known in vec(known(), 1..40), last in 0_u32..80) {
            let mut tried = Vec::new();
            while let Try(index) = choose(&known, last, &tried) {
                prop_assert!(!tried.contains(&index));
                prop_assert_eq!(known[index as usize].here, 0);
                tried.push(index);
            }
            prop_assert!(tried.len() <= TRIES_MAX);
            let is_free = |its: &&Known| its.here == 0 && !its.is_in_trouble;
            let free = known.iter().filter(is_free).count();
            prop_assert_eq!(tried.len(), free.min(TRIES_MAX));
        }
    }
}
