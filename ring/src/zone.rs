use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::RingError;
use crate::limits::ZONE_LEN_MAX;

/// Name of the place that a shard shares a fate with, such as a data center: 1 to 32 of `a-z`,
/// `0-9`, `-` and `_`, a letter first. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zone(Arc<str>);

impl Zone {
    /// Checks and copies `name`.
    ///
    /// # Errors
    ///
    /// [`RingError::Zone`]: empty, too long, or other characters.
    pub fn new(name: &str) -> Result<Self, RingError> {
        let valid = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        let lettered = name.starts_with(|first: char| first.is_ascii_lowercase());
        if lettered && name.len() <= ZONE_LEN_MAX && name.bytes().all(valid) {
            return Ok(Self(name.into()));
        }
        let value = name.chars().take(ZONE_LEN_MAX + 1).collect();
        Err(RingError::Zone { value })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Zone({})", self.0)
    }
}

impl FromStr for Zone {
    type Err = RingError;

    fn from_str(name: &str) -> Result<Self, RingError> {
        Self::new(name)
    }
}
