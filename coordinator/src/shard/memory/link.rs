//! One connection.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_ring::Slot;

use super::{
    shared::{Connection, Shared},
    state::Memory,
};
use crate::{
    ids::{Epoch, Incarnation, Life},
    name::LockKey,
    shard::{
        Admit, Answers, Arm, ArmAnswer, Armed, Arrival, Arrive, AskGroups, ConnectionId,
        ControlLink, CopyIn, CopyOut, CounterAnswers, CounterLink, CounterRequest, Declare,
        DropGroups, Dropped, ForceOpen, ForcedOpen, Groups, HeldStill, Inspection, Link, List,
        Listing, LockLink, LockPage, MarkQuiet, MigrationLink, Piece, PutAside, Request, Scan,
        ScanPage, ShardError, Step, Stepped, StillHeld, rules,
    },
};

/// A connection to a [`MemoryShard`](super::MemoryShard).
pub(super) struct MemoryLink {
    shared: Arc<Shared>,
    connection: Connection,
}

impl MemoryLink {
    pub(super) fn new(shared: Arc<Shared>, connection: Connection) -> Self {
        Self { shared, connection }
    }

    /// Sends `command` to the shard, and returns its answer. The faults say how long that takes.
    async fn exchange<T, C>(&self, command: C) -> Result<T, ShardError>
    where
        C: FnOnce(&mut Memory, u64) -> Result<T, ShardError> + Send + 'static,
    {
        self.shared.state().check_open(&self.connection)?;
        let mut flight = Flight {
            link: self,
            command: Some(command),
            answered: false,
        };
        self.shared.travel().await;
        let answer = flight.land();
        self.shared.travel().await;
        flight.answered = true;
        answer
    }
}

/// A command under way. If it is dropped before it lands, the shard applies it later. If it is dropped before the
/// answer is back, it ends the connection: the next answer on that would be this one.
struct Flight<'a, T, C>
where
    C: FnOnce(&mut Memory, u64) -> Result<T, ShardError> + Send + 'static,
{
    link: &'a MemoryLink,
    command: Option<C>,
    answered: bool,
}

impl<T, C> Flight<'_, T, C>
where
    C: FnOnce(&mut Memory, u64) -> Result<T, ShardError> + Send + 'static,
{
    fn land(&mut self) -> Result<T, ShardError> {
        let command = self.command.take().expect("lands once");
        self.link.shared.apply(&self.link.connection, command)
    }
}

impl<T, C> Drop for Flight<'_, T, C>
where
    C: FnOnce(&mut Memory, u64) -> Result<T, ShardError> + Send + 'static,
{
    fn drop(&mut self) {
        let MemoryLink { shared, connection } = self.link;
        if let Some(command) = self.command.take() {
            let late = move |memory: &mut Memory, now_ms| drop(command(memory, now_ms));
            shared.keep_late(connection, Box::new(late));
        }
        if !self.answered {
            shared.close(connection.id);
        }
    }
}

#[async_trait]
impl Link for MemoryLink {
    fn life(&self) -> &Life {
        &self.connection.life
    }

    fn connection(&self) -> ConnectionId {
        self.connection.id
    }

    async fn ended(&mut self) {
        std::future::pending().await
    }
}

#[async_trait]
impl LockLink for MemoryLink {
    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError> {
        if !self.shared.is_slow() {
            return self
                .shared
                .apply(&self.connection, |memory, now| memory.call(batch, now));
        }
        let batch = batch.to_vec();
        self.exchange(move |memory, now| memory.call(&batch, now))
            .await
    }
}

#[async_trait]
impl CounterLink for MemoryLink {
    async fn call(&mut self, batch: &[CounterRequest]) -> Result<CounterAnswers, ShardError> {
        let (batch, shared) = (batch.to_vec(), self.shared.clone());
        self.exchange(move |memory, _| memory.call_counters(&batch, shared.unix_ms()))
            .await
    }
}

#[async_trait]
impl ControlLink for MemoryLink {
    async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError> {
        let arm = arm.clone();
        self.exchange(move |memory, now| memory.arm(&arm, now))
            .await
    }

