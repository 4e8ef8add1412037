//! Where a mover under test dies or stops.

use std::{
    str::FromStr,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use nix::sys::signal::{Signal, raise};
use ringfence_coordinator::mover::{self, Observer};

/// A phase in which a mover dies, or stops until it is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt {
    /// Whether it dies.
    pub kill: bool,
    /// In which phase.
    pub phase: mover::Phase,
    /// How often that is reached before it does, this time included.
    pub nth: u32,
}

impl Halt {
    /// As an argument.
    pub fn to_arg(self) -> String {
        let deed = if self.kill { "kill" } else { "stop" };
        format!("{deed}:{}:{}", self.phase.as_str(), self.nth)
    }

    /// Does so, once it is told of the phase as often as that.
    pub(super) fn observer(self) -> Observer {
        let left = AtomicU32::new(self.nth);
        Observer::new(move |reached| {
            if reached == self.phase && left.fetch_sub(1, Relaxed) == 1 {
                let signal = if self.kill {
                    Signal::SIGKILL
                } else {
                    Signal::SIGSTOP
                };
                raise(signal).expect("every process may signal itself");
            }
        })
    }
}

impl FromStr for Halt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: kill or stop, a phase, and the how manieth time");
        let parts: Vec<_> = text.split(':').collect();
        let [deed, phase, nth] = parts[..] else {
            return Err(wrong());
        };
        let phase = mover::Phase::ALL
            .into_iter()
            .find(|its| its.as_str() == phase);
        Ok(Self {
            kill: match deed {
                "kill" => true,
                "stop" => false,
                _ => return Err(wrong()),
            },
            phase: phase.ok_or_else(wrong)?,
            nth: nth.parse().map_err(|_| wrong())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_halt_is_an_argument() {
        for phase in mover::Phase::ALL {
            for kill in [true, false] {
                let halt = Halt {
                    kill,
                    phase,
                    nth: 2,
                };
                assert_eq!(halt.to_arg().parse(), Ok(halt));
            }
        }
        for wrong in [
            "kill",
            "kill:sealed",
            "cont:sealed:1",
            "kill:nowhere:1",
            "kill:sealed:x",
        ] {
            assert!(wrong.parse::<Halt>().is_err(), "{wrong}");
        }
    }
}
