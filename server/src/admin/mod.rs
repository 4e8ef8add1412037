//! AdminService: the topology, its changes, and releases by force.

mod resize;

use std::{future::ready, time::Duration};

use ringfence_api::{
    Error,
    v1::{
        AbortResizeRequest, AbortResizeResponse, AddShardRequest, AddShardResponse, DrainRequest,
        DrainResponse, ForceReleaseRequest, ForceReleaseResponse, GetTopologyRequest,
        GetTopologyResponse, RemoveShardRequest, RemoveShardResponse, ResumeResizeRequest,
        ResumeResizeResponse, Shard, WeighShardRequest, WeighShardResponse,
        admin_service_server::AdminService,
    },
};
use ringfence_client::{Client, Holder, NewShard, Reshape, Resize, ShardId, ShardStatus, Topology};
use ringfence_coordinator::name::Printed;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use self::resize::{Answers, shard_id, weight};
use crate::{
    access::{Audit, Call, admit},
    deadline::Deadline,
    errors,
    fields::{namespace, to_length},
    locks::holder,
};

/// Bytes in a reason, at most.
const REASON_BYTES_MAX: usize = 1024;

/// Serves AdminService.
pub(crate) struct Admin {
    client: Client,
    /// The coordinator stops once this is cancelled, within `grace`.
    stopping: CancellationToken,
    grace: Duration,
}

impl Admin {
    /// Serves the shards of `client`, in a coordinator that stops with `stopping`.
    pub(crate) fn new(client: Client, stopping: CancellationToken, grace: Duration) -> Self {
        Self {
            client,
            stopping,
            grace,
        }
    }

    async fn reshape(&self, reshape: Reshape) -> Result<Resize, Error> {
        let begun = self.client.ring().reshape(reshape).await;
        begun.map_err(|error| errors::reshape(&error))
    }
}

#[tonic::async_trait]
impl AdminService for Admin {
    async fn get_topology(
        &self,
        request: Request<GetTopologyRequest>,
    ) -> Result<Response<GetTopologyResponse>, Status> {
        let _admitted = admit(&request, Call::Admin)?;
        let deadline = Deadline::of(&request);
        let shards = deadline.run(self.client.shards()).await?;
        let topology = self.client.topology();
        let shards = shards
            .iter()
            .map(|(id, status)| shard(&topology, id, status));
        Ok(Response::new(GetTopologyResponse {
            id: topology.id.clone(),
            version: topology.version,
            max_lease: Some(to_length(topology.constants.max_lease())),
            shards: shards.collect(),
            resizing: topology.is_under_way(),
        }))
    }

    async fn drain(
        &self,
        request: Request<DrainRequest>,
    ) -> Result<Response<DrainResponse>, Status> {
        let _admitted = admit(&request, Call::Admin)?;
        let audit = Audit::of(&request, "Drain", "this coordinator")?;
        self.stopping.cancel();
        audit.run(ready(Ok(()))).await?;
        Ok(Response::new(DrainResponse {
            grace: Some(to_length(self.grace)),
        }))
    }

    async fn force_release(
        &self,
        request: Request<ForceReleaseRequest>,
    ) -> Result<Response<ForceReleaseResponse>, Status> {
        let ForceReleaseRequest {
            namespace: of, key, ..
        } = request.get_ref();
        let _admitted = admit(&request, Call::ForceRelease(of, key))?;
        let deadline = Deadline::of(&request);
        let what = format!("{}/{}", namespace(of), Printed(key));
        let audit = Audit::of(&request, "ForceRelease", what)?;
        let ForceReleaseRequest {
            namespace: of,
            key,
            reason,
        } = request.into_inner();
        let released = force_release(&self.client, (&of, &key), &reason, deadline);
        let released = audit.run(released).await?;
        Ok(Response::new(ForceReleaseResponse {
            holders: released.iter().map(holder).collect(),
        }))
    }

    type AddShardStream = Answers<AddShardResponse>;

