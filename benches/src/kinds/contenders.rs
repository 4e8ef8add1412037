//! What takes part, and one turn of each.

use std::{hint::black_box, time::Duration};

use ringfence_client::{Client, Lock, MultiLock};
use tokio::time::sleep;

use crate::{Failure, LEASE};

/// Permits of the semaphore that 64 tasks want.
pub(crate) const PERMITS: u32 = 8;
/// How long they keep one.
const HELD_FOR: Duration = Duration::from_millis(1);
/// Keys of a multi-lock.
const KEYS: usize = 4;

/// Clients of one server, and of three.
pub(crate) struct Clients {
    pub(crate) one: Client,
    pub(crate) without_hand_off: Client,
    pub(crate) three: Client,
}

/// What the tasks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// Each task has a key of its own.
    OwnKeys,
    /// All want one.
    OneKey,
    /// As many tasks, each with four keys of its own.
    FourKeys(usize),
}

/// A way to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mutex,
    /// The same: what the machine does to a ratio.
    MutexAgain,
    MutexWithoutHandOff,
    Permit,
    Reader,
    Writer,
    MultiLock,
    OneByOne,
}

impl Situation {
    pub(crate) const ALL: [Self; 4] = [
        Self::OwnKeys,
        Self::OneKey,
        Self::FourKeys(1),
        Self::FourKeys(16),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::OwnKeys => "64 keys".into(),
            Self::OneKey => format!("1 key, held for {HELD_FOR:?}"),
            Self::FourKeys(1) => "4 keys, 1 task".into(),
            Self::FourKeys(tasks) => format!("4 keys, {tasks} tasks"),
        }
    }

    pub(crate) fn contenders(self) -> &'static [Kind] {
        match self {
            Self::OwnKeys => &[
                Kind::Mutex,
                Kind::MutexAgain,
                Kind::Permit,
                Kind::Reader,
                Kind::Writer,
            ],
            Self::OneKey => &[
                Kind::Mutex,
                Kind::MutexAgain,
                Kind::MutexWithoutHandOff,
                Kind::Permit,
            ],
            Self::FourKeys(_) => &[Kind::MultiLock, Kind::OneByOne],
        }
    }

    pub(crate) fn tasks(self, kind: Kind, clients: &Clients) -> Vec<Task> {
        let count = match self {
            Self::OwnKeys | Self::OneKey => 64,
            Self::FourKeys(tasks) => tasks,
        };
        (0..count).map(|n| self.task(n, kind, clients)).collect()
    }

    fn task(self, number: usize, kind: Kind, clients: &Clients) -> Task {
        let client = match (self, kind) {
            (Self::FourKeys(_), _) => &clients.three,
            (_, Kind::MutexWithoutHandOff) => &clients.without_hand_off,
            _ => &clients.one,
        };
        let name = match self {
            Self::OneKey => format!("{kind:?}/wanted"),
            _ => format!("{kind:?}/{number}"),
        };
        let keys = (0..KEYS).map(|key| format!("{name}/{key}"));
        let lock = match kind {
            Kind::Mutex | Kind::MutexAgain | Kind::MutexWithoutHandOff => client.lock(name),
            Kind::Permit => client.semaphore(name, PERMITS).permit(),
            Kind::Reader => client.rw_lock(name).read(),
            Kind::Writer => client.rw_lock(name).write(),
            Kind::MultiLock => return Task::Set(client.multi_lock(keys).lease(LEASE)),
            Kind::OneByOne => {
                let locks = keys.map(|key| client.lock(key).lease(LEASE));
                return Task::OneByOne(locks.collect());
            }
        };
        let held_for = (self == Self::OneKey).then_some(HELD_FOR);
        Task::Lock(lock.lease(LEASE), held_for)
    }
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::MutexAgain => "mutex-again",
            Self::MutexWithoutHandOff => "mutex, no hand-off",
            Self::Permit => "permit of 8",
            Self::Reader => "reader",
            Self::Writer => "writer",
            Self::MultiLock => "multi-lock",
            Self::OneByOne => "one by one",
        }
    }
}

/// Acquires and releases, again and again.
pub(crate) enum Task {
    Lock(Lock, Option<Duration>),
    Set(MultiLock),
    OneByOne(Vec<Lock>),
}

impl crate::Task for Task {
    async fn pair(&self) -> Result<(), Failure> {
        match self {
            Self::Lock(lock, held_for) => {
                let guard = lock.acquire().await?;
                black_box(guard.token());
                if let Some(held_for) = held_for {
                    sleep(*held_for).await;
                }
                guard.release().await;
            }
            Self::Set(set) => {
                let guard = set.acquire().await?;
                black_box(guard.tokens());
                guard.release().await;
            }
            Self::OneByOne(locks) => {
                let mut guards = Vec::new();
                for lock in locks {
                    guards.push(lock.acquire().await?);
                }
                for guard in guards {
                    guard.release().await;
                }
            }
        }
        Ok(())
    }
}
