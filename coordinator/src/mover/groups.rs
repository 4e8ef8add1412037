//! A mover's requests to a shard about counters.

use ringfence_ring::{ShardId, Slot};

use super::shards::{Shards, Trouble};
use crate::{
    shard::{
        Admit, Arrival, Arrive, AskGroups, CopyIn, CopyOut, DropGroups, Dropped, Groups, Piece,
        PutAside,
    },
    topology::Topology,
};

impl Shards {
    pub(super) async fn groups(
        &self,
        record: &Topology,
        id: &ShardId,
        ask: &AskGroups,
    ) -> Result<Groups, Trouble> {
        let mut link = self.link(record, id).await?;
        let answer = self.ask(link.groups(ask)).await;
        self.back(link, answer)
    }

    pub(super) async fn copy_out(
        &self,
        record: &Topology,
        id: &ShardId,
        copy: &CopyOut,
    ) -> Result<Option<Piece>, Trouble> {
        let mut link = self.link(record, id).await?;
        let answer = self.ask(link.copy_out(copy)).await;
        self.back(link, answer)
    }

    pub(super) async fn copy_in(
        &self,
        record: &Topology,
        id: &ShardId,
        copy: &CopyIn,
    ) -> Result<PutAside, Trouble> {
        let mut link = self.link(record, id).await?;
        let answer = self.ask(link.copy_in(copy)).await;
        self.back(link, answer)
    }

    pub(super) async fn arrive(
        &self,
        record: &Topology,
        id: &ShardId,
        arrive: &Arrive,
    ) -> Result<Arrival, Trouble> {
        let mut link = self.link(record, id).await?;
        let answer = self.ask(link.arrive(arrive)).await;
        self.back(link, answer)
    }

    pub(super) async fn drop_groups(
        &self,
        record: &Topology,
        id: &ShardId,
        drop: &DropGroups,
    ) -> Result<Dropped, Trouble> {
        let mut link = self.link(record, id).await?;
        let answer = self.ask(link.drop_groups(drop)).await;
        self.back(link, answer)
    }

    pub(super) async fn admit(
        &self,
        record: &Topology,
        id: &ShardId,
        admit: &Admit,
    ) -> Result<Vec<Slot>, Trouble> {
        let mut link = self.link(record, id).await?;
        let answer = self.ask(link.admit(admit)).await;
        self.back(link, answer)
    }
}
