//! The present state of a topology, for the output.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::{Duration, UNIX_EPOCH},
};

use humantime::{format_duration, format_rfc3339_seconds};
use ringfence_client::{
    Client, Namespace, Replicas, ShardError, ShardId, ShardStatus, Topology, TopologyError,
};
use ringfence_coordinator::topology::{MemberState, Namespaces};
use ringfence_ring::Zone;
use serde::Serialize;

use super::resize::Resize;
use crate::table::{Table, grouped, percent};

/// A topology, and the states of its shards.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    done: Done,
    #[serde(rename = "topology")]
    id: String,
    version: u64,
    incarnation: String,
    home: String,
    max_lease_ms: u64,
    /// The replicas of each lock of the declared namespaces.
    namespaces: Namespaces,
    /// Of those with several replicas: how many can be granted now.
    replicas: Vec<Readiness>,
    shards: Vec<Shard>,
    /// Shards that were declared dead.
    failed: Vec<FailedShard>,
    /// Shards that were activated anew for a step of a clock, in their present incarnation.
    clock_alarms: Vec<Alarm>,
    /// None is under way.
    resize: Option<Resize>,
    warnings: Vec<String>,
}

/// The action that the command has just done.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Done {
    Shown,
    Founded,
    /// The command would found it.
    ThereAlready,
    Readdressed,
    Recovered,
    /// The command would recover it.
    InForce,
}

/// The replicas of the locks of a namespace.
#[derive(Debug, Serialize)]
struct Readiness {
    namespace: String,
    replicas: u32,
    /// The fewest replicas of a lock whose shards can grant it now.
    ready: u32,
    /// Slots of which no majority is ready: their locks are not granted.
    stuck: u32,
}

impl Readiness {
    fn of(topology: &Topology, shards: &[Shard]) -> Vec<Self> {
        let ready: BTreeSet<&str> = shards
            .iter()
            .filter(|shard| shard.reachable && shard.grace_left_ms == 0)
            .map(|shard| shard.id.as_str())
            .collect();
        let table = &topology.table;
        let several = topology.namespaces.iter();
        let several = several.filter(|(_, replicas)| *replicas > Replicas::One);
        let of_namespace = |(name, replicas): (&Namespace, Replicas)| {
            let at_slot = |slot| {
                let owners = table.replicas(slot).take(replicas.get() as usize);
                owners.filter(|id| ready.contains(id.as_str())).count() as u32
            };
            let by_slot: Vec<u32> = table.slots().iter().map(at_slot).collect();
            let stuck = by_slot
                .iter()
                .filter(|ready| **ready <= replicas.minority());
            Self {
                namespace: name.to_string(),
                replicas: replicas.get(),
                ready: by_slot.iter().min().copied().unwrap_or_default(),
                stuck: stuck.count() as u32,
            }
        };
        several.map(of_namespace).collect()
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace,
            replicas,
            ready,
            stuck,
        } = self;
        write!(out, "namespace {namespace}: ")?;
        match (ready == replicas, stuck) {
            (true, _) => write!(out, "all {replicas} replicas of each lock are ready"),
            (false, 0) => write!(
                out,
                "{ready} of {replicas} replicas are ready, a majority, of some locks or all"
            ),
            (false, stuck) => write!(
                out,
                "no majority of the {replicas} replicas is ready in {} slots: their locks are not granted",
                grouped(u64::from(*stuck))
            ),
        }
    }
}

