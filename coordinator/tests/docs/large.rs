//! Batches of more documents than fit into a commit.

use std::collections::HashSet;

use ringfence_conformance::shard::Fixture as _;
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    name::LockKey,
    shard::{
        Arm, Counters, Grace, LockLane, MarkQuiet, Mode, Reply, Request, SlotState, SlotStates,
        Step,
    },
};

use super::races::{LONG, acquire, incarnation, key, nonce, request, slots};
use crate::docs_fixture::Docs;

const EPOCH: Epoch = Epoch(5);
const QUIET: MapVersion = MapVersion(1);

fn by_quiet_map(key: &LockKey, sequence: u64) -> Request {
    Request {
        map: QUIET,
        ..request(key, acquire(nonce(1, sequence), LONG, false))
    }
}

/// Its batch was made for one document per request; now each depends on an import, too.
#[tokio::test]
async fn a_batch_of_a_shard_that_is_quiet_no_more_is_applied_request_by_request() {
    let docs = Docs::new().await;
    let mut taken = HashSet::new();
    let others = (0..26).map(key).filter(|key| taken.insert(key.slot()));
    let [open, coming @ ..]: [LockKey; 4] = others.take(4).collect::<Vec<_>>().try_into().unwrap();
    let arriving: Vec<_> = coming.iter().map(LockKey::slot).collect();
    let copy = |version| (version, "record".into());
    let mut mover = docs.shard().connect_control(None).await.unwrap();
    let arm = Arm {
        topology: docs.topology(),
        incarnation: incarnation(),
        epoch: EPOCH,
        token_epoch: EPOCH,
        declared: MapVersion::UNKNOWN,
        slots: SlotStates::new(slots().iter(), |slot| SlotState {
            mode: match arriving.contains(&slot) {
                true => Mode::Shut,
                false => Mode::Open,
            },
            epoch: EPOCH,
        }),
        grace: Grace::None,
        counters: Counters::Never,
        copy: copy(1),
    };
    assert!(mover.arm(&arm).await.unwrap().armed_now);
    let mark = MarkQuiet {
        incarnation: incarnation(),
        copy: copy(1),
        map: QUIET,
        slots: slots()
            .iter()
            .filter(|slot| !arriving.contains(slot))
            .collect(),
    };
    assert!(mover.mark_quiet(&mark).await.unwrap());
    let mut link = docs
        .shard()
        .connect_locks(LockLane::Work, None)
        .await
        .unwrap();
    let first = link.call(&[by_quiet_map(&open, 1)]).await.unwrap();
    assert!(
        matches!(first.replies[..], [Reply::Granted { .. }]),
        "{first:?}"
    );
    let step = Step {
        incarnation: incarnation(),
        copy: copy(2),
        map: MapVersion(2),
        epoch: Epoch(6),
        mode: Mode::Import,
        slots: arriving,
        above: Token::default(),
    };
    assert_eq!(mover.step(&step).await.unwrap().refused, []);
    let batch: Vec<_> = coming
        .iter()
        .zip(2..)
        .map(|(key, sequence)| by_quiet_map(key, sequence))
        .collect();
    docs.limit_commits(4);
    let answers = link.call(&batch).await.unwrap();
    let waits = |reply: &Reply| matches!(reply, Reply::NeedProof { .. });
    assert!(answers.replies.iter().all(waits), "{answers:?}");
}
