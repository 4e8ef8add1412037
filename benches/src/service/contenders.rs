//! What takes part, and one turn of each.

use std::{hint::black_box, time::Duration};

use ringfence_api::v1::{
    AcquireRequest, ReleaseOutcome, ReleaseRequest, lock_service_client::LockServiceClient,
};
use ringfence_client::{Client, Coordinators, Lock};
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    Failure, LEASE,
    etcd::{self, Etcd},
};

/// As many tasks, each with a key of its own.
pub(crate) const SITUATIONS: [usize; 3] = [1, 64, 256];

/// Calls without a role that a coordinator takes at a time on a connection.
const EMPTY_PER_CONNECTION: usize = 8;

/// A way to lock; or calls that do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Empty,
    Unary,
    /// The same: what the machine does to a ratio.
    UnaryAgain,
    Session,
    Library,
    Etcd,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Empty,
        Self::Unary,
        Self::UnaryAgain,
        Self::Session,
        Self::Library,
        Self::Etcd,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "2 empty calls",
            Self::Unary => "unary",
            Self::UnaryAgain => "unary-again",
            Self::Session => "session",
            Self::Library => "library",
            Self::Etcd => "etcd",
        }
    }
}

/// Their connections.
pub(crate) struct Contenders {
    coordinator: Channel,
    /// Of the empty calls.
    empty: Vec<Channel>,
    session: Client,
    library: Client,
    etcd: Channel,
    /// One per task.
    leases: Vec<i64>,
}

impl Contenders {
    pub(crate) async fn new(redis: &str, coordinator: &str, etcd: &Etcd) -> Result<Self, Failure> {
        let session = Client::builder().coordinators(Coordinators::new(coordinator));
        // Each task has its locks alone, as over the service.
        let library = Client::builder().redis(redis).handoff(0, Duration::ZERO);
        let mut granting = JoinSet::new();
        for _ in 0..SITUATIONS.into_iter().max().unwrap_or_default() {
            let channel = etcd.channel.clone();
            granting.spawn(async move { etcd::lease(&channel).await });
        }
        let leases = granting.join_all().await.into_iter();
        let coordinator = Endpoint::from_shared(coordinator.to_owned())?;
        let connections = SITUATIONS.into_iter().max().unwrap_or_default() / EMPTY_PER_CONNECTION;
        let empty = (0..connections).map(|_| coordinator.connect_lazy());
        Ok(Self {
            coordinator: coordinator.connect().await?,
            empty: empty.collect(),
            session: session.build().await?,
            library: library.build().await?,
            etcd: etcd.channel.clone(),
            leases: leases.collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn tasks(&self, kind: Kind, count: usize) -> Vec<Task> {
        (0..count).map(|number| self.task(kind, number)).collect()
    }

    fn task(&self, kind: Kind, number: usize) -> Task {
        let key = format!("{kind:?}/{number}");
        match kind {
            Kind::Empty => {
                let channel = self.empty[number / EMPTY_PER_CONNECTION].clone();
                Task::Empty(HealthClient::new(channel))
            }
            Kind::Unary | Kind::UnaryAgain => {
                Task::Unary(LockServiceClient::new(self.coordinator.clone()), key)
            }
            Kind::Session => Task::Lock(self.session.lock(key).lease(LEASE)),
            Kind::Library => Task::Lock(self.library.lock(key).lease(LEASE)),
            Kind::Etcd => Task::Etcd(self.etcd.clone(), key, self.leases[number]),
        }
    }
}

/// Acquires and releases, again and again.
pub(crate) enum Task {
    Empty(HealthClient<Channel>),
    Unary(LockServiceClient<Channel>, String),
    Lock(Lock),
    Etcd(Channel, String, i64),
}

impl crate::Task for Task {
    async fn pair(&self) -> Result<(), Failure> {
        match self {
            Self::Empty(health) => {
                for _ in 0..2 {
                    let call = health.clone().check(HealthCheckRequest::default()).await?;
                    black_box(call.into_inner().status);
                }
            }
            Self::Unary(locks, key) => {
                let request = AcquireRequest {
                    key: key.as_bytes().to_vec(),
                    lease: LEASE.try_into().ok(),
                    ..AcquireRequest::default()
                };
                let granted = locks.clone().acquire(request).await?.into_inner();
                black_box(granted.token);
                let handle = granted.handle;
                let released = locks.clone().release(ReleaseRequest { handle }).await?;
                if released.into_inner().outcome() != ReleaseOutcome::Held {
                    return Err(format!("{key} was lost").into());
                }
            }
            Self::Lock(lock) => {
                let guard = lock.acquire().await?;
                black_box(guard.token());
                guard.release().await;
            }
            Self::Etcd(channel, name, lease) => {
                etcd::pair(channel, name.as_bytes(), *lease).await?;
            }
        }
        Ok(())
    }
}
