use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};

/// How long a contender runs at a time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Timing {
    /// Before the measured part.
    #[serde(rename = "warm_up_ms", serialize_with = "millis")]
    pub(crate) warm_up: Duration,
    /// The measured part.
    #[serde(rename = "length_ms", serialize_with = "millis")]
    pub(crate) length: Duration,
}

fn millis<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(length.as_millis() as u64)
}

impl Timing {
    /// Both in milliseconds.
    pub(crate) fn of_ms(warm_up: u64, length: u64) -> Self {
        Self {
            warm_up: Duration::from_millis(warm_up),
            length: Duration::from_millis(length),
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (length, warm_up) = (self.length.as_millis(), self.warm_up.as_millis());
        write!(formatter, "{length} ms each after {warm_up} ms of warm-up")
    }
}

/// The order of turns in a round: another one is first each time, and every second round goes
/// backwards, so that nobody always runs after the same one.
pub(crate) fn order(round: usize, count: usize) -> Vec<usize> {
    let first = round % count.max(1);
    let nth = |step| {
        if round.is_multiple_of(2) {
            first + step
        } else {
            first + count - step
        }
    };
    (0..count).map(|step| nth(step) % count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_every_round_another_is_first_and_nobody_is_left_out() {
        assert_eq!(order(0, 3), [0, 1, 2]);
        assert_eq!(order(1, 3), [1, 0, 2]);
        assert_eq!(order(2, 3), [2, 0, 1]);
        assert_eq!(order(3, 3), [0, 2, 1]);
    }
}