/// One shard of it.
#[derive(Debug, Serialize)]
struct Shard {
    id: String,
    address: String,
    zone: Option<String>,
    /// Whether it joins or leaves by the resize under way.
    membership: MemberState,
    weight: u32,
    slots: u32,
    /// The part of the slots it has, of 1.
    share: f64,
    /// The part that its weight is, of all weights: once the resize under way is done.
    fair_share: f64,
    /// How long it grants nothing new.
    grace_left_ms: u64,
    reachable: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A shard that was declared dead.
#[derive(Debug, Serialize)]
struct FailedShard {
    id: String,
    address: String,
    /// Of its slots, those that the shards which have them now have yet to open.
    to_open: usize,
}

impl FailedShard {
    fn of(topology: &Topology) -> Vec<Self> {
        let failed = topology.failed.iter().map(|failed| {
            let its = topology
                .openings
                .iter()
                .filter(|opening| opening.epoch == failed.epoch);
            Self {
                id: failed.shard.0.to_string(),
                address: failed.address.clone(),
                to_open: its.map(|opening| opening.slots.len()).sum(),
            }
        });
        failed.collect()
    }
}

impl fmt::Display for FailedShard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "declared dead: {}, {}", self.id, self.address)?;
        match self.to_open {
            0 => Ok(()),
            slots => write!(
                out,
                "; {} of its slots are yet to be opened",
                grouped(slots as u64)
            ),
        }
    }
}

/// A shard that was activated anew for a step of a clock.
#[derive(Debug, Serialize)]
struct Alarm {
    shard: String,
    /// The process that saw it.
    by: String,
    by_ms: i64,
    unix_s: u64,
}

impl Alarm {
    fn of(topology: &Topology) -> Vec<Self> {
        let alarms = topology.alarms.iter().map(|(shard, alarm)| Self {
            shard: shard.0.to_string(),
            by: alarm.by.clone(),
            by_ms: alarm.by_ms,
            unix_s: alarm.unix_s,
        });
        alarms.collect()
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = UNIX_EPOCH + Duration::from_secs(self.unix_s.min(i32::MAX as u64));
        let (shard, by) = (&self.shard, &self.by);
        write!(
            out,
            "clock: shard {shard} was activated anew at {}: {by} saw its clock step by {:+.1} s, or has a wrong clock",
            format_rfc3339_seconds(at),
            self.by_ms as f64 / 1000.0
        )
    }
}

impl View {
    /// What `client` sees.
    pub(crate) async fn of(client: &Client, done: Done) -> Result<Self, TopologyError> {
        let shards = client.shards().await;
        client.close().await;
        let topology = client.topology();
        let silent = silent(&topology, &shards);
        let shards: Vec<Shard> = shards
            .iter()
            .map(|(id, status)| Shard::new(&topology, id, status))
            .collect();
        Ok(Self {
            done,
            id: topology.id.clone(),
            version: topology.version,
            incarnation: topology.incarnation.to_string(),
            home: topology.home.address.clone(),
            max_lease_ms: topology.constants.max_lease_ms,
            namespaces: topology.namespaces.clone(),
            replicas: Readiness::of(&topology, &shards),
            shards,
            failed: FailedShard::of(&topology),
            clock_alarms: Alarm::of(&topology),
            resize: Resize::of(&topology)?,
            warnings: match done {
                Done::Founded | Done::ThereAlready | Done::Readdressed => {
                    [client.warnings(), &silent, &loopback(&topology)].concat()
                }
                _ => [client.warnings(), &silent].concat(),
            },
        })
    }
}

/// Shards that may have another address by now.
fn silent(topology: &Topology, shards: &BTreeMap<ShardId, ShardStatus>) -> Vec<String> {
    let is_silent =
        |status: &ShardStatus| matches!(status.error, Some(ShardError::Unreachable { .. }));
    let silent = shards.iter().filter(|(_, status)| is_silent(status));
    let warning = |(id, _): (&ShardId, _)| {
        let address = &topology.shard(id)?.address;
        Some(format!(
            "shard {id} does not answer at {address}, its address in the record, by which every process goes; if its server \
             runs at another one: ringfence ring readdress {id} URL"
        ))
    };
    silent.filter_map(warning).collect()
}

