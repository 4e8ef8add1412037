//! Losses while a plan is under way. Each plan was prepared everywhere, and its caller is about to commit it.

use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use super::*;

/// When the plan begins, in ms.
const FROM: u64 = LATER + 5000;

impl Scene {
    /// Plans three segments, and prepares all of them. Returns the version of the manifest with the plan, and the
    /// manifest that commits it.
    async fn prepared(&self) -> (u64, Manifest) {
        let account = account("a");
        let read = async || -> VersionedManifest {
            let found = self.memory.read(&account).await;
            found.unwrap().unwrap()
        };
        let found = read().await;
        let planned = found
            .manifest
            .plan(3, FROM, |_, more| vec![0; more as usize]);
        let swapped = self
            .memory
            .swap(&account, found.version, planned.unwrap())
            .await;
        assert!(swapped.unwrap());
        let VersionedManifest {
            version, manifest, ..
        } = read().await;
        let prepare = Prepare {
            generation: 2,
            base: 1,
            from_ms: FROM,
            closed: false,
            mark_ms: 0,
            manifest: manifest.encode().into(),
        };
        let terms = manifest.terms();
        for index in 0..2 {
            assert_eq!(self.tell(index, prepare.clone()).await, Ok(Reply::Prepared));
        }
        let created = self
            .tell(
                2,
                Create {
                    prepare,
                    terms,
                    credit: 0,
                    planned_ms: NOW,
                },
            )
            .await;
        assert_eq!(created, Ok(Reply::Prepared));
        (version, manifest.commit(2).unwrap())
    }

    /// Whether the caller of the plan can commit it.
    async fn commits(&self, (version, next): (u64, Manifest)) -> bool {
        self.memory
            .swap(&account("a"), version, next)
            .await
            .unwrap()
    }
}

/// The caller of a plan, which tries to commit it before each step of another caller that accepts a loss.
#[derive(Debug)]
struct Rival {
    scene: Scene,
    commit: Mutex<Option<(u64, Manifest)>>,
    committed: AtomicBool,
}

impl Rival {
    async fn prepares_in(scene: Scene) -> Arc<Self> {
        let commit = scene.prepared().await;
        let rival = Self::new(scene);
        *rival.commit.lock() = Some(commit);
        rival
    }

    fn new(scene: Scene) -> Arc<Self> {
        Arc::new(Self {
            scene,
            commit: Mutex::default(),
            committed: AtomicBool::new(false),
        })
    }

    /// Accepts the loss. The plan is not in force at any time before segments are prepared again.
    async fn loses(self: Arc<Self>) {
        let other = beside(&self);
        other.accept().await.unwrap();
        assert!(!self.committed.load(Ordering::Relaxed));
        let manifest = other.read_manifest().await.unwrap();
        let layouts = manifest.layouts().iter();
        let homes: Vec<u32> = layouts.map(|layout| layout.segments).collect();
        assert_eq!(homes, [2, 3]);
        for index in 0..3 {
            let generation = self.scene.segment(index).generation;
            assert_eq!(generation, manifest.generation());
        }
    }
}

#[async_trait]
impl Acts for Rival {
    fn scene(&self) -> &Scene {
        &self.scene
    }

    async fn acts_before(&self, _: &At, request: &Request) {
        let Some(commit) = self.commit.lock().clone() else {
            // The manifest was read, the segments were not.
            let commit = self.scene.prepared().await;
            *self.commit.lock() = Some(commit);
            return self.scene.lose(0);
        };
        if matches!(request, Request::Replace(_) | Request::Accept(_)) {
            let committed = self.scene.commits(commit).await;
            self.committed.fetch_or(committed, Ordering::Relaxed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_not_committed_after_a_lost_segment_is_replaced() {
    let rival = Rival::prepares_in(Scene::new(Durability::Memory).await).await;
    rival.scene.lose(0);
    rival.loses().await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_not_committed_after_a_lost_preparation_is_accepted() {
    let scene = Scene::new(Durability::Disk).await;
    let mut older = scene.segment(0);
    let rival = Rival::prepares_in(scene).await;
    older.came_back();
    rival.scene.memory.with_segments(|segments| {
        segments.insert(at("a", 0), older);
    });
    rival.loses().await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_made_since_the_manifest_was_read_is_not_committed_either() {
    Rival::new(Scene::new(Durability::Memory).await)
        .loses()
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_segment_lost_with_the_manifest_is_replaced_for_the_plan_that_may_be_in_force() {
    let scene = Scene::new(Durability::Memory).await;
    // It was committed since the copy of the manifest was written.
    scene.prepared().await;
    scene.lose(0);
    let terms = terms_of(&scene.counter).await;
    let storage = scene.without_manifests();
    let created = Counter::create(storage.clone(), account("a"), terms, 2);
    assert_eq!(lost_in(created.await), [(0, None)]);
    let found = Counter::open(storage, account("a"));
    found.accept().await.unwrap();
    assert_eq!(scene.segment(0).generation, 2);
    assert!(found.read_manifest().await.unwrap().generation() > 2);
}
