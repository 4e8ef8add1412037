use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::RingError;
use crate::limits::SHARD_ID_LEN_MAX;

/// Name of a shard: `[a-z][a-z0-9_]*` without `__`, 1 to 32 bytes. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(Arc<str>);

impl ShardId {
    /// Checks and copies `id`.
    ///
    /// # Errors
    ///
    /// [`RingError::ShardId`]: empty, too long, or characters that cannot be part of the name of
    /// an environment variable.
    pub fn new(id: &str) -> Result<Self, RingError> {
        if is_valid(id) {
            return Ok(Self(id.into()));
        }
        let value = id.chars().take(SHARD_ID_LEN_MAX + 1).collect();
        Err(RingError::ShardId { value })
    }

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_valid(id: &str) -> bool {
    id.len() <= SHARD_ID_LEN_MAX
        && id.starts_with(|first: char| first.is_ascii_lowercase())
        && id
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && !id.contains("__")
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardId({})", self.0)
    }
}

impl FromStr for ShardId {
    type Err = RingError;

    fn from_str(id: &str) -> Result<Self, RingError> {
        Self::new(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_fits_an_environment_variable() {
        for id in ["a", "a1", "eu_west_1", "a_", &"a".repeat(32)] {
            assert_eq!(ShardId::new(id).unwrap().as_str(), id);
        }
    }

    #[test]
    fn refuses_everything_else() {
        for id in [
            "",
            "1a",
            "_a",
            "A",
            "a-b",
            "a__b",
            "é",
            "a b",
            "a\0",
            &"a".repeat(33),
        ] {
            assert!(
                matches!(ShardId::new(id), Err(RingError::ShardId { .. })),
                "{id:?}"
            );
        }
    }

    #[test]
    fn an_error_quotes_no_more_than_it_must() {
        let error = ShardId::new(&"é".repeat(1_000_000)).unwrap_err();
        assert!(error.to_string().len() < 200, "{error}");
    }
}