/// Addresses that lead processes on other hosts to themselves.
fn loopback(topology: &Topology) -> Vec<String> {
    let is_loopback = |address: &&str| {
        let (_, rest) = address.split_once("://").unwrap_or_default();
        ["127.", "localhost:", "[::1]"]
            .iter()
            .any(|host| rest.starts_with(host))
    };
    let addresses = topology.shards.values().map(|entry| &*entry.address);
    let first = addresses.chain([&*topology.home.address]).find(is_loopback);
    let warning = first.map(|address| {
        format!(
            "{address} is how the record names the server, for every process: those on other hosts do not reach it"
        )
    });
    warning.into_iter().collect()
}

impl Shard {
    fn new(topology: &Topology, id: &ShardId, status: &ShardStatus) -> Self {
        let entry = topology.shard(id);
        Self {
            id: id.to_string(),
            address: entry.map(|entry| entry.address.clone()).unwrap_or_default(),
            zone: topology.table.membership().zone(id).map(Zone::to_string),
            membership: topology.member_state(id),
            weight: topology.weight(id),
            slots: topology.table.quota(id),
            share: topology.table.share(id),
            fair_share: topology.fair_share(id),
            grace_left_ms: u64::try_from(status.grace_left.as_millis()).unwrap_or(u64::MAX),
            reachable: status.error.is_none(),
            error: status.error.as_ref().map(ToString::to_string),
        }
    }

    fn state(&self) -> String {
        let grace = || {
            let seconds = self.grace_left_ms.div_ceil(1000);
            format!("recovering or new: new locks in {seconds} s")
        };
        let condition = self.error.clone();
        let condition = condition.or_else(|| (self.grace_left_ms > 0).then(grace));
        match (self.membership, condition) {
            (MemberState::Member, None) => "ok".into(),
            (MemberState::Member, Some(condition)) => condition,
            (changing, None) => changing.as_str().into(),
            (changing, Some(condition)) => format!("{}; {condition}", changing.as_str()),
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.done {
            Done::Shown => "",
            Done::Founded => "founded: ",
            Done::ThereAlready => "there already, unchanged: ",
            Done::Readdressed => "readdressed: ",
            Done::Recovered => "recovered: ",
            Done::InForce => "in force, unchanged: ",
        };
        let max_lease = format_duration(Duration::from_millis(self.max_lease_ms));
        writeln!(out, "{done}topology {}, version {}", self.id, self.version)?;
        writeln!(out, "incarnation {}", self.incarnation)?;
        writeln!(out, "home {}", self.home)?;
        writeln!(out, "leases of {max_lease} at most")?;
        if !self.namespaces.is_empty() {
            writeln!(out, "replicas of namespaces: {}", self.namespaces)?;
        }
        for readiness in &self.replicas {
            writeln!(out, "{readiness}")?;
        }
        writeln!(out)?;
        write!(out, "{}", self.table())?;
        for failed in &self.failed {
            writeln!(out, "\n{failed}")?;
        }
        for alarm in &self.clock_alarms {
            writeln!(out, "\n{alarm}")?;
        }
        if let Some(resize) = &self.resize {
            write!(out, "\n{resize}")?;
        }
        let mut warnings = self.warnings.iter();
        warnings.try_for_each(|warning| writeln!(out, "\nwarning: {warning}"))
    }
}

impl View {
    fn table(&self) -> Table {
        let zoned = self.shards.iter().any(|shard| shard.zone.is_some());
        let zone = zoned.then_some("zone");
        let headings = ["shard", "address"].into_iter().chain(zone);
        let headings = headings.chain(["weight", "slots", "share", "fair share", "state"]);
        let mut table = Table::new(&headings.collect::<Vec<_>>());
        for shard in &self.shards {
            let zone = zoned.then(|| shard.zone.clone().unwrap_or_default());
            let (weight, slots) = (shard.weight.to_string(), grouped(shard.slots.into()));
            let (share, fair_share) = (percent(shard.share), percent(shard.fair_share));
            let named = [shard.id.clone(), shard.address.clone()];
            let counted = [weight, slots, share, fair_share, shard.state()];
            table.row(named.into_iter().chain(zone).chain(counted));
        }
        table
    }
}
