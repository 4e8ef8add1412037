//! A connection that implements the shard's contract.

use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, Pipeline, Value};
use ringfence_ring::Slot;
use tokio::time::timeout;

use super::{
    Connection, RedisOptions,
    answers::{Reading, integers, text, unexpected, unless_applied},
    batch::plan,
    counters::{self, carry},
    decommission, inspect,
    locks::patience,
    migration, scripts,
};
use crate::{
    clock::{BootClock, Clock, Instant},
    failpoint::{Rule, is_off},
    ids::{Epoch, Life},
    name::LockKey,
    shard::{
        Admit, Answers, Arm, ArmAnswer, Armed, Arrival, Arrive, AskArmed, AskGroups, ConnectionId,
        Control, ControlLink, ControlReply, CopyIn, CopyOut, CounterAnswers, CounterLink,
        CounterRequest, Counters, Declare, DropGroups, Dropped, ForceOpen, ForcedOpen, Grace,
        Groups, HeldStill, Inspect, Inspection, Link, List, Listing, LockLink, LockPage, MarkQuiet,
        Piece, PutAside, Raise, Request, Scan, ScanPage, ShardError, Step, Stepped, StillHeld,
    },
};

/// A connection to a shard on Redis.
#[derive(Debug)]
pub(super) struct RedisLink {
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
            scratch: Vec::with_capacity(256),
        }
    }

    /// Whether the server syncs every write, by its last answer, which is recent.
    async fn is_synced(&mut self) -> Result<bool, ShardError> {
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

    /// Runs a control script and returns its integers and texts.
    async fn control(
        &mut self,
        what: &'static str,
        command: &Cmd,
    ) -> Result<Vec<Value>, ShardError> {
        let value = self.connection.query(what, command).await?;
        let Value::Array(parts) = value else {
            return Err(unexpected(what, &value));
        };
        match (parts.first(), parts.get(1)) {
            (Some(Value::Int(-1)), _) => Err(ShardError::Unarmed),
            (Some(Value::Int(-2)), Some(fence)) => Err(ShardError::Stale { fence: text(fence) }),
            (Some(Value::Int(-3)), Some(reason)) => Err(ShardError::Refused {
                what,
                reason: text(reason),
            }),
            (Some(Value::Int(_)), _) => Ok(parts),
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
        Ok(match control {
            Control::Arm(arm) => ControlReply::Arm(self.arm(&arm).await?),
            Control::AskArmed(AskArmed) => ControlReply::AskArmed(self.armed().await?),
            Control::MarkQuiet(mark) => ControlReply::MarkQuiet(self.mark_quiet(&mark).await?),
            Control::Declare(declare) => ControlReply::Declare(self.declare(&declare).await?),
            Control::Raise(raise) => ControlReply::Raise(self.raise(raise).await?),
            Control::Inspect(Inspect(key)) => ControlReply::Inspect(self.inspect(&key).await?),
            Control::List(list) => ControlReply::List(self.list(&list).await?),
            Control::Step(step) => ControlReply::Step(self.step(&step).await?),
            Control::Scan(scan) => ControlReply::Scan(self.scan(&scan).await?),
            Control::Listing(listing) => ControlReply::Listing(self.take_list(&listing).await?),
            Control::StillHeld(still) => ControlReply::StillHeld(self.still_held(&still).await?),
            Control::AskGroups(ask) => ControlReply::AskGroups(self.groups(&ask).await?),
            Control::CopyOut(copy) => ControlReply::CopyOut(self.copy_out(&copy).await?),
            Control::CopyIn(copy) => ControlReply::CopyIn(self.copy_in(&copy).await?),
            Control::Arrive(arrive) => ControlReply::Arrive(self.arrive(&arrive).await?),
            Control::DropGroups(drop) => ControlReply::DropGroups(self.drop_groups(&drop).await?),
            Control::Admit(admit) => ControlReply::Admit(self.admit(&admit).await?),
            Control::ForceOpen(force) => ControlReply::ForceOpen(self.force_open(&force).await?),
        })
    }
}

impl RedisLink {
    async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError> {
        let origin = match arm.counters {
            Counters::Never => {
                let is_synced = self.is_synced().await?;
                counters::origin(&self.connection, is_synced)
            }
            Counters::Kept | Counters::Lost => String::new(),
        };
        let Connection {
            keys,
            server,
            address,
            ..
        } = &self.connection;
        let (grace, less_uptime) = match arm.grace {
            _ if is_off(Rule::Grace) => (Duration::ZERO, 0),
            Grace::Full(length) => (length, 0),
            Grace::LessUptime(length) => (length, 1),
            Grace::None => (Duration::ZERO, 0),
        };
        let mut command = server.call(&scripts::ARM, 11);
        command
            .arg(&keys.state)
            .arg(&keys.ctr)
            .arg(&keys.slots)
            .arg(&keys.open)
            .arg(&keys.quiet);
        command
            .arg(&keys.fence)
            .arg(&keys.copy)
            .arg(&keys.lives)
            .arg(&keys.pointer)
            .arg(&keys.lineage)
            .arg(&keys.complete);
        command
            .arg(&server.replid)
            .arg(server.life.as_str())
            .arg(&arm.topology);
        command
            .arg(arm.incarnation.to_string())
            .arg(arm.copy.0)
            .arg(&arm.copy.1);
        command
            .arg(arm.epoch.0)
            .arg(arm.token_epoch.0)
            .arg(arm.slots.as_bytes());
        command
            .arg(grace.as_millis() as u64)
            .arg(less_uptime)
            .arg(&keys.life_family)
            .arg(migration::bits(arm.slots.open()))
            .arg(arm.declared.0)
            .arg(address)
            .arg(match arm.counters {
                Counters::Never => "never",
                Counters::Kept => "",
                Counters::Lost => "lost",
            })
            .arg(origin);
        let parts = self.control("arm", &command).await?;
        let [armed, grace_left] = integers("arm", &parts)?;
        Ok(ArmAnswer {
            armed_now: armed == 1,
            grace_left: Duration::from_millis(grace_left),
        })
    }

    async fn armed(&mut self) -> Result<Option<Armed>, ShardError> {
        let Connection { keys, server, .. } = &self.connection;
        let mut command = server.call(&scripts::ARMED, 1);
        command.arg(&keys.state).arg(&server.replid);
        let parts = self.control("armed", &command).await?;
        if parts.len() == 1 {
            return Ok(None);
        }
        let [_, epoch, grace_left] = integers("armed", &parts)?;
        Ok(Some(Armed {
            epoch: Epoch(epoch),
            grace_left: Duration::from_millis(grace_left),
        }))
    }

    async fn mark_quiet(&mut self, mark: &MarkQuiet) -> Result<bool, ShardError> {
        let Connection { keys, server, .. } = &self.connection;
        let mut command = server.call(&scripts::MARK_QUIET, 6);
        command
            .arg(&keys.quiet)
            .arg(&keys.state)
            .arg(&keys.open)
            .arg(&keys.fence)
            .arg(&keys.copy)
            .arg(&keys.lives);
        migration::push_record(&mut command, server, mark.incarnation, &mark.copy);
        command
            .arg(mark.map.0)
            .arg(migration::bits(mark.slots.iter().copied()));
        let parts = self.control("mark_quiet", &command).await?;
        let [quiet] = integers("mark_quiet", &parts)?;
        Ok(quiet == 1)
    }

    async fn declare(&mut self, declare: &Declare) -> Result<Duration, ShardError> {
        let Connection { keys, server, .. } = &self.connection;
        let mut command = server.call(&scripts::DECLARE, 5);
        command
            .arg(&keys.quiet)
            .arg(&keys.state)
            .arg(&keys.fence)
            .arg(&keys.copy)
            .arg(&keys.lives);
        migration::push_record(&mut command, server, declare.incarnation, &declare.copy);
        command.arg(declare.declared.0);
        let parts = self.control("declare", &command).await?;
        let [grace_left] = integers("declare", &parts)?;
        Ok(Duration::from_millis(grace_left))
    }

    async fn raise(&mut self, raise: Raise) -> Result<(), ShardError> {
        let Connection { keys, server, .. } = &self.connection;
        let mut command = server.call(&scripts::RAISE, 5);
        command
            .arg(&keys.quiet)
            .arg(&keys.state)
            .arg(&keys.ctr)
            .arg(&keys.fence)
            .arg(&keys.lives);
        command
            .arg(&server.replid)
            .arg(server.life.as_str())
            .arg(raise.incarnation.to_string())
            .arg(raise.epoch.0);
        self.control("raise", &command).await.map(drop)
    }

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

    async fn step(&mut self, step: &Step) -> Result<Stepped, ShardError> {
        let command = migration::step(&self.connection, step);
        let parts = self.control("step", &command).await?;
        migration::stepped(&parts)
    }

    async fn scan(&mut self, scan: &Scan) -> Result<ScanPage, ShardError> {
        let command = migration::scan(&self.connection, scan);
        let parts = self.control("scan", &command).await?;
        migration::scanned(&parts)
    }

    async fn take_list(&mut self, listing: &Listing) -> Result<Vec<Slot>, ShardError> {
        let command = migration::take_list(&self.connection, listing);
        let parts = self.control("take_list", &command).await?;
        migration::slots("take_list", &parts[1..])
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

    async fn admit(&mut self, admit: &Admit) -> Result<Vec<Slot>, ShardError> {
        let command = carry::admit(&self.connection, admit);
        let parts = self.control("admit", &command).await?;
        migration::slots("admit", &parts[1..])
    }

    async fn force_open(&mut self, force: &ForceOpen) -> Result<ForcedOpen, ShardError> {
        let command = decommission::force_open(&self.connection, force);
        let parts = self.control("force_open", &command).await?;
        decommission::forced_open(&parts)
    }
}
