//! AdminService: the topology, and releases by force.

use ringfence_api::{
    Error,
    v1::{
        ForceReleaseRequest, ForceReleaseResponse, GetTopologyRequest, GetTopologyResponse, Shard,
        admin_service_server::AdminService,
    },
};
use ringfence_client::{Client, ShardId, ShardStatus, Topology};
use tonic::{Request, Response, Status};

use crate::{
    access::{Call, admit},
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
}

impl Admin {
    /// Serves the shards of `client`.
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
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

    async fn force_release(
        &self,
        request: Request<ForceReleaseRequest>,
    ) -> Result<Response<ForceReleaseResponse>, Status> {
        let ForceReleaseRequest {
            namespace: of, key, ..
        } = request.get_ref();
        let _admitted = admit(&request, Call::ForceRelease(of, key))?;
        let deadline = Deadline::of(&request);
        let ForceReleaseRequest {
            namespace: of,
            key,
            reason,
        } = request.into_inner();
        if !(1..=REASON_BYTES_MAX).contains(&reason.len()) {
            let value = format!("{} bytes long", reason.len());
            let limit = format!("1 to {REASON_BYTES_MAX}");
            return Err(Error::invalid("reason", value, limit).into());
        }
        let lock = self.client.lock(&key).namespace(namespace(&of));
        let released = deadline.run(lock.force_release(&reason)).await?;
        let released = released.map_err(|error| errors::lock(&error))?;
        Ok(Response::new(ForceReleaseResponse {
            holder: released.as_ref().map(holder),
        }))
    }
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
