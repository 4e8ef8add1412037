//! A connection to a shard on a store of documents.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use ringfence_ring::Slot;

use super::attempt::Desk;
use crate::{
    ids::{Epoch, Incarnation, Life},
    name::LockKey,
    shard::{
        Admit, Answers, Arm, ArmAnswer, Armed, Arrival, Arrive, AskGroups, ConnectionId,
        ControlLink, CopyIn, CopyOut, CounterAnswers, CounterLink, CounterRequest, Declare,
        DropGroups, Dropped, ForceOpen, ForcedOpen, Groups, HeldStill, Inspection, Link, List,
        Listing, LockLink, LockPage, MarkQuiet, MigrationLink, Piece, PutAside, Request, Scan,
        ScanPage, ShardError, Step, Stepped, StillHeld,
    },
};

/// A connection to a [`DocsShard`](super::DocsShard).
pub(super) struct DocsLink(pub(super) Desk);

#[async_trait]
impl Link for DocsLink {
    fn life(&self) -> &Life {
        self.0.session.life()
    }

    fn connection(&self) -> ConnectionId {
        self.0.session.id()
    }

    async fn ended(&mut self) {
        self.0.session.ended().await;
    }
}

#[async_trait]
impl LockLink for DocsLink {
    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError> {
        self.0.call(batch).await
    }
}

#[async_trait]
impl CounterLink for DocsLink {
    async fn call(&mut self, _batch: &[CounterRequest]) -> Result<CounterAnswers, ShardError> {
        self.0.refuse_counters().await
    }
}

#[async_trait]
impl ControlLink for DocsLink {
    async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError> {
        self.0.arm(arm).await
    }

    async fn armed(&mut self) -> Result<Option<Armed>, ShardError> {
        self.0.armed().await
    }

    async fn mark_quiet(&mut self, mark: &MarkQuiet) -> Result<bool, ShardError> {
        self.0.mark_quiet(mark).await
    }

    async fn declare(&mut self, declare: &Declare) -> Result<Duration, ShardError> {
        self.0.declare(declare).await
    }

    async fn raise(&mut self, incarnation: Incarnation, epoch: Epoch) -> Result<(), ShardError> {
        self.0.raise(incarnation, epoch).await
    }

    async fn inspect(&mut self, key: &LockKey) -> Result<Inspection, ShardError> {
        self.0.inspect(key).await
    }

    async fn list(&mut self, list: &List) -> Result<LockPage, ShardError> {
        self.0.list(list).await
    }
}

#[async_trait]
impl MigrationLink for DocsLink {
    async fn step(&mut self, step: &Step) -> Result<Stepped, ShardError> {
        self.0.step(step).await
    }

    async fn scan(&mut self, scan: &Scan) -> Result<ScanPage, ShardError> {
        self.0.scan(scan).await
    }

    async fn take_list(&mut self, listing: &Listing) -> Result<Vec<Slot>, ShardError> {
        self.0.take_list(listing).await
    }

    async fn still_held(&mut self, still: &StillHeld) -> Result<HeldStill, ShardError> {
        self.0.still_held(still).await
    }

    async fn groups(&mut self, ask: &AskGroups) -> Result<Groups, ShardError> {
        self.0.groups(ask).await
    }

    async fn copy_out(&mut self, copy: &CopyOut) -> Result<Option<Piece>, ShardError> {
        self.0.copy_out(copy).await
    }

    async fn copy_in(&mut self, copy: &CopyIn) -> Result<PutAside, ShardError> {
        self.0.copy_in(copy).await
    }

    async fn arrive(&mut self, arrive: &Arrive) -> Result<Arrival, ShardError> {
        self.0.arrive(arrive).await
    }

    async fn drop_groups(&mut self, drop: &DropGroups) -> Result<Dropped, ShardError> {
        self.0.drop_groups(drop).await
    }

    async fn admit(&mut self, admit: &Admit) -> Result<Vec<Slot>, ShardError> {
        self.0.admit(admit).await
    }

    async fn force_open(&mut self, force: &ForceOpen) -> Result<ForcedOpen, ShardError> {
        self.0.force_open(force).await
    }
}

impl fmt::Debug for DocsLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.session.fmt(formatter)
    }
}
