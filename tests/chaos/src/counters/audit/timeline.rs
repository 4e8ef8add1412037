//! How much an account can have had at every instant.

/// Some change of what can be spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// Not before this.
    pub(super) from_ns: u64,
    /// Before this, if it is known to have happened at all.
    pub(super) by_ns: Option<u64>,
    /// By how much.
    pub(super) by: i64,
}

/// The least and the most there can have been, from each instant on to the next.
#[derive(Debug)]
pub(super) struct Timeline(Vec<Bounds>);

/// The least and the most there can have been from an instant on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    from_ns: u64,
    pub(super) least: i64,
    pub(super) most: i64,
}

impl Timeline {
    /// Of an account that had nothing before `changes`.
    pub(super) fn of(changes: &[Change]) -> Self {
        // What may have happened comes before what has for certain, at the same instant: the bounds are wider.
        let mut events: Vec<(u64, bool, i64)> = Vec::new();
        for change in changes {
            events.push((change.from_ns, false, change.by));
            events.extend(change.by_ns.map(|by_ns| (by_ns, true, change.by)));
        }
        events.sort_unstable();
        let mut now = Bounds::default();
        let mut all = vec![now];
        for (from_ns, certain, by) in events {
            now.from_ns = from_ns;
            match certain == (by > 0) {
                true => now.least += by,
                false => now.most += by,
            }
            all.push(now);
        }
        Self(all)
    }

    /// Whether there was an instant of that time at which the bounds were `so`.
    pub(super) fn ever(&self, from_ns: u64, to_ns: u64, so: impl Fn(&Bounds) -> bool) -> bool {
        let begin = self.0.partition_point(|bounds| bounds.from_ns < from_ns);
        let during = self.0[begin.saturating_sub(1)..].iter();
        during.take_while(|bounds| bounds.from_ns <= to_ns).any(so)
    }

    /// What there can be in the end.
    pub(super) fn end(&self) -> &Bounds {
        self.0.last().expect("it begins with one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from_ns: u64, by_ns: impl Into<Option<u64>>, by: i64) -> Change {
        Change {
            from_ns,
            by_ns: by_ns.into(),
            by,
        }
    }

    #[test]
    fn what_may_have_happened_widens_the_bounds_until_it_has() {
        let timeline = Timeline::of(&[change(10, 20, 5), change(30, 40, -3), change(50, None, 1)]);
        let bounds = |at| {
            let mut found = (0, 0);
            for least in 0..10 {
                for most in 0..10 {
                    if timeline.ever(at, at, |bounds| {
                        (bounds.least, bounds.most) == (least, most)
                    }) {
                        found = (least, most);
                    }
                }
            }
            found
        };
        let seen = [5, 15, 25, 35, 45, 55].map(bounds);
        assert_eq!(seen, [(0, 0), (0, 5), (5, 5), (2, 5), (2, 2), (2, 3)]);
    }

    #[test]
    fn a_time_has_every_instant_of_it_and_no_other() {
        let timeline = Timeline::of(&[change(10, 10, 5), change(20, 20, -5)]);
        let had = |from, to, amount| timeline.ever(from, to, |bounds| bounds.least == amount);
        assert!(had(0, 10, 5) && had(19, 30, 5) && had(5, 25, 5));
        assert!(!had(0, 9, 5) && !had(21, 30, 5) && !had(11, 19, 0));
        assert_eq!((timeline.end().least, timeline.end().most), (0, 0));
    }
}
