//! Where the servers are, as the command line, a file or the environment says.

use std::{fs, io, path::PathBuf};

use clap::Args;

/// Servers to ask.
#[derive(Args, Clone, Debug)]
#[group(required = true)]
pub(crate) struct Seeds {
    /// Servers: redis://[user:password@]host[:port][/db]
    #[arg(
        long,
        value_name = "URL",
        num_args = 1..,
        value_delimiter = ',',
        env = "RINGFENCE_REDIS",
        hide_env_values = true
    )]
    redis: Vec<String>,
    /// A file with their URLs, one a line, instead: keeps passwords out of the list of processes
    #[arg(long, value_name = "FILE")]
    redis_file: Option<PathBuf>,
}

/// The file of URLs cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeedsError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no URL in it.
    #[error("{0} has no URL in it")]
    Empty(PathBuf),
}

impl Seeds {
    /// The URLs.
    ///
    /// # Errors
    ///
    /// [`SeedsError`].
    pub(crate) fn urls(&self) -> Result<Vec<String>, SeedsError> {
        let Some(path) = &self.redis_file else {
            return Ok(self.redis.clone());
        };
        let unreadable = |source| SeedsError::Unreadable {
            path: path.clone(),
            source,
        };
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let lines = text.lines().map(str::trim);
        let urls: Vec<_> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        if urls.is_empty() {
            Err(SeedsError::Empty(path.clone()))
        } else {
            Ok(urls)
        }
    }
}
