//! `ringfence ring remove --gone`: removes a shard that will never answer again. The first call shows the
//! consequences; the second attests that the shard is dead, and removes it.

use std::{collections::BTreeMap, fmt, time::Duration};

use humantime::format_duration;
use ringfence_client::{BootClock, Clock as _, Removal, ShardId, Topology};
use ringfence_coordinator::{
    shard::ShardError,
    topology::{Dial as _, FailedShard, Opening, TopologyStore as _, server::ServerTopology},
};
use serde::Serialize;
use tokio::time::timeout;

use super::{
    ASK_WITHIN, RingError, print,
    run::{MoveOptions, swapped},
};
use crate::{
    say,
    table::{Table, grouped},
};

/// The shard to remove, and the consequences. Nothing is removed yet.
#[derive(Debug, Serialize)]
struct ForcedRemoval {
    topology: String,
    version: u64,
    shard: String,
    address: String,
    removal: Removal,
    heirs: Vec<Heir>,
    /// For this long clients may still use the removed shard: the heirs do not open its slots.
    views_ms: u64,
    /// For this long after that, the heirs grant nothing new, and holders put their locks back.
    grace_ms: u64,
    /// The command for the second step.
    command: String,
}

/// A shard that gets slots of the removed one.
#[derive(Debug, Serialize)]
struct Heir {
    id: String,
    address: String,
    /// The number of slots it gets.
    slots: u32,
    /// Its number of slots after that.
    slots_after: u32,
}

/// Removes `gone` if its death is attested; otherwise shows the consequences.
pub(super) async fn remove(
    gone: &ShardId,
    attested: bool,
    how: &MoveOptions,
) -> Result<(), RingError> {
    let store = how.store().await?;
    loop {
        let topology = store.load().await?;
        if topology.failed.iter().any(|failed| failed.shard.0 == *gone) {
            return match attested {
                true => how.move_slots(store, false, None).await,
                false => Err(RingError::DeclaredDead(gone.clone())),
            };
        }
        let decommissioned = topology.decommission(gone, BootClock.unix())?;
        check_gone(&store, &topology, gone).await?;
        let removal = ForcedRemoval::of(&decommissioned);
        if !attested {
            return print(&removal, how.json());
        }
        if swapped(&store, &topology, &decommissioned).await? {
            say(&format!("declared dead: {gone}; {removal:#}"));
            return how.move_slots(store, false, decommissioned.goal).await;
        }
    }
}

/// Refuses a shard that answers, unless it came back empty.
async fn check_gone(
    store: &ServerTopology,
    topology: &Topology,
    id: &ShardId,
) -> Result<(), RingError> {
    let entry = topology
        .shard(id)
        .expect("a shard that can be decommissioned is a member");
    let answers = |how: String| RingError::Answers {
        id: id.clone(),
        address: entry.address.clone(),
        how,
    };
    let connected = match store.dial(id, entry) {
        Ok(shard) => timeout(ASK_WITHIN, shard.connect_control(None)).await,
        Err(error) => Ok(Err(error)),
    };
    match connected {
        Ok(Ok(link)) if *link.life() == entry.life => Err(answers(match topology.goal {
            None => format!("it answers; to remove it: ringfence ring remove {id}"),
            Some(_) => format!(
                "it answers; once the resize under way is over, to remove it: ringfence ring remove {id}"
            ),
        })),
        Ok(Err(error @ (ShardError::Unusable { .. } | ShardError::Refused { .. }))) => {
            Err(answers(format!(
                "it answers, and cannot be used: {error}; repair that first"
            )))
        }
        Ok(Ok(_) | Err(_)) | Err(_) => Ok(()),
    }
}

impl ForcedRemoval {
    /// The consequences of the last change of `decommissioned`, which declares a shard dead.
    fn of(decommissioned: &Topology) -> Self {
        let FailedShard {
            shard,
            address,
            epoch,
            ..
        } = decommissioned
            .failed
            .last()
            .expect("the shard that was just declared dead");
        let mut come: BTreeMap<&ShardId, u32> = BTreeMap::new();
        let openings = decommissioned.openings.iter();
        for Opening { to, slots, .. } in openings.filter(|opening| opening.epoch == *epoch) {
            *come.entry(&to.0).or_default() += slots.len() as u32;
        }
        let heir = |(id, slots): (&ShardId, u32)| Heir {
            id: id.to_string(),
            address: decommissioned
                .shard(id)
                .map(|entry| entry.address.clone())
                .unwrap_or_default(),
            slots,
            slots_after: decommissioned.table.quota(id),
        };
        let millis = |length: Duration| length.as_millis() as u64;
        let id = &shard.0;
        Self {
            topology: decommissioned.id.clone(),
            version: decommissioned.version - 1,
            shard: id.to_string(),
            address: address.clone(),
            removal: decommissioned.constants.removal,
            heirs: come.into_iter().map(heir).collect(),
            views_ms: millis(decommissioned.constants.views_last()),
            grace_ms: millis(decommissioned.constants.grace()),
            command: format!("ringfence ring remove --gone {id} --attest-dead {id}"),
        }
    }

    /// The shards that grant nothing, and for how long.
    fn pause(&self) -> String {
        let heirs: Vec<_> = self.heirs.iter().map(|heir| heir.id.as_str()).collect();
        let length = |ms| format_duration(Duration::from_millis(ms));
        let (heirs, grace) = (heirs.join(", "), length(self.grace_ms));
        let views = match self.views_ms {
            0 => String::new(),
            ms => format!("its slots are opened after {}; then ", length(ms)),
        };
        format!(
            "{views}no new locks from {heirs}, whichever the slot, for {grace}; holders put theirs back meanwhile"
        )
    }

    /// The facts that an operator must be sure of.
    fn to_attest(&self) -> String {
        let id = &self.shard;
        match self.removal {
            Removal::Supervised => format!(
                "removal is supervised. To attest: no client can reach {id}, and it will be restarted\n\
                or flushed before one can. Wrong, it can make two holders."
            ),
            Removal::Leased => format!(
                "removal is leased: a client that cannot confirm that {id} is a shard sends it nothing.\n\
                To attest: it will not be needed again. Right or wrong, there is one holder at most."
            ),
        }
    }
}

impl fmt::Display for ForcedRemoval {
    /// In full, for the operator who decides; `{:#}`: the summary after the removal.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if out.alternate() {
            return out.write_str(&self.pause());
        }
        let (id, address) = (&self.shard, &self.address);
        let (topology, version) = (&self.topology, self.version);
        writeln!(
            out,
            "not done: shard {id}, {address}, would be declared dead\ntopology {topology}, version {version}\n"
        )?;
        let mut heirs = Table::new(&["heir", "address", "slots", "→ slots"]);
        for heir in &self.heirs {
            let slots = [heir.slots, heir.slots_after].map(|slots| grouped(slots.into()));
            let [come, after] = slots;
            heirs.row([heir.id.clone(), heir.address.clone(), come, after]);
        }
        writeln!(out, "{heirs}\n{}\n\n{}", self.pause(), self.to_attest())?;
        writeln!(out, "\nto do it: {}", self.command)
    }
}
