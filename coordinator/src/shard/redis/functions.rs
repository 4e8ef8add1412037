//! The libraries of Redis Functions on a server: one per release of Ringfence that used it.

use std::collections::HashMap;

use redis::{RedisResult, Value, from_redis_value};

use super::{RedisOptions, diagnosis, scripts::LIBRARY, wire::Wire};
use crate::shard::ShardError;

/// A connection to one server that lists and deletes libraries. It loads none.
#[derive(Debug)]
pub struct Functions {
    wire: Wire,
    options: RedisOptions,
}

/// A library that a release of Ringfence loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionLibrary {
    /// Its name on the server.
    pub name: String,
    /// Whether this release uses it.
    pub is_current: bool,
}

impl Functions {
    /// Connects to the server that `options` names.
    ///
    /// # Errors
    ///
    /// [`ShardError`]: the server does not answer, or refuses the login.
    pub async fn connect(options: RedisOptions) -> Result<Self, ShardError> {
        let wire = Wire::open(&options, Wire::config(&options)).await?;
        Ok(Self { wire, options })
    }

    /// The libraries of Ringfence, of this release and of others, sorted by name.
    ///
    /// # Errors
    ///
    /// [`ShardError`]: the server does not answer, or refuses the command.
    pub async fn libraries(&mut self) -> Result<Vec<FunctionLibrary>, ShardError> {
        match self.list().await {
            Ok(libraries) => Ok(libraries),
            Err(error) => Err(diagnosis::of_handshake(&self.options, error).await),
        }
    }

    async fn list(&mut self) -> RedisResult<Vec<FunctionLibrary>> {
        let mut list = redis::cmd("FUNCTION");
        list.arg("LIST").arg("LIBRARYNAME").arg("ringfence_*");
        let listed: Vec<HashMap<String, Value>> =
            from_redis_value(self.wire.run_one(&list).await?)?;
        let names = (listed.into_iter()).filter_map(|mut library| library.remove("library_name"));
        let mut names: Vec<String> = names.map(from_redis_value).collect::<Result<_, _>>()?;
        names.retain(|name| is_ours(name));
        names.sort();
        let library = |name| FunctionLibrary {
            is_current: name == LIBRARY.name,
            name,
        };
        Ok(names.into_iter().map(library).collect())
    }

    /// Deletes `library`, if it is still there. A process that uses it loads it again.
    ///
    /// # Errors
    ///
    /// [`ShardError`]: the server does not answer, or refuses the command.
    pub async fn delete(&mut self, library: &FunctionLibrary) -> Result<(), ShardError> {
        let mut delete = redis::cmd("FUNCTION");
        delete.arg("DELETE").arg(&library.name);
        match self.wire.run_one(&delete).await {
            Ok(_) => Ok(()),
            Err(error) if error.to_string().contains("Library not found") => Ok(()),
            Err(error) => Err(diagnosis::of_handshake(&self.options, error).await),
        }
    }
}

/// Whether a library has a name that Ringfence gives: `ringfence_<hash>`, or `ringfence_<script>_<hash>` of
/// releases that had a library per script.
fn is_ours(name: &str) -> bool {
    let hash = name.rsplit('_').next().unwrap_or_default();
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.starts_with("ringfence_") && hash.len() == 16 && hash.bytes().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_others_are_told_by_their_names() {
        for ours in [
            "ringfence_0123456789abcdef",
            "ringfence_copy_in_0123456789abcdef",
            &LIBRARY.name,
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        for others in [
            "ringfence_",
            "ringfence_acquire",
            "ringfence_0123456789ABCDEF",
            "ringfence_0123456789abcdef0",
            "myringfence_0123456789abcdef",
            "ringfence0123456789abcdef",
        ] {
            assert!(!is_ours(others), "{others}");
        }
    }
}
