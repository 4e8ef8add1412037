//! What a server keeps of slots that move, and what else lies under such names.

use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    limits::LEASE_MAX,
    name::{Label, LockKey},
    shard::{Listing, LockMode, Mode, Op, Proof, Reply, Request, Scan, Step, StillHeld},
};

use super::{Desk, acquire, incarnation, key, nonce, release, request};

/// The epoch of every move here.
const MOVE: Epoch = Epoch(9);

impl Desk {
    /// Makes the slot of `key` become `mode`.
    async fn becomes(&mut self, key: &LockKey, mode: Mode) {
        let step = Step {
            incarnation: incarnation(),
            copy: (2, "record".into()),
            map: MapVersion::UNKNOWN,
            epoch: MOVE,
            mode,
            slots: vec![key.slot()],
            above: Token::default(),
        };
        assert_eq!(self.mover.step(&step).await.unwrap().refused, []);
    }

    /// Lists `key` as held at the former shard, and nothing else.
    async fn lists(&mut self, key: &LockKey) {
        let listing = Listing {
            epoch: MOVE,
            held: vec![key.clone()],
            complete: vec![key.slot()],
        };
        assert_eq!(self.mover.take_list(&listing).await.unwrap(), []);
    }

    /// The answer of a shard that is not quiet.
    async fn moving(&mut self, request: Request) -> Reply {
        let answers = self.link.call(&[request]).await.unwrap();
        answers.replies.into_iter().next().unwrap()
    }

    /// Every key that is held in sealed slots.
    async fn scanned(&mut self) -> Vec<LockKey> {
        let (mut held, mut after) = (Vec::new(), None);
        loop {
            let scan = Scan { epoch: MOVE, after };
            let page = self.mover.scan(&scan).await.unwrap();
            held.extend(page.held);
            after = page.next;
            if after.is_none() {
                return held;
            }
        }
    }

    /// What the server knows of the keys of slots that come here.
    async fn imports(&mut self) -> Vec<String> {
        self.ask(&["KEYS", "ringfence:life:*:import:*"]).await
    }
}

fn proving(key: &LockKey, sequence: u64) -> Request {
    let mut request = acquire(key, sequence);
    if let Op::Acquire { proof, ticket, .. } = &mut request.op {
        let absent = Proof {
            epoch: MOVE,
            left: 0,
        };
        (*proof, *ticket) = (Some(absent), None);
    }
    request
}

fn adopt(key: &LockKey, sequence: u64) -> Request {
    let op = Op::Adopt {
        nonce: nonce(sequence),
        label: Label::new("moving"),
        own: Token::new(Epoch(1), 1),
        token: Token::new(Epoch(1), 1),
        tokens: 1,
        mode: LockMode::Exclusive,
        lease: LEASE_MAX,
        epoch: MOVE,
    };
    Request {
        map: MapVersion::UNKNOWN,
        ..request(key, op)
    }
}

fn is_granted(reply: &Reply) -> bool {
    matches!(reply, Reply::Granted { .. })
}

#[tokio::test]
async fn nothing_is_left_of_an_import_once_its_slot_is_here() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    desk.becomes(&key, Mode::Import).await;
    assert!(is_granted(&desk.moving(proving(&key, 1)).await));
    desk.lists(&key).await;
    let imports = desk.imports().await;
    assert_eq!(imports.len(), 1, "{imports:?}");
    desk.becomes(&key, Mode::Open).await;
    assert_eq!(desk.imports().await, [""; 0]);
}

#[tokio::test]
async fn nothing_is_left_of_an_import_whose_life_is_over() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    desk.becomes(&key, Mode::Import).await;
    desk.lists(&key).await;
    assert_eq!(desk.imports().await.len(), 1);
    desk.redis.restart().await;
    let mut desk = Desk::of(desk.redis).await;
    assert_eq!(desk.imports().await, [""; 0]);
}

#[tokio::test]
async fn where_an_import_is_lost_proofs_are_asked_for_again() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    desk.becomes(&key, Mode::Import).await;
    assert!(is_granted(&desk.moving(proving(&key, 1)).await));
    desk.lists(&key).await;
    desk.moving(release(&key, 1)).await;
    let imports = desk.imports().await;
    let () = desk.ask(&["DEL", &imports[0]]).await;
    let need_proof = Reply::NeedProof { epoch: MOVE };
    assert_eq!(desk.moving(acquire(&key, 2)).await, need_proof);
    desk.moving(release(&key, 2)).await;
    assert!(is_granted(&desk.moving(proving(&key, 2)).await));
    desk.moving(release(&key, 2)).await;
    // That proof is remembered.
    assert!(is_granted(&desk.moving(acquire(&key, 2)).await));
}

#[tokio::test]
async fn a_scan_passes_over_what_is_not_ours() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    desk.one(acquire(&key, 1)).await;
    desk.becomes(&key, Mode::Sealed).await;
    let slot = key.slot().index();
    for name in [
        "{16}:default:key".into(),
        "{99999999999999999999}:default:key".into(),
        "{}:default:key".into(),
        "{".into(),
        "queue".into(),
        "queue:".into(),
        "queue:{77}:default:key".into(),
        format!("{{{slot}}}:default:other"),
        format!("queue:{{{slot}}}:default:other"),
        format!("tickets:{{{slot}}}:default:third"),
    ] {
        let name = format!("ringfence:{name}");
        let () = desk.ask(&["SET", &name, "foreign"]).await;
    }
    assert_eq!(desk.scanned().await, [key]);
}

#[tokio::test]
async fn a_full_server_loses_no_lock_that_moves() {
    let mut desk = Desk::quiet().await;
    let mut keys = (0..).map(|at| key(&at.to_string()));
    let leaves = keys.next().unwrap();
    let comes = keys.find(|key| key.slot() != leaves.slot()).unwrap();
    desk.one(acquire(&leaves, 1)).await;
    let () = desk.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;

    desk.becomes(&leaves, Mode::Sealed).await;
    desk.becomes(&comes, Mode::Import).await;
    assert_eq!(desk.scanned().await.len(), 1);
    desk.lists(&comes).await;
    let adopted = desk.moving(adopt(&comes, 2)).await;
    assert_eq!(adopted, Reply::Adopted { contended: false });
    let remove = Op::Remove {
        nonce: nonce(1),
        epoch: MOVE,
    };
    let removed = desk.moving(super::request(&leaves, remove)).await;
    assert_eq!(removed, Reply::Released { held: true });
    let still = StillHeld {
        epoch: MOVE,
        keys: vec![leaves.clone()],
        slots: vec![leaves.slot()],
    };
    let still = desk.mover.still_held(&still).await.unwrap();
    assert!(still.keys.is_empty() && still.refused.is_empty());
    let refused = desk.moving(acquire(&comes, 3)).await;
    assert_eq!(refused, Reply::OutOfMemory);
}