    async fn add_shard(
        &self,
        request: Request<AddShardRequest>,
    ) -> Result<Response<Self::AddShardStream>, Status> {
        let admitted = admit(&request, Call::Admin)?;
        let id = match &*request.get_ref().id {
            "" => "an id that is free",
            id => id,
        };
        let audit = Audit::of(&request, "AddShard", id)?;
        let AddShardRequest {
            url,
            id,
            weight: of,
        } = request.into_inner();
        let mut shard = NewShard::redis(url).weight(weight(of.max(1))?);
        if !id.is_empty() {
            shard = shard.id(shard_id(&id)?);
        }
        let resize = self.reshape(Reshape::new().add_shard(shard));
        let resize = audit.run(resize).await?;
        let answer = |progress| AddShardResponse {
            progress: Some(progress),
        };
        Ok(Response::new(resize::run(resize, admitted, answer)))
    }

    type RemoveShardStream = Answers<RemoveShardResponse>;

    async fn remove_shard(
        &self,
        request: Request<RemoveShardRequest>,
    ) -> Result<Response<Self::RemoveShardStream>, Status> {
        let admitted = admit(&request, Call::Admin)?;
        let id = shard_id(&request.get_ref().id)?;
        let audit = Audit::of(&request, "RemoveShard", id.as_str())?;
        let resize = self.reshape(Reshape::new().remove_shard(id));
        let resize = audit.run(resize).await?;
        let answer = |progress| RemoveShardResponse {
            progress: Some(progress),
        };
        Ok(Response::new(resize::run(resize, admitted, answer)))
    }

    type WeighShardStream = Answers<WeighShardResponse>;

    async fn weigh_shard(
        &self,
        request: Request<WeighShardRequest>,
    ) -> Result<Response<Self::WeighShardStream>, Status> {
        let admitted = admit(&request, Call::Admin)?;
        let WeighShardRequest { id, weight: of } = request.get_ref();
        let id = shard_id(id)?;
        let audit = Audit::of(&request, "WeighShard", id.as_str())?;
        let weighed = Reshape::new().weigh_shard(id, weight(*of)?);
        let resize = audit.run(self.reshape(weighed)).await?;
        let answer = |progress| WeighShardResponse {
            progress: Some(progress),
        };
        Ok(Response::new(resize::run(resize, admitted, answer)))
    }

    type ResumeResizeStream = Answers<ResumeResizeResponse>;

    async fn resume_resize(
        &self,
        request: Request<ResumeResizeRequest>,
    ) -> Result<Response<Self::ResumeResizeStream>, Status> {
        let admitted = admit(&request, Call::Admin)?;
        let audit = Audit::of(&request, "ResumeResize", "the ring")?;
        let resize = audit.run(ready(Ok(self.client.ring().resume()))).await?;
        let answer = |progress| ResumeResizeResponse {
            progress: Some(progress),
        };
        Ok(Response::new(resize::run(resize, admitted, answer)))
    }

    type AbortResizeStream = Answers<AbortResizeResponse>;

    async fn abort_resize(
        &self,
        request: Request<AbortResizeRequest>,
    ) -> Result<Response<Self::AbortResizeStream>, Status> {
        let admitted = admit(&request, Call::Admin)?;
        let audit = Audit::of(&request, "AbortResize", "the ring")?;
        let aborted = async {
            let aborted = self.client.ring().abort().await;
            aborted.map_err(|error| errors::reshape(&error))
        };
        let resize = audit.run(aborted).await?;
        let answer = |progress| AbortResizeResponse {
            progress: Some(progress),
        };
        Ok(Response::new(resize::run(resize, admitted, answer)))
    }
}

/// Takes the lock from its holders, and returns them.
pub(crate) async fn force_release(
    client: &Client,
    (of, key): (&str, &[u8]),
    reason: &str,
    deadline: Deadline,
) -> Result<Vec<Holder>, Error> {
    if !(1..=REASON_BYTES_MAX).contains(&reason.len()) {
        let value = format!("{} bytes long", reason.len());
        let limit = format!("1 to {REASON_BYTES_MAX}");
        return Err(Error::invalid("reason", value, limit));
    }
    let lock = client.lock(key).namespace(namespace(of));
    let released = deadline.run(lock.force_release(reason)).await?;
    released.map_err(|error| errors::lock(&error))
}

fn shard(topology: &Topology, id: &ShardId, status: &ShardStatus) -> Shard {
    let left = status.grace_left;
    Shard {
        id: id.to_string(),
        address: topology
            .shard(id)
            .map(|entry| entry.address.clone())
            .unwrap_or_default(),
        share: status.share,
        recovering_for: (!left.is_zero()).then(|| to_length(left)),
        error: status
            .error
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    }
}
