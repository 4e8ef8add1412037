use std::time::{Duration, Instant};

use nix::{
    time::{ClockId, clock_getcpuclockid},
    unistd::Pid,
};

use crate::{Failure, machine::busy_time, now};

/// Processor-time clocks of the processes that take part in a bench.
pub(crate) struct Clocks {
    servers: Vec<ClockId>,
    clients: Vec<ClockId>,
}

impl Clocks {
    /// Those of the processes `servers`, and of the processes `clients`.
    ///
    /// # Errors
    ///
    /// A process is gone.
    pub(crate) fn of(servers: &[u32], clients: &[u32]) -> Result<Self, Failure> {
        let clock = |&pid: &u32| clock_getcpuclockid(Pid::from_raw(pid as i32));
        Ok(Self {
            servers: servers.iter().map(clock).collect::<Result<_, _>>()?,
            clients: clients.iter().map(clock).collect::<Result<_, _>>()?,
        })
    }

    /// What they show.
    ///
    /// # Errors
    ///
    /// A process is gone.
    pub(crate) fn read(&self) -> Result<Reading, Failure> {
        Ok(Reading {
            at: now(),
            server: sum(&self.servers)?,
            client: sum(&self.clients)?,
            machine: busy_time(),
        })
    }
}

fn sum(clocks: &[ClockId]) -> Result<Duration, Failure> {
    let mut sum = Duration::ZERO;
    for clock in clocks {
        sum += Duration::from(clock.now()?);
    }
    Ok(sum)
}

/// The clocks, read together.
pub(crate) struct Reading {
    /// When.
    pub(crate) at: Instant,
    /// Processor time of all servers until then.
    pub(crate) server: Duration,
    /// Processor time of all clients until then.
    pub(crate) client: Duration,
    /// Processor time spent on anything until then.
    machine: Duration,
}

impl Reading {
    /// How many processors were busy with neither a server nor a client, from then to `to`.
    pub(crate) fn others(&self, to: &Self) -> f64 {
        let ours = to.server - self.server + (to.client - self.client);
        let others = (to.machine - self.machine).saturating_sub(ours);
        others.as_secs_f64() / (to.at - self.at).as_secs_f64()
    }
}
