//! A connection to a shard on a store of documents.

use std::fmt;

use async_trait::async_trait;

use super::attempt::Desk;
use crate::{
    ids::Life,
    shard::{
        Answers, AskArmed, ConnectionId, Control, ControlLink, ControlReply, CounterAnswers,
        CounterLink, CounterRequest, Inspect, Link, LockLink, Request, ShardError, whole,
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
        Ok(match control {
            Control::Arm(arm) => ControlReply::Arm(whole::arm(desk, &arm).await?),
            Control::AskArmed(AskArmed) => ControlReply::AskArmed(whole::armed(desk).await?),
            Control::MarkQuiet(mark) => {
                ControlReply::MarkQuiet(whole::mark_quiet(desk, &mark).await?)
            }
            Control::Declare(declare) => {
                ControlReply::Declare(whole::declare(desk, &declare).await?)
            }
            Control::Raise(raise) => ControlReply::Raise(whole::raise(desk, raise).await?),
            Control::Inspect(Inspect(key)) => ControlReply::Inspect(desk.inspect(&key).await?),
            Control::List(list) => ControlReply::List(desk.list(&list).await?),
            Control::Step(step) => ControlReply::Step(whole::step(desk, &step).await?),
            Control::Scan(scan) => ControlReply::Scan(desk.scan(&scan).await?),
            Control::Listing(listing) => {
                ControlReply::Listing(whole::take_list(desk, &listing).await?)
            }
            Control::StillHeld(still) => ControlReply::StillHeld(desk.still_held(&still).await?),
            Control::AskGroups(ask) => ControlReply::AskGroups(desk.groups(&ask).await?),
            Control::CopyOut(copy) => ControlReply::CopyOut(desk.copy_out(&copy).await?),
            Control::CopyIn(copy) => ControlReply::CopyIn(desk.copy_in(&copy).await?),
            Control::Arrive(arrive) => ControlReply::Arrive(desk.arrive(&arrive).await?),
            Control::DropGroups(drop) => ControlReply::DropGroups(desk.drop_groups(&drop).await?),
            Control::Admit(admit) => ControlReply::Admit(whole::admit(desk, &admit).await?),
            Control::ForceOpen(force) => {
                ControlReply::ForceOpen(whole::force_open(desk, &force).await?)
            }
        })
    }
}

impl fmt::Debug for DocsLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.session.fmt(formatter)
    }
}
