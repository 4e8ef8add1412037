//! Lets futures wake each other within one task, without waking the task.
//!
//! A task that polls both ends of a channel wakes itself: a request that is put in wakes the end that sends it, an
//! answer wakes the end that waits. Tokio treats such a task as one that yields: it goes behind all others, and another
//! worker is woken to help. That costs a thread switch per request and per answer.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicU8,
            Ordering::{AcqRel, Relaxed},
        },
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

/// Polls a future, and polls it again if it woke itself meanwhile.
pub(super) struct SelfWakes {
    shared: Arc<Shared>,
    waker: Waker,
}

struct Shared {
    task: AtomicWaker,
    state: AtomicU8,
}

/// No poll is under way: a wake goes to the task.
const AT_REST: u8 = 0;
const POLLED: u8 = 1;
/// Woken during the last poll, or after it; then the task knows.
const WOKEN: u8 = 2;

/// Most polls in a row. A task that has used up its budget would wake itself until it has yielded.
const POLLS_MAX: usize = 4;

impl SelfWakes {
    pub(super) fn new() -> Self {
        let shared = Arc::new(Shared {
            task: AtomicWaker::new(),
            state: AtomicU8::new(AT_REST),
        });
        let waker = Waker::from(shared.clone());
        Self { shared, waker }
    }

    /// Calls `poll`, and again if its waker was woken meanwhile, a few times. The waker wakes the task of `context`
    /// only after `poll` has returned pending.
    ///
    /// After a ready result, the next awaited future must be polled first, like any future: an earlier wake may be
    /// lost.
    pub(super) fn poll<T>(
        &self,
        context: &Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Shared { task, state } = &*self.shared;
        task.register(context.waker());
        for _ in 0..POLLS_MAX {
            state.swap(POLLED, AcqRel);
            let polled = poll(&mut Context::from_waker(&self.waker));
            if polled.is_ready() {
                return polled;
            }
            let rests = state.compare_exchange(POLLED, AT_REST, AcqRel, Relaxed);
            if rests.is_ok() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, AcqRel) == AT_REST {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, AtomicUsize},
        thread,
        time::Duration,
    };

    use super::*;
    use crate::clock::{BootClock, Clock};

    /// How often a task was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_and_the_task_is_not_woken() {
        let (wakes, woken) = (SelfWakes::new(), Arc::<Woken>::default());
        let waker = Waker::from(woken.clone());
        let mut polls = 0;
        let polled = wakes.poll(&Context::from_waker(&waker), |context| {
            polls += 1;
            if polls < 3 {
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, woken.0.load(Relaxed)), (3, 0));
    }

    #[test]
    fn a_future_that_wakes_itself_for_ever_yields_to_other_tasks() {
        let (wakes, woken) = (SelfWakes::new(), Arc::<Woken>::default());
        let waker = Waker::from(woken.clone());
        let mut polls = 0;
        let polled = wakes.poll(&Context::from_waker(&waker), |context| {
            polls += 1;
            assert!(polls < 100, "nobody else has a turn");
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, woken.0.load(Relaxed)), (POLLS_MAX, 1));
    }

    #[test]
    fn a_later_wake_goes_once_to_the_task_that_polled_last() {
        let (wakes, first, last) = (
            SelfWakes::new(),
            Arc::<Woken>::default(),
            Arc::<Woken>::default(),
        );
        let mut inner = None;
        for woken in [&first, &last] {
            let waker = Waker::from(woken.clone());
            let _ = wakes.poll(&Context::from_waker(&waker), |context| {
                inner = Some(context.waker().clone());
                Poll::<()>::Pending
            });
        }
        let inner = inner.unwrap();
        inner.wake_by_ref();
        inner.wake();
        assert_eq!((first.0.load(Relaxed), last.0.load(Relaxed)), (0, 1));
    }

    /// Wakes a parked thread.
    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// A wake that comes during the poll, or right after it.
    #[test]
    fn no_wake_of_another_thread_is_lost() {
        let wakes = SelfWakes::new();
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        for _ in 0..2_000 {
            let done = Arc::new(AtomicBool::new(false));
            let mut other = None;
            let mut poll = |context: &mut Context<'_>| {
                other.get_or_insert_with(|| {
                    let (done, inner) = (done.clone(), context.waker().clone());
                    thread::spawn(move || {
                        done.store(true, Relaxed);
                        inner.wake();
                    })
                });
                match done.load(Relaxed) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            };
            let late = BootClock.now() + Duration::from_secs(10);
            while wakes
                .poll(&Context::from_waker(&waker), &mut poll)
                .is_pending()
            {
                thread::park_timeout(late.since(BootClock.now()));
                assert!(BootClock.now() < late, "nobody was woken");
            }
            other.unwrap().join().unwrap();
        }
    }
}
