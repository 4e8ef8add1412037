//! What there is to know of a topology now.

use std::{fmt, time::Duration};

use humantime::format_duration;
use ringfence_client::{Client, ShardId, ShardStatus, Topology};
use serde::Serialize;

use crate::cli::table::{Table, grouped, percent};

/// A topology, and how its shards are.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    done: Done,
    topology: String,
    version: u64,
    incarnation: String,
    home: String,
    max_lease_ms: u64,
    shards: Vec<Shard>,
    warnings: Vec<String>,
}

/// What was done to it just now.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Done {
    Looked,
    Founded,
    /// It was to be founded.
    ThereAlready,
    Recovered,
    /// It was to be recovered.
    InForce,
}

/// One shard of it.
#[derive(Debug, Serialize)]
struct Shard {
    id: String,
    address: String,
    slots: u32,
    /// The part of the slots it has, of 1.
    share: f64,
    /// The part that its weight is, of all weights.
    fair_share: f64,
    /// How long it grants nothing new.
    grace_left_ms: u64,
    reachable: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Status {
    /// What `client` sees.
    pub(crate) async fn of(client: &Client, done: Done) -> Self {
        let shards = client.shards().await;
        client.close().await;
        let topology = client.topology();
        let shards = shards
            .iter()
            .map(|(id, status)| Shard::new(&topology, id, status))
            .collect();
        Self {
            done,
            topology: topology.id.clone(),
            version: topology.version,
            incarnation: topology.incarnation.to_string(),
            home: topology.home.address.clone(),
            max_lease_ms: topology.constants.max_lease_ms,
            shards,
            warnings: client.warnings().to_vec(),
        }
    }
}

impl Shard {
    fn new(topology: &Topology, id: &ShardId, status: &ShardStatus) -> Self {
        let entry = topology.shard(id);
        Self {
            id: id.to_string(),
            address: entry.map(|entry| entry.address.clone()).unwrap_or_default(),
            slots: topology.table.quota(id),
            share: status.share,
            fair_share: fair_share(topology, id),
            grace_left_ms: u64::try_from(status.grace_left.as_millis()).unwrap_or(u64::MAX),
            reachable: status.error.is_none(),
            error: status.error.as_ref().map(ToString::to_string),
        }
    }

    fn state(&self) -> String {
        match &self.error {
            Some(error) => error.clone(),
            None if self.grace_left_ms > 0 => {
                format!(
                    "came back or is new: new locks in {} s",
                    self.grace_left_ms.div_ceil(1000)
                )
            }
            None => "ok".into(),
        }
    }
}

/// The part that the weight of `id` is of all weights.
pub(crate) fn fair_share(topology: &Topology, id: &ShardId) -> f64 {
    let membership = topology.table.membership();
    let total: u32 = membership.weights().iter().map(|weight| weight.get()).sum();
    let own = membership.weight(id).map_or(0, |weight| weight.get());
    f64::from(own) / f64::from(total)
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.done {
            Done::Looked => "",
            Done::Founded => "founded: ",
            Done::ThereAlready => "there already, unchanged: ",
            Done::Recovered => "recovered: ",
            Done::InForce => "in force, unchanged: ",
        };
        let max_lease = format_duration(Duration::from_millis(self.max_lease_ms));
        writeln!(
            out,
            "{done}topology {}, version {}",
            self.topology, self.version
        )?;
        writeln!(out, "incarnation {}", self.incarnation)?;
        writeln!(out, "home {}", self.home)?;
        writeln!(out, "leases of {max_lease} at most\n")?;
        write!(out, "{}", self.table())?;
        let mut warnings = self.warnings.iter();
        warnings.try_for_each(|warning| writeln!(out, "\nwarning: {warning}"))
    }
}

impl Status {
    fn table(&self) -> Table {
        let headings = ["shard", "address", "slots", "share", "fair share", "state"];
        let mut table = Table::new(&headings);
        for shard in &self.shards {
            let (id, address) = (shard.id.clone(), shard.address.clone());
            let slots = grouped(shard.slots.into());
            let (share, fair_share) = (percent(shard.share), percent(shard.fair_share));
            table.row([id, address, slots, share, fair_share, shard.state()]);
        }
        table
    }
}
