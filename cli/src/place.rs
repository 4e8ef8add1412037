//! Where the locks are: servers, or coordinators in front of them.

use std::{fmt, fs, path::PathBuf};

use clap::Args;
use ringfence_client::{Builder, Client, Coordinators};

use super::seeds::{Seeds, SeedsError, Servers};

/// Servers to ask, or coordinators.
#[derive(Args, Clone, Debug)]
pub(crate) struct Place {
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    service: Service,
}

/// Coordinators, for machines that must not reach the servers.
#[derive(Args, Clone)]
struct Service {
    /// A coordinator (ringfence serve), instead of servers: host, host:port or http://host:port; https:// for
    /// TLS [default port: 7420]. Repeat it, or separate URLs by commas: if one fails, the next is used
    #[arg(long, value_name = "URL", value_delimiter = ',', conflicts_with_all = ["redis", "redis_file", "topology"])]
    coordinator: Vec<String>,
    /// A file with the bearer token for the coordinators, read again for each connection and call
    #[arg(long, value_name = "FILE", requires = "coordinator")]
    token_file: Option<PathBuf>,
    /// A file with the authorities that may sign the coordinators' certificates, in PEM [default:
    /// those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "coordinator")]
    ca_file: Option<PathBuf>,
    /// A file with the certificate to show to the coordinators, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["coordinator", "key_file"])]
    cert_file: Option<PathBuf>,
    /// A file with the private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    key_file: Option<PathBuf>,
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may hold a password.
        write!(formatter, "Service({} URLs)", self.coordinator.len())
    }
}

/// What is named.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    Servers(Servers),
    Coordinators(Coordinators),
}

impl Place {
    /// The servers or coordinators.
    ///
    /// # Errors
    ///
    /// [`SeedsError`].
    pub(crate) fn named(&self) -> Result<Named, SeedsError> {
        match self.service.coordinator.is_empty() {
            true => Ok(Named::Servers(self.seeds.servers()?)),
            false => Ok(Named::Coordinators(self.service.coordinators()?)),
        }
    }
}

impl Service {
    fn coordinators(&self) -> Result<Coordinators, SeedsError> {
        let mut coordinators = Coordinators::new(&self.coordinator);
        if let Some(path) = &self.token_file {
            let token = String::from_utf8_lossy(&read(path)?).into_owned();
            coordinators = match path.is_file() {
                true => coordinators.token_file(path),
                // A pipe is read once.
                false => coordinators.token(token.trim()),
            };
        }
        if let Some(path) = &self.ca_file {
            coordinators = coordinators.authorities(read(path)?);
        }
        if let (Some(certificate), Some(key)) = (&self.cert_file, &self.key_file) {
            coordinators = coordinators.certificate(read(certificate)?, read(key)?);
        }
        Ok(coordinators)
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, SeedsError> {
    fs::read(path).map_err(|source| SeedsError::Unreadable {
        path: path.clone(),
        source,
    })
}

impl Named {
    /// A client of them, which founds no topology.
    pub(crate) fn client(&self) -> Builder {
        match self {
            Self::Servers(servers) => servers.client(),
            Self::Coordinators(coordinators) => {
                Client::builder().coordinators(coordinators.clone())
            }
        }
    }

    /// `text`, an error, with the place that names each server after its first mention.
    pub(crate) fn located(&self, text: &str) -> String {
        match self {
            Self::Servers(servers) => servers.located(text),
            Self::Coordinators(_) => text.to_owned(),
        }
    }

    /// The command that founds a topology on the servers.
    pub(crate) fn init_command(&self) -> String {
        match self {
            Self::Servers(servers) => servers.init_command(),
            Self::Coordinators(_) => "ringfence ring init".into(),
        }
    }
}