    async fn armed(&mut self) -> Result<Option<Armed>, ShardError> {
        self.exchange(|memory, now| Ok(memory.is_armed(now))).await
    }

    async fn mark_quiet(&mut self, mark: &MarkQuiet) -> Result<bool, ShardError> {
        let mark = mark.clone();
        self.exchange(move |Memory { head, slots, .. }, now| {
            rules::mark_quiet(head, slots, &mark, now)
        })
        .await
    }

    async fn declare(&mut self, declare: &Declare) -> Result<Duration, ShardError> {
        let declare = declare.clone();
        self.exchange(move |memory, now| rules::declare(&mut memory.head, &declare, now))
            .await
    }

    async fn raise(&mut self, incarnation: Incarnation, epoch: Epoch) -> Result<(), ShardError> {
        self.exchange(move |memory, _| rules::raise(&mut memory.head, incarnation, epoch))
            .await
    }

    async fn inspect(&mut self, key: &LockKey) -> Result<Inspection, ShardError> {
        let key = key.clone();
        self.exchange(move |memory, now| memory.inspect(&key, now))
            .await
    }

    async fn list(&mut self, list: &List) -> Result<LockPage, ShardError> {
        let list = list.clone();
        self.exchange(move |memory, now| memory.list(&list, now))
            .await
    }
}

#[async_trait]
impl MigrationLink for MemoryLink {
    async fn step(&mut self, step: &Step) -> Result<Stepped, ShardError> {
        let step = step.clone();
        self.exchange(move |memory, now| memory.step(&step, now))
            .await
    }

    async fn scan(&mut self, scan: &Scan) -> Result<ScanPage, ShardError> {
        let scan = scan.clone();
        self.exchange(move |memory, now| memory.scan(&scan, now))
            .await
    }

    async fn take_list(&mut self, listing: &Listing) -> Result<Vec<Slot>, ShardError> {
        let listing = listing.clone();
        self.exchange(move |Memory { head, slots, .. }, _| rules::take_list(head, slots, &listing))
            .await
    }

    async fn still_held(&mut self, still: &StillHeld) -> Result<HeldStill, ShardError> {
        let still = still.clone();
        self.exchange(move |memory, now| memory.still_held(&still, now))
            .await
    }

    async fn groups(&mut self, ask: &AskGroups) -> Result<Groups, ShardError> {
        let ask = ask.clone();
        self.exchange(move |memory, _| memory.groups(&ask)).await
    }

    async fn copy_out(&mut self, copy: &CopyOut) -> Result<Option<Piece>, ShardError> {
        let copy = copy.clone();
        self.exchange(move |memory, _| memory.copy_out(&copy)).await
    }

    async fn copy_in(&mut self, copy: &CopyIn) -> Result<PutAside, ShardError> {
        let copy = copy.clone();
        self.exchange(move |memory, now| memory.copy_in(&copy, now))
            .await
    }

    async fn arrive(&mut self, arrive: &Arrive) -> Result<Arrival, ShardError> {
        let arrive = arrive.clone();
        self.exchange(move |memory, _| memory.arrive(&arrive)).await
    }

    async fn drop_groups(&mut self, drop: &DropGroups) -> Result<Dropped, ShardError> {
        let drop = drop.clone();
        self.exchange(move |memory, _| memory.drop_groups(&drop))
            .await
    }

    async fn admit(&mut self, admit: &Admit) -> Result<Vec<Slot>, ShardError> {
        let admit = admit.clone();
        self.exchange(move |memory, _| memory.admit(&admit)).await
    }

    async fn force_open(&mut self, force: &ForceOpen) -> Result<ForcedOpen, ShardError> {
        let force = force.clone();
        self.exchange(move |memory, now| {
            let Memory { head, slots, .. } = memory;
            let forced = rules::force_open(head, slots, &force, now)?;
            memory.counters.complete &= forced.refused.len() == force.slots.len();
            Ok(forced)
        })
        .await
    }
}

impl std::fmt::Debug for MemoryLink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.connection.fmt(formatter)
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        self.shared.close(self.connection.id);
    }
}
