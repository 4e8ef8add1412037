//! The caller that means well, and what it measures.

use std::{io, time::Duration};

use futures_util::future::join;
use ringfence_api::v1::{AcquireRequest, ReleaseRequest, lock_service_client::LockServiceClient};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use tonic::{
    Status,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
};

use super::{
    attacker::with,
    target::{GOOD, Target},
};

/// Pairs are measured in as many windows, of which the median counts.
const WINDOWS: usize = 3;
const WINDOW: Duration = Duration::from_secs(2);
/// Between two pairs, two new callers, and two looks at the health.
const PAIR_EVERY: Duration = Duration::from_millis(4);
const NEW_EVERY: Duration = Duration::from_millis(200);
const HEALTH_EVERY: Duration = Duration::from_millis(50);
/// What takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// It has the locks in turn.
const KEYS: usize = 64;

/// A caller with a connection of its own.
pub(super) struct Caller {
    endpoint: Endpoint,
    monitor: std::net::SocketAddr,
}

/// What it measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Of the pairs of each window.
    p99s: Vec<Duration>,
    /// The slowest pair over a new connection.
    pub(super) new_caller: Duration,
    /// The slowest answer of `/healthz`.
    pub(super) health: Duration,
    /// Calls that failed: one of each kind.
    pub(super) failures: Vec<String>,
}

impl Measured {
    /// Of a pair: the median of the windows.
    pub(super) fn p99(&self) -> Duration {
        let mut p99s = self.p99s.clone();
        p99s.sort_unstable();
        p99s[p99s.len() / 2]
    }

    fn failed(&mut self, failure: String) {
        if !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }
}

impl Caller {
    /// Of the coordinator `target`.
    ///
    /// # Errors
    ///
    /// A certificate cannot be used.
    pub(super) fn new(target: &Target) -> io::Result<Self> {
        let url = match &target.secured {
            Some(_) => format!("https://{}", target.service),
            None => format!("http://{}", target.service),
        };
        let mut endpoint = Endpoint::from_shared(url).map_err(io::Error::other)?;
        if let Some(secured) = &target.secured {
            let authority = Certificate::from_pem(std::fs::read(secured.path("ca.pem"))?);
            let tls = ClientTlsConfig::new().ca_certificate(authority);
            endpoint = endpoint.tls_config(tls).map_err(io::Error::other)?;
        }
        Ok(Self {
            endpoint,
            monitor: target.monitor,
        })
    }

    /// Measures for as long as its windows are.
    pub(super) async fn measure(&self) -> Measured {
        let ends = Instant::now() + WINDOW * WINDOWS as u32;
        let (mut measured, (new_callers, health)) = join(
            self.pairs(),
            join(self.new_callers(ends), self.health(ends)),
        )
        .await;
        for (worst, (slowest, failure)) in [
            (&mut measured.new_caller, new_callers),
            (&mut measured.health, health),
        ] {
            *worst = slowest;
            if let Some(failure) = failure
                && !measured.failures.contains(&failure)
            {
                measured.failures.push(failure);
            }
        }
        measured
    }

    async fn pairs(&self) -> Measured {
        let mut measured = Measured::default();
        let mut locks = LockServiceClient::new(self.endpoint.connect_lazy());
        // It has its connection.
        if let Err(status) = pair(&mut locks, 0).await {
            measured.failed(failure("the first call", &status));
        }
        for _ in 0..WINDOWS {
            let (ends, mut took) = (Instant::now() + WINDOW, Vec::new());
            while Instant::now() < ends {
                let began = Instant::now();
                if let Err(status) = pair(&mut locks, took.len()).await {
                    measured.failed(failure("a call", &status));
                }
                took.push(began.elapsed());
                sleep(PAIR_EVERY).await;
            }
            took.sort_unstable();
            measured.p99s.push(took[took.len() * 99 / 100]);
        }
        measured
    }

    async fn new_callers(&self, ends: Instant) -> (Duration, Option<String>) {
        let (mut slowest, mut failed) = (Duration::ZERO, None);
        for number in KEYS.. {
            let began = Instant::now();
            if began > ends {
                break;
            }
            let mut locks = LockServiceClient::new(self.endpoint.connect_lazy());
            if let Err(status) = pair(&mut locks, number).await {
                failed = Some(failure("a new caller", &status));
            }
            slowest = slowest.max(began.elapsed());
            sleep(NEW_EVERY).await;
        }
        (slowest, failed)
    }

    async fn health(&self, ends: Instant) -> (Duration, Option<String>) {
        let (mut slowest, mut failed) = (Duration::ZERO, None);
        while Instant::now() < ends {
            let began = Instant::now();
            match timeout(PATIENCE, self.is_healthy()).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => failed = Some("healthz: it is not healthy".to_owned()),
                Ok(Err(error)) => failed = Some(format!("healthz: {error}")),
                Err(_) => failed = Some(format!("healthz: no answer within {PATIENCE:?}")),
            }
            slowest = slowest.max(began.elapsed());
            sleep(HEALTH_EVERY).await;
        }
        (slowest, failed)
    }

    async fn is_healthy(&self) -> io::Result<bool> {
        let mut stream = TcpStream::connect(self.monitor).await?;
        let request = b"GET /healthz HTTP/1.1\r\nhost: monitor\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    }
}

fn failure(what: &str, status: &Status) -> String {
    format!("{what} failed: {:?}: {}", status.code(), status.message())
}

/// Acquires and releases a lock.
async fn pair(locks: &mut LockServiceClient<Channel>, number: usize) -> Result<(), Status> {
    let calls = async {
        let ask = AcquireRequest {
            namespace: "good".into(),
            // Those of new connections have keys of their own.
            key: format!("{}/{}", number / KEYS, number % KEYS).into(),
            lease: Duration::from_secs(10).try_into().ok(),
            ..AcquireRequest::default()
        };
        let handle = locks.acquire(with(GOOD, ask)).await?.into_inner().handle;
        locks.release(with(GOOD, ReleaseRequest { handle })).await?;
        Ok(())
    };
    let late = || {
        Err(Status::deadline_exceeded(format!(
            "no answer within {PATIENCE:?}"
        )))
    };
    timeout(PATIENCE, calls).await.unwrap_or_else(|_| late())
}
