//! Whose clock stepped: a server's, or the engine's own.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use ringfence_ring::SlotCount;
use tokio::time::timeout;

use super::{renewer::LeaseRenewer, routing::Routing};
use crate::{
    driver::{ClockStep, Comparison},
    ids::{ClientId, Nonce, Token},
    limits::LEASE_MIN,
    name::{Label, LockKey, Namespace},
    shard::Op,
};

/// How long other shards are waited for when they are asked for the time.
const WITHIN: Duration = Duration::from_secs(1);

/// No acquisition has it.
const NOBODY: Nonce = Nonce {
    client: ClientId(0),
    sequence: 0,
};

/// Whose clock stepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Server,
    Own,
    /// No other server tells.
    Unknown,
}

/// Asks the other shards for the time: the engine's clock is to blame for a step at the shard of `accused` that they show, too.
pub(super) async fn whose(
    step: &ClockStep,
    accused: &Arc<LeaseRenewer>,
    routing: &Routing,
) -> Whose {
    let asked = accused.around.clock.now();
    let view = routing.view();
    let others = view.renewers.iter();
    let others = others.filter(|other| !Arc::ptr_eq(other, accused));
    let compared = others.map(async |other| {
        // A silent shard says nothing.
        let _ = timeout(WITHIN, ask_time(other, routing.slots())).await;
        other.driver.compare(step, asked)
    });
    let compared = join_all(compared).await;
    match compared.contains(&Some(Comparison::Stood)) {
        true => Whose::Server,
        false if compared.contains(&Some(Comparison::Moved)) => Whose::Own,
        false => Whose::Unknown,
    }
}

/// Sends a request that changes nothing: its answer has the time of the shard.
async fn ask_time(renewer: &LeaseRenewer, slots: SlotCount) {
    let Ok(key) = LockKey::new(&Namespace::default(), b"time", slots) else {
        return;
    };
    let op = Op::Confirm {
        nonce: NOBODY,
        label: Label::default(),
        token: Token::default(),
        tokens: 1,
        lease: LEASE_MIN,
        install: false,
    };
    let _ = renewer.driver.submit(renewer.request(&key, op)).await;
}
