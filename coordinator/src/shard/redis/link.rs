//! A connection that implements the shard's contract.

use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, Pipeline, Value};
use ringfence_ring::Slot;
use tokio::time::timeout;

use super::{
    Connection, RedisOptions,
    answers::{Reading, unexpected, unless_applied},
    batch::plan,
    counters::{self, carry},
    inspect,
    locks::patience,
    migration,
    whole::Known,
};
use crate::{
    clock::{BootClock, Clock, Instant},
    ids::Life,
    name::LockKey,
    shard::{
        Answers, Arrival, Arrive, AskGroups, ConnectionId, Control, ControlLink, ControlReply,
        CopyIn, CopyOut, CounterAnswers, CounterLink, CounterRequest, DropGroups, Dropped, Groups,
        HeldStill, Inspect, Inspection, Link, List, LockLink, LockPage, Piece, PutAside, Request,
        Scan, ScanPage, ShardError, StillHeld,
        whole::{self, AboutKeys},
    },
};

/// Slots that are looked at in one round trip.
const SLOTS_PER_CALL: usize = 4096;

/// A connection to a shard on Redis.
#[derive(Debug)]
pub(crate) struct RedisLink {
    pub(super) connection: Connection,
    /// How long to wait for replicas.
    replicas_within: Duration,
    /// The most requests about counters in one script call.
    counters_per_call: usize,
    /// Whether the server syncs every write, and when it said so.
    is_synced: Option<(Instant, bool)>,
    /// The server's log.
    log: counters::Log,
    /// How often to ask it.
    settings_every: Duration,
    /// The whole shard, as it was read last.
    pub(super) known: Option<Known>,
    pub(super) scratch: Vec<u8>,
}

impl RedisLink {
    pub(super) fn new(connection: Connection, options: &RedisOptions) -> Self {
        Self {
            connection,
            replicas_within: options.response_timeout / 3,
            counters_per_call: options.counters_per_call.max(1),
            is_synced: None,
            log: counters::Log::default(),
            settings_every: options.settings_every,
            known: None,
            scratch: Vec::with_capacity(256),
        }
    }

    /// Whether the server syncs every write, by its last answer, which is recent.
    pub(super) async fn is_synced(&mut self) -> Result<bool, ShardError> {
        let now = BootClock.now();
        if let Some((asked, is_synced)) = self.is_synced
            && now.since(asked) < self.settings_every
        {
            return Ok(is_synced);
        }
        let is_synced = self.log.is_synced(&mut self.connection).await?;
        self.is_synced = Some((now, is_synced));
        Ok(is_synced)
    }

    /// Whether every write reaches the disk before it is answered.
    pub(crate) fn is_appendonly(&self) -> bool {
        self.connection.server.appendonly
    }

    /// One of `slots` that has a counter.
    pub(crate) async fn slot_with_counters(
        &mut self,
        slots: &[Slot],
    ) -> Result<Option<Slot>, ShardError> {
        for some in slots.chunks(SLOTS_PER_CALL) {
            let mut exist = Pipeline::with_capacity(some.len());
            for slot in some {
                exist
                    .cmd("EXISTS")
                    .arg(self.connection.keys.counters(*slot));
            }
            let found = self.connection.run(&exist).await?;
            if let Some(place) = found.iter().position(|one| *one == Value::Int(1)) {
                return Ok(Some(some[place]));
            }
        }
        Ok(None)
    }

    /// Runs a control script and returns its integers and texts.
    pub(super) async fn control(
        &mut self,
        what: &'static str,
        command: &Cmd,
    ) -> Result<Vec<Value>, ShardError> {
        let value = self.connection.query(what, command).await?;
        let Value::Array(parts) = value else {
            return Err(unexpected(what, &value));
        };
        match parts.first() {
            Some(Value::Int(-1)) => Err(ShardError::Unarmed),
            Some(Value::Int(_)) => Ok(parts),
            _ => Err(unexpected(what, &Value::Array(parts))),
        }
    }
}

#[async_trait]
impl Link for RedisLink {
    fn life(&self) -> &Life {
        &self.connection.server.life
    }

    fn connection(&self) -> ConnectionId {
        self.connection.id
    }

    async fn ended(&mut self) {
        self.connection.ended().await;
    }
}

