//! A connection to a shard on a store of documents.

use std::fmt;

use async_trait::async_trait;

use super::attempt::Desk;
use crate::{
    ids::Life,
    shard::{
        Answers, ConnectionId, Control, ControlLink, ControlReply, CounterAnswers, CounterLink,
        CounterRequest, Inspect, Link, LockLink, Request, ShardError,
        whole::{self, AboutKeys},
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
    async fn call(&mut self, control: Control) -> Result<ControlReply, ShardError> {
        let desk = &mut self.0;
        let about_keys = match whole::control(desk, control).await? {
            Ok(reply) => return Ok(reply),
            Err(about_keys) => about_keys,
        };
        Ok(match about_keys {
            AboutKeys::Inspect(Inspect(key)) => ControlReply::Inspect(desk.inspect(&key).await?),
            AboutKeys::List(list) => ControlReply::List(desk.list(&list).await?),
            AboutKeys::Scan(scan) => ControlReply::Scan(desk.scan(&scan).await?),
            AboutKeys::StillHeld(still) => ControlReply::StillHeld(desk.still_held(&still).await?),
            AboutKeys::AskGroups(ask) => ControlReply::AskGroups(desk.groups(&ask).await?),
            AboutKeys::CopyOut(copy) => ControlReply::CopyOut(desk.copy_out(&copy).await?),
            AboutKeys::CopyIn(copy) => ControlReply::CopyIn(desk.copy_in(&copy).await?),
            AboutKeys::Arrive(arrive) => ControlReply::Arrive(desk.arrive(&arrive).await?),
            AboutKeys::DropGroups(drop) => ControlReply::DropGroups(desk.drop_groups(&drop).await?),
        })
    }
}

impl fmt::Debug for DocsLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.session.fmt(formatter)
    }
}
