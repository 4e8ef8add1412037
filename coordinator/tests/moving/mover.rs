//! The steps of a move, one by one, by hand.

use std::time::Duration;

use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    name::LockKey,
    shard::{ControlLink, Listing, Mode, Scan, Shard, Step, Stepped, memory::MemoryShard},
    topology::{Migration, Round, ShardName, Swap, Topology, TopologyStore, shard_id},
};

use super::{Ring, lock_key};

impl Ring {
    /// The key's slot is on its way, by the record.
    pub(crate) async fn plan(&self) {
        let slot = lock_key(self.key).slot();
        self.change(|next| {
            next.last_epoch = Epoch(next.last_epoch.0 + 1);
            next.migrations.push(Migration {
                epoch: next.last_epoch,
                from: ShardName(shard_id(0)),
                to: ShardName(shard_id(1)),
                listed: false,
                slots: vec![slot],
            });
        })
        .await;
    }

    /// Of the slot that is on its way.
    pub(crate) async fn epoch(&self) -> Epoch {
        self.store.load().await.unwrap().migrations[0].epoch
    }

    pub(crate) async fn seal(&self) -> Token {
        let sealed = self.step(self.a(), Mode::Sealed, Token::default()).await;
        sealed.last_token
    }

    pub(crate) async fn import(&self, last: Token) {
        let above = last.max(Token::new(self.epoch().await, 0));
        self.step(self.b(), Mode::Import, above).await;
    }

    /// Planned, sealed and imported.
    pub(crate) async fn set_out(&self) {
        self.plan().await;
        let last = self.seal().await;
        self.import(last).await;
    }

    /// The keys that `a` holds.
    pub(crate) async fn scan(&self) -> Vec<LockKey> {
        let scan = Scan {
            epoch: self.epoch().await,
            after: None,
        };
        let page = link(self.a()).await.scan(&scan).await.unwrap();
        assert!(page.grace_left.is_zero() && page.next.is_none());
        page.held
    }

    /// `b` is told which keys `a` holds, and all clients that it was.
    pub(crate) async fn list(&self) {
        let listing = Listing {
            epoch: self.epoch().await,
            held: self.scan().await,
            complete: vec![lock_key(self.key).slot()],
        };
        let refused = link(self.b()).await.take_list(&listing).await.unwrap();
        assert!(refused.is_empty());
        self.change(|next| next.migrations[0].listed = true).await;
    }

    /// Opened, shut and finished: nothing is left at `a`.
    pub(crate) async fn arrive(&self) {
        assert_eq!(self.scan().await, []);
        self.arrive_by_force().await;
    }

    /// Like [`arrive`](Self::arrive), with anything left at `a`.
    pub(crate) async fn arrive_by_force(&self) {
        self.move_over().await;
        self.finish().await;
    }

    /// Opened at `b` and shut at `a`; the record does not say so yet.
    pub(crate) async fn move_over(&self) {
        let above = Token::new(self.epoch().await, 0);
        self.step(self.b(), Mode::Open, above).await;
        self.step(self.a(), Mode::Shut, Token::default()).await;
    }

    /// The slot is `b`'s.
    async fn finish(&self) {
        let before = self.store.load().await.unwrap();
        let finished = (self.epoch().await, vec![lock_key(self.key).slot()]);
        let round = Round {
            finished: vec![finished],
            ..Round::default()
        };
        let next = before.turn(&round, Duration::from_secs(1_800_000_000));
        let next = next.unwrap().expect("it is finished");
        let swapped = self.store.swap(before.version(), &next).await.unwrap();
        assert!(matches!(swapped, Swap::Done));
    }

    async fn step(&self, shard: &MemoryShard, mode: Mode, above: Token) -> Stepped {
        let topology = self.store.load().await.unwrap();
        let step = Step {
            incarnation: topology.incarnation,
            copy: (topology.version, topology.encode()),
            map: MapVersion::UNKNOWN,
            epoch: self.epoch().await,
            mode,
            slots: vec![lock_key(self.key).slot()],
            above,
        };
        let stepped = link(shard).await.step(&step).await.unwrap();
        assert!(stepped.refused.is_empty());
        stepped
    }

    async fn change(&self, change: impl FnOnce(&mut Topology)) {
        let before = self.store.load().await.unwrap();
        let mut next = Topology::clone(&before);
        next.version += 1;
        change(&mut next);
        let swapped = self.store.swap(before.version(), &next).await.unwrap();
        assert!(matches!(swapped, Swap::Done));
    }
}

async fn link(shard: &MemoryShard) -> Box<dyn ControlLink> {
    shard.connect_control(None).await.unwrap()
}
