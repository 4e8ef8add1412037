//! The mutex of the engine and of its queues: parking_lot's.
//!
//! In unit tests it is a mutex around which shuttle may schedule any other thread, while it
//! explores.

#[cfg(test)]
pub(crate) use explored::{Mutex, explore};
#[cfg(not(test))]
pub(crate) use parking_lot::Mutex;

#[cfg(test)]
mod explored {
    use std::{
        cell::Cell,
        ops::{Deref, DerefMut},
    };

    use shuttle::{Config, MaxSteps, Runner, scheduler::Scheduler, thread};

    thread_local! {
        /// Shuttle runs all its threads on the calling thread.
        static EXPLORES: Cell<bool> = const { Cell::new(false) };
    }

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            if !EXPLORES.get() {
                return MutexGuard(Some(self.0.lock()));
            }
            loop {
                thread::yield_now();
                if let Some(guard) = self.0.try_lock() {
                    return MutexGuard(Some(guard));
                }
            }
        }
    }

    /// `None` after it is unlocked.
    #[derive(Debug)]
    pub(crate) struct MutexGuard<'a, T>(Option<parking_lot::MutexGuard<'a, T>>);

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("locked until dropped")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("locked until dropped")
        }
    }

    impl<T> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            self.0 = None;
            if EXPLORES.get() && !std::thread::panicking() {
                thread::yield_now();
            }
        }
    }

    /// Runs `scenario` in every order that `scheduler` chooses. A thread that waits for ever fails
    /// it.
    pub(crate) fn explore(
        scheduler: impl Scheduler + 'static,
        scenario: impl Fn() + Send + Sync + 'static,
    ) {
        let mut config = Config::new();
        config.stack_size = 1 << 19;
        config.max_steps = MaxSteps::FailAfter(100_000);
        EXPLORES.set(true);
        Runner::new(scheduler, config).run(scenario);
        EXPLORES.set(false);
    }
}
