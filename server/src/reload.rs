//! Settings that change while a coordinator serves: principals, secrets of handles, and certificates.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use crate::{Config, Tls, access::Authentication, locks::Handles};

/// The files of the certificates are read this often.
const FILES_EVERY: Duration = Duration::from_secs(1);

/// Changes settings of a [`Service`](crate::Service) while it serves.
#[derive(Clone)]
pub struct Reloader {
    config: Arc<Mutex<Config>>,
    authentication: Authentication,
    handles: Arc<Handles>,
    tls: watch::Sender<Option<Tls>>,
    expiries: Expiries,
}

/// When the certificates of a file end, in seconds since 1970.
type Expiries = Family<File, Gauge>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct File {
    setting: &'static str,
}

impl Reloader {
    pub(crate) fn new(
        config: &Config,
        authentication: Authentication,
        handles: Arc<Handles>,
    ) -> Self {
        let reloader = Self {
            config: Arc::new(Mutex::new(config.clone())),
            authentication,
            handles,
            tls: watch::Sender::new(None),
            expiries: Family::default(),
        };
        reloader.put(config.tls.clone());
        reloader
    }

    /// Puts the principals, the secrets of handles and the certificates of `config` into force: principals for all further
    /// calls, certificates for new connections, which callers make at once. An open session keeps the roles of its principal.
    /// Returns the names of other settings that have changed: they count from the next start on.
    pub fn reload(&self, config: Config) -> Vec<&'static str> {
        let mut present = self.config.lock();
        if config.principals != present.principals {
            self.authentication.replace(&config.principals);
        }
        if config.handle_secrets != present.handle_secrets {
            self.handles.replace(&config.handle_secrets);
        }
        if *self.tls.borrow() != config.tls {
            self.put(config.tls.clone());
        }
        let others = [
            ("listen", config.listen != present.listen),
            ("monitor", config.monitor != present.monitor),
            ("insecure", config.insecure != present.insecure),
            ("grace", config.grace != present.grace),
            ("prefix", config.prefix != present.prefix),
            ("shards", config.shards != present.shards),
            ("topology", config.topology != present.topology),
            ("limits", config.limits != present.limits),
        ];
        present.principals = config.principals;
        present.handle_secrets = config.handle_secrets;
        let others = others.into_iter().filter(|(_, has_changed)| *has_changed);
        others.map(|(name, _)| name).collect()
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "certificate_expiry_timestamp_seconds",
            "When the certificates of a file end, the first of them.",
            self.expiries.clone(),
        );
    }

    /// The present certificates, and each change of them.
    pub(crate) fn certificates(&self) -> watch::Receiver<Option<Tls>> {
        self.tls.subscribe()
    }

    /// Puts certificates into force whose files have changed, while it is polled.
    pub(crate) async fn follow_files(self) {
        let mut told = None;
        loop {
            sleep(FILES_EVERY).await;
            let Some(present) = self.tls.borrow().clone() else {
                continue;
            };
            let read = spawn_blocking(move || present.read_again()).await;
            let problem = match read.expect("reading does not panic") {
                Ok(None) => None,
                Ok(Some(changed)) => {
                    self.put(Some(changed));
                    tracing::info!("the files of the certificates have changed, and count");
                    None
                }
                Err(problem) => Some(problem),
            };
            // Two files are seldom replaced in the same moment.
            if told != problem
                && let Some(problem) = &problem
            {
                tracing::warn!(problem, "the former certificates go on");
            }
            told = problem;
        }
    }

    fn put(&self, tls: Option<Tls>) {
        for (setting, expiry) in tls.iter().flat_map(Tls::expiries) {
            self.expiries.get_or_create(&File { setting }).set(expiry);
        }
        self.tls.send_replace(tls);
    }
}
