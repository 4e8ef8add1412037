//! Readers and writers of two processes on one key, with their steps in any order.

use shuttle::{
    future::block_on,
    rand::{Rng, thread_rng},
    thread,
};

use super::{
    super::super::{AcquireError, Guard, Owner, Wait},
    interleavings::{Does, Resource, Task, explored, namespace, sharing},
    process::poll_once,
};
use crate::shard::LockMode;

impl Resource {
    /// No writer uses it at the same time, and none used it under a greater token.
    fn read_under(&self, guard: &Guard) {
        let token = guard.token().get();
        {
            let mut used = self.0.lock().unwrap();
            assert!(used.by == 0, "a reader beside a writer");
            assert!(used.token <= token, "a reader before a writer of before");
            used.readers += 1;
            used.newest_reader = used.newest_reader.max(token);
        }
        thread::yield_now();
        assert!(guard.is_held(), "lost");
        self.0.lock().unwrap().readers -= 1;
    }
}

impl Task {
    fn takes(&self, mode: LockMode, wait: Wait, owner: Option<&Owner>) -> Option<Guard> {
        let namespace = namespace();
        let ask = self.ask(wait, owner, &namespace);
        match block_on(self.engine.acquire_share(ask, mode)) {
            Ok(guard) => Some(guard),
            Err(AcquireError::Held { .. }) if wait == Wait::No => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn reads(&self, wait: Wait) {
        for _ in 0..2 {
            let Some(guard) = self.takes(LockMode::Read, wait, None) else {
                continue;
            };
            self.resource.read_under(&guard);
            if thread_rng().gen_bool(0.5) {
                let _ = block_on(guard.release());
            }
        }
    }

    fn writes(&self, then_reads: bool) {
        let guard = self.takes(LockMode::Write, Wait::Forever, None).unwrap();
        self.resource.use_under(&guard, None);
        if then_reads {
            assert!(guard.downgrade());
            self.resource.read_under(&guard);
        }
    }

    /// Asks for one side, and leaves at some time.
    fn leaves(&self, mode: LockMode) {
        let namespace = namespace();
        let ask = self.ask(Wait::Forever, None, &namespace);
        let mut asking = Box::pin(self.engine.acquire_share(ask, mode));
        for _ in 0..thread_rng().gen_range(0..40) {
            if let Some(guard) = poll_once(asking.as_mut()) {
                let guard = guard.unwrap();
                return match mode {
                    LockMode::Read => self.resource.read_under(&guard),
                    _ => self.resource.use_under(&guard, None),
                };
            }
            thread::yield_now();
        }
    }

    /// Enters as a reader what its owner has as a reader or as a writer.
    fn enters_reading(&self, owner: &Owner) {
        let mode = match thread_rng().gen_bool(0.5) {
            true => LockMode::Read,
            false => LockMode::Write,
        };
        let first = self.takes(mode, Wait::Forever, Some(owner)).unwrap();
        let second = self.takes(LockMode::Read, Wait::Forever, Some(owner));
        assert_eq!(second.unwrap().token(), first.token());
        assert!(first.is_held());
    }
}

const READS: Does = |task, _| task.reads(Wait::Forever);
const READS_IF_FREE: Does = |task, _| task.reads(Wait::No);
const LEAVES: Does = |task, _| task.leaves(LockMode::Read);
const LEAVES_WRITING: Does = |task, _| task.leaves(LockMode::Write);
const WRITES: Does = |task, _| task.writes(false);
const WRITES_THEN_READS: Does = |task, _| task.writes(true);
const ENTERS: Does = |task, _| task.enters_reading(&Owner::new());

#[test]
fn readers_of_two_processes_share_and_writers_are_alone() {
    explored(
        sharing(4, None),
        1.0,
        [&[READS, READS, WRITES], &[READS, READS, WRITES]],
    );
}

#[test]
fn readers_that_leave_or_ask_once_leave_nothing() {
    explored(
        sharing(4, None),
        1.0,
        [&[LEAVES, READS_IF_FREE, READS], &[LEAVES, WRITES, LEAVES]],
    );
}

#[test]
fn a_writer_that_becomes_a_reader_lets_in_readers_of_both_processes() {
    explored(
        sharing(4, None),
        1.0,
        [
            &[WRITES_THEN_READS, READS, READS],
            &[READS, WRITES_THEN_READS],
        ],
    );
}

#[test]
fn writers_of_a_process_hand_on_to_each_other() {
    explored(
        sharing(1, None),
        1.0,
        [&[WRITES, WRITES, WRITES, READS], &[WRITES, READS]],
    );
}

#[test]
fn writers_that_leave_or_become_readers_hand_on_nothing_that_they_have_not() {
    explored(
        sharing(4, None),
        1.0,
        [
            &[WRITES_THEN_READS, LEAVES_WRITING, WRITES_THEN_READS],
            &[READS, WRITES],
        ],
    );
}

#[test]
fn an_owner_reads_what_it_reads_or_writes() {
    explored(
        sharing(4, None),
        1.0,
        [&[ENTERS, ENTERS, READS], &[WRITES, ENTERS]],
    );
}

#[test]
fn readers_without_notifications_come_in_by_asking_again() {
    explored(
        sharing(4, None),
        0.0,
        [&[READS, READS, WRITES], &[WRITES, READS]],
    );
}
