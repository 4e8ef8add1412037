//! etcd, its lock service, and its transactions.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use nix::sys::signal::Signal;
use ringfence_coordinator::spawn::Process;
use ringfence_test_support::database::free_port;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::{Failure, LEASE};

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with default settings: one node. It ends with this value.
pub(crate) struct Etcd {
    process: Process,
    /// To its node.
    pub(crate) channel: Channel,
    port: u16,
    _data: TempDir,
}

impl Etcd {
    /// Starts one, and waits until it answers.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let data = TempDir::with_prefix("ringfence-bench-etcd-")?;
        let (port, peer) = (free_port(), free_port());
        let [clients, peers] = [port, peer].map(|port| format!("http://127.0.0.1:{port}"));
        let mut command = Command::new("etcd");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.arg("--data-dir").arg(data.path());
        for (option, value) in [
            ("--name", "bench"),
            ("--listen-client-urls", &clients),
            ("--advertise-client-urls", &clients),
            ("--listen-peer-urls", &peers),
            ("--initial-advertise-peer-urls", &peers),
            ("--initial-cluster", &format!("bench={peers}")),
        ] {
            command.args([option, value]);
        }
        let process = Process::start(command, Signal::SIGKILL).await?;
        let endpoint = Endpoint::from_shared(clients)?;
        let ready = async {
            loop {
                if let Ok(channel) = endpoint.connect().await
                    && lease(&channel).await.is_ok()
                {
                    return channel;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let channel = timeout(PATIENCE, ready)
            .await
            .map_err(|_| "etcd does not start")?;
        Ok(Self {
            process,
            channel,
            port,
            _data: data,
        })
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct LeaseGrantRequest {
    /// In seconds.
    #[prost(int64, tag = "1")]
    ttl: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    id: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LockRequest {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LockResponse {
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UnlockRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UnlockResponse {}

/// A lease for all locks of a task: longer than the bench.
pub(crate) async fn lease(channel: &Channel) -> Result<i64, Failure> {
    let ttl = 60 * LEASE.as_secs() as i64;
    let request = LeaseGrantRequest { ttl };
    let granted: LeaseGrantResponse =
        call(channel, "/etcdserverpb.Lease/LeaseGrant", request).await?;
    Ok(granted.id)
}

/// Locks `name` and unlocks it.
pub(crate) async fn pair(channel: &Channel, name: &[u8], lease: i64) -> Result<(), Failure> {
    let name = name.to_vec();
    let request = LockRequest { name, lease };
    let LockResponse { key } = call(channel, "/v3lockpb.Lock/Lock", request).await?;
    let request = UnlockRequest { key };
    let UnlockResponse {} = call(channel, "/v3lockpb.Lock/Unlock", request).await?;
    Ok(())
}

#[derive(Clone, PartialEq, prost::Message)]
struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(int64, tag = "3")]
    mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<KeyValue>,
}

/// That a key's last change was at a revision.
#[derive(Clone, PartialEq, prost::Message)]
struct Compare {
    /// 2: the revision of the last change.
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(int64, optional, tag = "6")]
    mod_revision: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RequestOp {
    #[prost(message, optional, tag = "2")]
    put: Option<PutRequest>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TxnResponse {
    #[prost(bool, tag = "2")]
    succeeded: bool,
}

/// The value of `key`, and the revision of its last change.
pub(crate) async fn read(channel: &Channel, key: &str) -> Result<(String, i64), Failure> {
    let key = key.as_bytes().to_vec();
    let found: RangeResponse =
        call(channel, "/etcdserverpb.KV/Range", RangeRequest { key }).await?;
    let found = found.kvs.into_iter().next().ok_or("no such key")?;
    Ok((String::from_utf8(found.value)?, found.mod_revision))
}

/// Writes `value` to a key, and a new key `id`, if the first one was last changed at that revision. Returns whether it did.
pub(crate) async fn swap(
    channel: &Channel,
    (key, mod_revision): (&str, i64),
    value: &str,
    id: &str,
) -> Result<bool, Failure> {
    let unchanged = |key: &str, revision| Compare {
        target: 2,
        key: key.into(),
        mod_revision: Some(revision),
    };
    let put = |key: &str, value: &str| RequestOp {
        put: Some(PutRequest {
            key: key.into(),
            value: value.into(),
        }),
    };
    let swap = TxnRequest {
        compare: vec![unchanged(key, mod_revision), unchanged(id, 0)],
        success: vec![put(key, value), put(id, "")],
    };
    let TxnResponse { succeeded } = call(channel, "/etcdserverpb.KV/Txn", swap).await?;
    Ok(succeeded)
}

async fn call<Asked, Answered>(
    channel: &Channel,
    path: &'static str,
    asked: Asked,
) -> Result<Answered, Failure>
where
    Asked: prost::Message + 'static,
    Answered: prost::Message + Default + 'static,
{
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    grpc.ready().await?;
    let codec = ProstCodec::<Asked, Answered>::default();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
    Ok(grpc
        .unary(Request::new(asked), path, codec)
        .await?
        .into_inner())
}
