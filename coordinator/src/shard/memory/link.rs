//! One connection.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    shared::{Connection, Shared},
    state::Memory,
};
use crate::{
    ids::Life,
    shard::{
        Answers, ConnectionId, Control, ControlLink, ControlReply, CounterAnswers, CounterLink,
        CounterRequest, Link, LockLink, Request, ShardError,
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
    async fn call(&mut self, control: Control) -> Result<ControlReply, ShardError> {
        self.exchange(move |memory, now| memory.control(control, now))
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