#[async_trait]
impl LockLink for RedisLink {
    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError> {
        if batch.is_empty() {
            return Reading::new(batch).finish();
        }
        let calls = plan(batch);
        let mut pipeline = Pipeline::with_capacity(calls.len());
        for call in &calls {
            pipeline.add_command(self.command(call, batch));
        }
        let running = self.connection.run(&pipeline);
        let values = match patience(batch) {
            None => running.await?,
            Some(patience) => timeout(patience, running).await.unwrap_or_else(|_| {
                let reason = format!("none in {patience:?}, a third of the shortest lease");
                Err(ShardError::NoReply { reason })
            })?,
        };
        let mut answers = Reading::new(batch);
        let (mut refused, mut applied) = (None, false);
        for (call, value) in calls.iter().zip(values) {
            match answers.read(call, value) {
                Ok(()) => applied = true,
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused {
            Some(error) => Err(unless_applied(error, applied)),
            None => answers.finish(),
        }
    }
}

#[async_trait]
impl CounterLink for RedisLink {
    async fn call(&mut self, batch: &[CounterRequest]) -> Result<CounterAnswers, ShardError> {
        if batch.is_empty() {
            let (quiet, replies) = (true, Vec::new());
            return Ok(CounterAnswers { quiet, replies });
        }
        let is_synced = self.is_synced().await?;
        let runs = batch.chunk_by(|one, next| one.map.takes_along(next.map));
        let batches: Vec<_> = runs
            .flat_map(|run| run.chunks(self.counters_per_call))
            .collect();
        let mut pipeline = Pipeline::with_capacity(batches.len());
        let mut calls = Vec::with_capacity(batches.len());
        for &batch in &batches {
            let (command, call) = counters::command(&self.connection, is_synced, batch);
            pipeline.add_command(command);
            calls.push(call);
        }
        let values = self.connection.run(&pipeline).await?;
        let (mut answers, required) = counters::read(calls.iter().zip(batches), values)?;
        let replies = &mut answers.replies;
        let within = self.replicas_within;
        counters::await_replicas(&mut self.connection, replies, &required, within).await?;
        Ok(answers)
    }
}

#[async_trait]
impl ControlLink for RedisLink {
    async fn call(&mut self, control: Control) -> Result<ControlReply, ShardError> {
        let about_keys = match whole::control(self, control).await? {
            Ok(reply) => return Ok(reply),
            Err(about_keys) => about_keys,
        };
        Ok(match about_keys {
            AboutKeys::Inspect(Inspect(key)) => ControlReply::Inspect(self.inspect(&key).await?),
            AboutKeys::List(list) => ControlReply::List(self.list(&list).await?),
            AboutKeys::Scan(scan) => ControlReply::Scan(self.scan(&scan).await?),
            AboutKeys::StillHeld(still) => ControlReply::StillHeld(self.still_held(&still).await?),
            AboutKeys::AskGroups(ask) => ControlReply::AskGroups(self.groups(&ask).await?),
            AboutKeys::CopyOut(copy) => ControlReply::CopyOut(self.copy_out(&copy).await?),
            AboutKeys::CopyIn(copy) => ControlReply::CopyIn(self.copy_in(&copy).await?),
            AboutKeys::Arrive(arrive) => ControlReply::Arrive(self.arrive(&arrive).await?),
            AboutKeys::DropGroups(drop) => ControlReply::DropGroups(self.drop_groups(&drop).await?),
        })
    }
}

impl RedisLink {
    async fn inspect(&mut self, key: &LockKey) -> Result<Inspection, ShardError> {
        let command = inspect::inspect(&self.connection, key);
        let parts = self.control("inspect", &command).await?;
        inspect::inspection(&parts)
    }

    async fn list(&mut self, list: &List) -> Result<LockPage, ShardError> {
        let command = inspect::list(&self.connection, list);
        let parts = self.control("list", &command).await?;
        let prefix = &self.connection.keys.prefix;
        inspect::page(&parts, prefix, list.namespace.as_ref())
    }

    async fn scan(&mut self, scan: &Scan) -> Result<ScanPage, ShardError> {
        let command = migration::scan(&self.connection, scan);
        let parts = self.control("scan", &command).await?;
        migration::scanned(&parts)
    }

    async fn still_held(&mut self, still: &StillHeld) -> Result<HeldStill, ShardError> {
        let mut found = migration::NOTHING_HELD;
        for (keys, command) in migration::still_held(&self.connection, still) {
            let parts = self.control("still_held", &command).await?;
            migration::add_held(&mut found, keys, &parts)?;
        }
        Ok(found)
    }

    async fn groups(&mut self, ask: &AskGroups) -> Result<Groups, ShardError> {
        let is_synced = self.is_synced().await?;
        let command = carry::groups(&self.connection, is_synced, ask)?;
        carry::found(&self.control("groups", &command).await?)
    }

    async fn copy_out(&mut self, copy: &CopyOut) -> Result<Option<Piece>, ShardError> {
        let is_synced = self.is_synced().await?;
        let command = carry::copy_out(&self.connection, is_synced, copy)?;
        carry::copied_out(&self.control("copy_out", &command).await?)
    }

    async fn copy_in(&mut self, copy: &CopyIn) -> Result<PutAside, ShardError> {
        let command = carry::copy_in(&self.connection, copy)?;
        carry::put_aside(&self.control("copy_in", &command).await?)
    }

    async fn arrive(&mut self, arrive: &Arrive) -> Result<Arrival, ShardError> {
        let is_synced = self.is_synced().await?;
        let command = carry::arrive(&self.connection, is_synced, arrive);
        let (arrival, required) = carry::arrived(&self.control("arrive", &command).await?)?;
        let replicas = counters::replicas(&mut self.connection, required, self.replicas_within);
        let replicas = replicas.await?;
        Ok(match arrival {
            Arrival::Here(_) if replicas < required => {
                Arrival::TooFewReplicas { replicas, required }
            }
            arrival => arrival,
        })
    }

    async fn drop_groups(&mut self, drop: &DropGroups) -> Result<Dropped, ShardError> {
        let command = carry::drop_groups(&self.connection, drop);
        let parts = self.control("drop_groups", &command).await?;
        carry::dropped(&parts)
    }
}
