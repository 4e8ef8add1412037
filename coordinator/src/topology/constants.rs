//! The constants that are fixed at the founding of a topology.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::limits::{LEASE_MAX, LEASE_MIN, MAX_LEASE_MAX, RHO_PERMILLE, VIEW_LEASE_MIN};

/// The constants that are fixed at the founding of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// The longest lease, in milliseconds; also the length of a grace.
    pub max_lease_ms: u64,
    /// How much two clocks' rates may differ, in parts per thousand.
    pub rho_permille: u32,
    /// How long, in milliseconds, a primary accepts writes after its replica has stopped following
    /// it; 0 if no client can reach a former primary after a failover.
    pub replica_lag_ms: u64,
    /// How a shard that is gone for good is removed.
    pub removal: Removal,
    /// With leased removal: how long, in milliseconds, an engine uses a view of the topology
    /// without another confirmation. `None`: a sixth of the longest lease.
    pub view_lease_ms: Option<u64>,
}

/// How a shard that is gone for good is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// A person attests that no client can reach it any more, and that it will be restarted or
    /// flushed before one can. While the topology's store is down, engines use their last view.
    #[default]
    Supervised,
    /// No person has to attest anything: an engine sends nothing under a view that was not
    /// confirmed for the length of a view lease, and no shard takes the slots over before
    /// that. The trade-off: an outage of the topology's store is an outage of everything, after
    /// that time.
    Leased,
}

impl fmt::Display for Removal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Supervised => "supervised",
            Self::Leased => "leased",
        })
    }
}

impl FromStr for Removal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = [Self::Supervised, Self::Leased].into_iter();
        all.find(|removal| removal.to_string() == text)
            .ok_or_else(|| format!("removal is {text:?}, must be supervised or leased"))
    }
}

impl Constants {
    /// The longest lease.
    pub fn max_lease(&self) -> Duration {
        Duration::from_millis(self.max_lease_ms)
    }

    /// How long a primary accepts writes after its replica has stopped following it.
    pub fn replica_lag(&self) -> Duration {
        Duration::from_millis(self.replica_lag_ms)
    }

    /// How long a shard that came back grants nothing: after that, all earlier leases have ended,
    /// including the last one of a former primary.
    pub fn grace(&self) -> Duration {
        self.at_any_rate(self.max_lease() + self.replica_lag())
    }

    /// How long an engine uses a view without another confirmation; `None`: as long as it has no
    /// newer view.
    pub fn view_lease(&self) -> Option<Duration> {
        let length = self.view_lease_ms.unwrap_or(self.max_lease_ms / 6);
        (self.removal == Removal::Leased).then(|| Duration::from_millis(length))
    }

    /// For how long, after a shard was declared dead, some engine may still use a view that contains
    /// it.
    pub fn views_last(&self) -> Duration {
        self.at_any_rate(self.view_lease().unwrap_or_default())
    }

    /// The longest duration of `length`, by a clock of another rate.
    fn at_any_rate(&self, length: Duration) -> Duration {
        length + length * self.rho_permille / 1000
    }

    /// Refuses constants out of range, with a reason: names the field, the value and the limit.
    pub(super) fn check(&self) -> Result<(), String> {
        let max_lease = self.max_lease();
        if !(LEASE_MIN..=MAX_LEASE_MAX).contains(&max_lease) {
            return Err(format!(
                "max_lease is {max_lease:?}, must be {LEASE_MIN:?} to {MAX_LEASE_MAX:?}"
            ));
        }
        let replica_lag = self.replica_lag();
        if replica_lag > MAX_LEASE_MAX {
            return Err(format!(
                "replica_lag is {replica_lag:?}, must be {MAX_LEASE_MAX:?} at most"
            ));
        }
        if self.rho_permille >= 1000 {
            return Err(format!(
                "rho is {} permille, must be less than 1000",
                self.rho_permille
            ));
        }
        match (self.view_lease(), self.view_lease_ms) {
            (Some(length), _) if !(VIEW_LEASE_MIN..=max_lease).contains(&length) => Err(format!(
                "view_lease is {length:?}, must be {VIEW_LEASE_MIN:?} to max_lease, {max_lease:?}"
            )),
            (None, Some(length_ms)) => Err(format!(
                "view_lease is {:?}, must not be given where removal is {}",
                Duration::from_millis(length_ms),
                self.removal
            )),
            _ => Ok(()),
        }
    }
}

impl Default for Constants {
    fn default() -> Self {
        Self {
            max_lease_ms: LEASE_MAX.as_millis() as u64,
            rho_permille: RHO_PERMILLE,
            replica_lag_ms: 0,
            removal: Removal::default(),
            view_lease_ms: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leased(max_lease_ms: u64, view_lease_ms: Option<u64>) -> Constants {
        Constants {
            max_lease_ms,
            removal: Removal::Leased,
            view_lease_ms,
            ..Constants::default()
        }
    }

    #[test]
    fn grace_outlasts_the_last_lease_of_a_former_primary() {
        let constants = Constants {
            max_lease_ms: 30_000,
            rho_permille: 10,
            replica_lag_ms: 2_000,
            ..Constants::default()
        };
        assert_eq!(constants.grace(), Duration::from_millis(32_320));
    }

    #[test]
    fn a_view_is_gone_by_for_a_sixth_of_the_longest_lease_or_as_said_or_for_good() {
        let ms = Duration::from_millis;
        assert_eq!(leased(30_000, None).view_lease(), Some(ms(5_000)));
        assert_eq!(leased(30_000, Some(2_000)).view_lease(), Some(ms(2_000)));
        assert_eq!(leased(30_000, Some(2_000)).views_last(), ms(2_020));
        assert_eq!(Constants::default().view_lease(), None);
        assert_eq!(Constants::default().views_last(), Duration::ZERO);
    }

    #[test]
    fn a_refusal_names_field_value_and_limit() {
        let of = |change: fn(&mut Constants)| {
            let mut constants = Constants::default();
            change(&mut constants);
            constants
        };
        let refused = [
            (
                of(|it| it.max_lease_ms = 0),
                "max_lease is 0ns, must be 100ms to 3600s",
            ),
            (
                of(|it| it.max_lease_ms = 3_600_001),
                "max_lease is 3600.001s",
            ),
            (of(|it| it.rho_permille = 1000), "rho is 1000 permille"),
            (
                of(|it| it.replica_lag_ms = 3_600_001),
                "replica_lag is 3600.001s",
            ),
            (
                of(|it| it.view_lease_ms = Some(1_000)),
                "view_lease is 1s, must not be given",
            ),
            (
                leased(30_000, Some(99)),
                "view_lease is 99ms, must be 100ms to max_lease, 30s",
            ),
            (leased(30_000, Some(30_001)), "view_lease is 30.001s"),
            (leased(500, None), "view_lease is 83ms"),
        ];
        for (constants, why) in refused {
            let error = constants.check().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        for fine in [
            leased(600, None),
            leased(500, Some(100)),
            leased(500, Some(500)),
        ] {
            fine.check().unwrap();
        }
    }

    #[test]
    fn removal_is_spelt_as_it_is_shown() {
        for removal in [Removal::Supervised, Removal::Leased] {
            let spelt = serde_json::to_string(&removal).unwrap();
            assert_eq!(spelt, format!("\"{removal}\""));
            assert_eq!(removal.to_string().parse(), Ok(removal));
        }
        assert!("Leased".parse::<Removal>().is_err());
    }
}
