//! The beginning of lives, and of sessions.

use zookeeper_client::{Client, CreateMode, Error, StateWatcher};

use super::{
    Shared,
    nodes::{Op, Written, write},
};
use crate::{
    ids::Life,
    shard::{ConnectionId, ShardError, docs::quorum::text::number_text, rules::millis},
};

/// What came of an attempt to make a gate.
pub(super) enum Opened {
    In(Life, StateWatcher),
    /// No life has begun.
    NoLife,
    /// The gate of the former session is gone.
    NoFormer,
    Again,
}

impl Shared {
    /// Makes a gate in the present life, and deletes that of `former`.
    pub(super) async fn open_gate(
        &self,
        id: ConnectionId,
        former: Option<ConnectionId>,
    ) -> Result<Opened, ShardError> {
        let (paths, acls) = (&self.paths, self.wire.acls());
        let ask = |client: Client| async move {
            let life = match client.get_data(&paths.at("life")).await {
                Ok((life, _)) => Life::new(String::from_utf8_lossy(&life).into_owned()),
                Err(Error::NoNode) => return Ok(Opened::NoLife),
                Err(error) => return Err(error),
            };
            let mut ops = vec![
                Op::Check(paths.life(&life), None),
                Op::CreateEphemeral(paths.gate(id)),
            ];
            ops.extend(former.map(|former| Op::Delete(paths.gate(former), None)));
            Ok(match write(&client, acls, &ops).await? {
                Written::Done(_) => Opened::In(life, client.state_watcher()),
                Written::Failed(2) => Opened::NoFormer,
                Written::Failed(_) => Opened::Again,
            })
        };
        Ok(self.wire.ask(ask).await?.value)
    }

    /// Makes all that is not there yet, and begins a life, unless another process does.
    pub(super) async fn begin(&self) -> Result<(), ShardError> {
        let (paths, acls) = (&self.paths, self.wire.acls());
        let life = Life::new(format!("{:032x}", self.wire.random.id()));
        let clock = number_text(millis(self.wire.options.clock.unix()));
        let layout = paths.layout(clock, number_text(0));
        let first = [
            Op::Create(paths.at("life"), life.as_str().into()),
            Op::Create(paths.life(&life), Vec::new()),
        ];
        let ask = |client: Client| {
            let (layout, first) = (&layout, &first);
            async move {
                let kept = CreateMode::Persistent.with_acls(acls);
                client.mkdir(paths.root(), &kept).await?;
                write(&client, acls, layout).await?;
                write(&client, acls, first).await
            }
        };
        self.wire.ask(ask).await.map(drop)
    }
}
