//! Where the servers are, as the command line, a file or the environment says.

use std::{env, fmt, fs, io, path::PathBuf};

use clap::Args;

/// The variable that names servers where the command line does not.
const VARIABLE: &str = "RINGFENCE_REDIS";

/// Servers to ask.
#[derive(Args, Clone)]
pub(crate) struct Seeds {
    /// Servers: redis://[user:password@]host[:port][/db]. Without this and --redis-file, those in
    /// RINGFENCE_REDIS, separated by commas or spaces
    #[arg(long, value_name = "URL", num_args = 1.., value_delimiter = ',')]
    redis: Vec<String>,
    /// A file with their URLs, one a line, and # comments: keeps passwords out of the list of
    /// processes
    #[arg(long, value_name = "FILE", conflicts_with = "redis")]
    redis_file: Option<PathBuf>,
}

/// Why no servers are known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeedsError {
    /// Nobody named any.
    #[error("no server is named: give --redis URL or --redis-file FILE, or set {VARIABLE}")]
    None,
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no URL in the file.
    #[error("{0} has no URL in it")]
    Empty(PathBuf),
    /// The variable is not text.
    #[error("{VARIABLE} is not UTF-8")]
    NotText,
}

impl fmt::Debug for Seeds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may hold a password.
        let Self { redis, redis_file } = self;
        write!(formatter, "Seeds({} URLs, {redis_file:?})", redis.len())
    }
}

impl Seeds {
    /// The URLs: of the command line, or else of its file, or else of the environment.
    ///
    /// # Errors
    ///
    /// [`SeedsError`].
    pub(crate) fn urls(&self) -> Result<Vec<String>, SeedsError> {
        match &self.redis_file {
            Some(path) => in_file(path),
            None if self.redis.is_empty() => in_environment(),
            None => Ok(self.redis.clone()),
        }
    }
}

fn in_file(path: &PathBuf) -> Result<Vec<String>, SeedsError> {
    let text = fs::read_to_string(path).map_err(|source| SeedsError::Unreadable {
        path: path.clone(),
        source,
    })?;
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

fn in_environment() -> Result<Vec<String>, SeedsError> {
    let value = env::var_os(VARIABLE).unwrap_or_default();
    let value = value.to_str().ok_or(SeedsError::NotText)?;
    let words = value.split(|at: char| at == ',' || at.is_whitespace());
    let urls: Vec<_> = words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    if urls.is_empty() {
        Err(SeedsError::None)
    } else {
        Ok(urls)
    }
}
