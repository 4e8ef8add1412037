//! The times of faults of servers, processes or connections.

use std::{collections::HashMap, ops::Range};

use crate::history::{Event, Fault, History, Phase};

/// One fault injected by the nemesis.
#[derive(Debug)]
pub(super) struct Window<'h> {
    pub(super) fault: Fault,
    pub(super) shard: Option<&'h str>,
    pub(super) victim: Option<u32>,
    pub(super) time: Range<u64>,
}

impl Window<'_> {
    /// Whether it was done to a coordinator, or to its connections.
    pub(super) fn is_of_a_coordinator(&self) -> bool {
        match self.fault {
            Fault::KillCoordinator | Fault::EndCoordinator | Fault::StopCoordinator => true,
            Fault::Cut | Fault::Delay | Fault::BlackHole => self.victim.is_some(),
            _ => false,
        }
    }
}

pub(super) fn of(history: &History) -> Vec<Window<'_>> {
    let mut begun: HashMap<(u32, u64), &Event> = HashMap::new();
    let mut windows = Vec::new();
    for event in &history.events {
        let Some(fault) = event.deed.fault else {
            continue;
        };
        let id = (event.process, event.deed.op);
        if event.deed.phase == Phase::Invoke {
            begun.insert(id, event);
        } else if let Some(begun) = begun.remove(&id) {
            let (shard, time) = (begun.deed.shard.as_deref(), begun.t_ns..event.t_ns);
            let victim = begun.deed.victim;
            windows.push(Window {
                fault,
                shard,
                victim,
                time,
            });
        }
    }
    windows
}
