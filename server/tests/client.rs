//! The library over the service: the same tests as on the servers themselves, and those of coordinators that fail.

use std::{
    cell::Cell,
    env,
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use nix::sys::signal::{Signal, raise};
use parking_lot::Mutex;
use ringfence_client::{
    AcquireError, Builder, Client, Coordinators, Danger, Guard, MultiLockError, Preference,
    ReleaseAnswer, Removal, Waiting,
};
use ringfence_server::{Config, Roles};
use ringfence_test_support::eventually;
use tokio::{
    net::TcpListener,
    process::Command,
    runtime::Runtime,
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep, timeout},
};

use super::{
    access::principal,
    scene::{Coordinator, Scene},
};

/// Of a lock whose renewals, or whose end, are waited for.
const LEASE: Duration = Duration::from_secs(6);
const DEADLINE: Duration = Duration::from_secs(120);

/// Two processes.
pub(crate) struct Two {
    pub(crate) one: Client,
    pub(crate) two: Client,
    /// What they use.
    pub(crate) scene: Scene,
    _other: Coordinator,
}

pub(crate) fn shared(config: &mut Config) {
    config.handle_secrets = vec!["0123456789abcdef0123456789abcdef".into()];
}

impl Two {
    /// On the servers, or over two coordinators of them.
    pub(crate) async fn new(over_the_service: bool) -> Self {
        let scene = Scene::set_with(shared).await;
        let other = scene.another(shared).await;
        let urls = [&scene.url, &other.url];
        let mut clients = Vec::new();
        for label in ["one", "two"] {
            let builder: Builder = match over_the_service {
                true => Client::builder().coordinators(Coordinators::new(urls)),
                false => scene.builder(),
            };
            clients.push(builder.label(label).build().await.unwrap());
        }
        Self {
            two: clients.pop().unwrap(),
            one: clients.pop().unwrap(),
            scene,
            _other: other,
        }
    }
}

fn in_background<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinSet<T> {
    let mut tasks = JoinSet::new();
    tasks.spawn(work);
    tasks
}

/// The tests that hold on the servers and over the service.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod on_servers {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(super::Two::new(false).await).await;
            })+
        }
        mod over_the_service {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(super::Two::new(true).await).await;
            })+
        }
    };
}
pub(crate) use on_both;

on_both![
    processes_exclude_each_other_and_tokens_rise,
    waiters_are_served_in_order_and_told_why_they_wait,
    a_wait_ends_with_its_reason,
    a_lock_is_renewed_beyond_its_lease,
    an_acquisition_that_is_dropped_leaves_nothing,
    a_dropped_guard_releases,
    a_lock_taken_by_force_is_lost,
    a_fixed_hold_ends,
    readers_share_and_a_writer_becomes_one,
    preferred_readers_go_before_a_writer_that_waits,
    permits_are_shared_by_processes,
    several_keys_are_held_together_or_not_at_all,
    candidates_lead_one_after_the_other,
    bad_input_is_refused,
];

async fn processes_exclude_each_other_and_tokens_rise(Two { one, two, .. }: Two) {
    let (state, mut tasks) = (
        Arc::new((AtomicU64::new(0), AtomicU64::new(0))),
        JoinSet::new(),
    );
    for client in [&one, &two] {
        for _ in 0..8 {
            let (lock, state) = (client.lock("key"), state.clone());
            tasks.spawn(async move {
                for _ in 0..6 {
                    let guard = lock.acquire().await.unwrap();
                    let (count, last) = &*state;
                    let (before, token) = (count.load(SeqCst), guard.token().get());
                    assert!(last.swap(token, SeqCst) < token);
                    sleep(Duration::from_millis(1)).await;
                    count.store(before + 1, SeqCst);
                    assert!(guard.is_held());
                    assert_eq!(guard.release().await, ReleaseAnswer::Held);
                }
            });
        }
    }
    timeout(DEADLINE, tasks.join_all()).await.unwrap();
    assert_eq!(state.0.load(SeqCst), 96);
    assert_eq!((one.close().await, two.close().await), (0, 0));
}

async fn waiters_are_served_in_order_and_told_why_they_wait(
    Two {
        one, two, scene, ..
    }: Two,
) {
    let held = one.lock("key").acquire().await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut order = JoinSet::new();
    for (at, client) in [&two, &one, &two].into_iter().enumerate() {
        let tell = told.clone();
        let lock = client.lock("key").on_wait(move |waiting| {
            if let Waiting::Held { holder, ahead, .. } = waiting {
                tell.lock().push((at, holder.to_string(), ahead));
            }
        });
        let waiting = order.spawn(async move {
            let token = lock.acquire().await.unwrap().token();
            (token, at)
        });
        let is_told = || async { told_of(&told, at).is_some() || waiting.is_finished() };
        eventually("it waits", is_told).await;
    }
    for at in 0..2 {
        let (holder, _) = told_of(&told, at).unwrap();
        assert_eq!(holder, "one");
    }
    assert_eq!(told_of(&told, 0).unwrap().1, Some(0));
    drop(held);
    let mut served = timeout(DEADLINE, order.join_all()).await.unwrap();
    served.sort_unstable();
    let order: Vec<_> = served.into_iter().map(|(_, at)| at).collect();
    // The first process has one request for both of its waiters.
    assert_eq!(order[0], 0);
    eventually("nothing is left", || scene.is_free("key")).await;
}

fn told_of(
    told: &Mutex<Vec<(usize, String, Option<u32>)>>,
    at: usize,
) -> Option<(String, Option<u32>)> {
    let told = told.lock();
    let mut told = told.iter().filter(|(its, ..)| *its == at);
    told.next()
        .map(|(_, holder, ahead)| (holder.clone(), *ahead))
}

async fn a_wait_ends_with_its_reason(
    Two {
        one, two, scene, ..
    }: Two,
) {
    let held = one.lock("key").acquire().await.unwrap();
    let tried = two.lock("key").try_acquire().await.unwrap_err();
    assert!(matches!(&tried, AcquireError::Held { holder, .. } if holder.as_str() == "one"));
    let waited = two.lock("key").wait(Duration::from_millis(200));
    let late = waited.acquire().await.unwrap_err();
    let AcquireError::TimedOut { because, .. } = late else {
        panic!("{late:?}");
    };
    assert!(matches!(*because, AcquireError::Held { holder, .. } if holder.as_str() == "one"));
    eventually("nobody waits", || async { scene.waiters("key").await == 0 }).await;
    drop(held);
    let next = timeout(DEADLINE, two.lock("key").acquire()).await.unwrap();
    drop(next.unwrap());
}

async fn a_lock_is_renewed_beyond_its_lease(Two { one, two, .. }: Two) {
    let long = one.lock("long").acquire().await.unwrap();
    let short = one.lock("short").lease(LEASE).acquire().await.unwrap();
    let end = short.deadline();
    eventually("renewed beyond its lease", async || {
        assert!(short.is_held());
        assert!(two.lock("short").try_acquire().await.is_err());
        short.deadline() > end + LEASE
    })
    .await;
    assert_eq!(long.release().await, ReleaseAnswer::Held);
    assert_eq!(short.release().await, ReleaseAnswer::Held);
}

async fn an_acquisition_that_is_dropped_leaves_nothing(
    Two {
        one, two, scene, ..
    }: Two,
) {
    let held = one.lock("key").acquire().await.unwrap();
    for _ in 0..5 {
        let lock = two.lock("key");
        assert!(
            timeout(Duration::from_millis(50), lock.acquire())
                .await
                .is_err()
        );
    }
    eventually("nobody waits", || async { scene.waiters("key").await == 0 }).await;
    drop(held);
    // Also at the moment of the grant.
    for wait in 0..20 {
        let lock = two.lock("other");
        let _ = timeout(Duration::from_micros(150 * wait), lock.acquire()).await;
    }
    for key in ["key", "other"] {
        eventually("it is free", || scene.is_free(key)).await;
    }
}

async fn a_dropped_guard_releases(
    Two {
        one, two, scene, ..
    }: Two,
) {
    drop(one.lock("key").acquire().await.unwrap());
    drop(
        timeout(DEADLINE, two.lock("key").acquire())
            .await
            .unwrap()
            .unwrap(),
    );
    assert_eq!(two.close().await, 0);
    eventually("it is free", || scene.is_free("key")).await;
}

async fn a_lock_taken_by_force_is_lost(Two { one, two, .. }: Two) {
    let guard = one.lock("key").lease(LEASE).acquire().await.unwrap();
    let taken = two.lock("key").force_release("test").await.unwrap();
    let [taken] = &taken[..] else {
        panic!("one has it: {taken:?}")
    };
    assert_eq!((taken.token, taken.label.as_str()), (guard.token(), "one"));
    timeout(DEADLINE, guard.lost()).await.unwrap();
    assert_eq!(guard.release().await, ReleaseAnswer::Lost);
    let next = two.lock("key").try_acquire().await.unwrap();
    assert!(next.token() > taken.token);
}

async fn a_fixed_hold_ends(Two { one, two, .. }: Two) {
    let lock = one.lock("key").lease(LEASE).hold_for(LEASE * 3 / 2);
    let (began, guard) = (Instant::now(), lock.acquire().await.unwrap());
    let next = in_background(async move { two.lock("key").acquire().await.unwrap() });
    timeout(DEADLINE, guard.lost()).await.unwrap();
    assert!(began.elapsed() > LEASE, "it was renewed");
    timeout(DEADLINE, next.join_all()).await.unwrap();
}

async fn readers_share_and_a_writer_becomes_one(Two { one, two, .. }: Two) {
    let (ours, theirs) = (one.rw_lock("key"), two.rw_lock("key"));
    let writer = ours.write().lease(LEASE).acquire().await.unwrap();
    assert!(theirs.read().try_acquire().await.is_err());
    assert!(writer.downgrade() && !writer.downgrade());
    let reader = timeout(DEADLINE, theirs.read().acquire())
        .await
        .unwrap()
        .unwrap();
    assert!(reader.token() > writer.token());
    let end = writer.deadline();
    eventually("renewed", async || writer.deadline() > end).await;
    assert!(writer.is_held() && reader.is_held());
    assert!(theirs.write().try_acquire().await.is_err());
    let seen = theirs.read().inspect().await.unwrap();
    assert_eq!(seen.others.len(), 1);
    assert_eq!(writer.release().await, ReleaseAnswer::Held);
    let last = reader.token();
    assert_eq!(reader.release().await, ReleaseAnswer::Held);
    let next = timeout(DEADLINE, theirs.write().acquire()).await.unwrap();
    assert!(next.unwrap().token() > last);
}

async fn preferred_readers_go_before_a_writer_that_waits(Two { one, two, .. }: Two) {
    let (ours, theirs) = (one.rw_lock("key"), two.rw_lock("key"));
    let first = ours.read().acquire().await.unwrap();
    let waits = theirs.write();
    let writer = in_background(async move { waits.acquire().await.unwrap() });
    eventually("no other reader goes before the writer", async || {
        ours.read().try_acquire().await.is_err() && theirs.read().try_acquire().await.is_err()
    })
    .await;
    for table in [ours, theirs] {
        let read = table.prefer(Preference::Readers).read();
        let reader = timeout(DEADLINE, read.acquire()).await.unwrap().unwrap();
        assert!(first.is_held());
        reader.release().await;
    }
    first.release().await;
    timeout(DEADLINE, writer.join_all()).await.unwrap();
}

async fn permits_are_shared_by_processes(Two { one, two, .. }: Two) {
    let permits = |client: &Client, count| client.semaphore("key", 3).permits(count);
    let held = permits(&one, 2).acquire().await.unwrap();
    let last = permits(&two, 1).acquire().await.unwrap();
    assert!(permits(&one, 1).try_acquire().await.is_err());
    let waits = permits(&two, 3);
    let waits = in_background(async move { waits.acquire().await.unwrap() });
    drop((held, last));
    timeout(DEADLINE, waits.join_all()).await.unwrap();
}

async fn several_keys_are_held_together_or_not_at_all(
    Two {
        one, two, scene, ..
    }: Two,
) {
    let both = one.multi_lock(["a", "b"]).acquire().await.unwrap();
    let tried = two.multi_lock(["b", "c"]).try_acquire().await.unwrap_err();
    assert!(
        matches!(tried, MultiLockError::NotAcquired { .. }),
        "{tried}"
    );
    eventually("c is free", || scene.is_free("c")).await;
    let waits = in_background(async move { two.multi_lock(["c", "b", "a"]).acquire().await });
    both.release().await;
    let all = timeout(DEADLINE, waits.join_all()).await.unwrap().remove(0);
    assert_eq!(all.unwrap().tokens().len(), 3);
    let readers = one.multi_lock(["d", "e"]).read().acquire().await.unwrap();
    let beside = one.rw_lock("e").read().try_acquire().await.unwrap();
    assert!(one.rw_lock("d").write().try_acquire().await.is_err());
    drop((readers, beside));
}

async fn candidates_lead_one_after_the_other(Two { one, two, .. }: Two) {
    let [ours, theirs] = [(&one, "ours"), (&two, "theirs")]
        .map(|(client, label)| client.election("scheduler").label(label));
    let first = ours.campaign().await.unwrap();
    assert!(theirs.try_campaign().await.is_err());
    let mut observer = theirs.observe();
    let leader = observer.changed().await.unwrap().expect("there is one");
    assert_eq!(leader.token, first.token());
    let stands = theirs.clone();
    let next = in_background(async move { stands.campaign().await.unwrap() });
    assert_eq!(first.resign().await, ReleaseAnswer::Held);
    let next = timeout(DEADLINE, next.join_all()).await.unwrap().remove(0);
    assert!(next.token() > leader.token);
    let seen = ours.leader().await.unwrap().expect("there is one");
    assert_eq!((seen.label.as_str(), seen.token), ("theirs", next.token()));
}

async fn bad_input_is_refused(Two { one, .. }: Two) {
    let refused = one.lock("").try_acquire().await.unwrap_err();
    assert!(matches!(refused, AcquireError::Name(_)), "{refused:?}");
    let long = one.lock("key").lease(Duration::from_secs(3600));
    let refused = long.try_acquire().await.unwrap_err();
    assert!(
        matches!(refused, AcquireError::LeaseTooLong { .. }),
        "{refused:?}"
    );
    let held = one.lock("key").acquire().await.unwrap();
    let other = one
        .semaphore("key", 3)
        .permit()
        .acquire()
        .await
        .unwrap_err();
    assert!(!other.is_retryable(), "{other:?}");
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_stops_hands_its_locks_to_the_next_one() {
    let mut scene = Scene::set_with(shared).await;
    let other = scene.another(shared).await;
    let urls = Coordinators::new([&scene.url, &other.url]);
    let client = Client::builder().coordinators(urls).build().await.unwrap();
    // The sessions of different leases begin at different coordinators.
    let (mut guards, mut waits) = (Vec::new(), JoinSet::new());
    let held = scene.other.lock("held").acquire().await.unwrap();
    for lease in [LEASE, 2 * LEASE] {
        let key = format!("{lease:?}");
        guards.push(client.lock(key).lease(lease).acquire().await.unwrap());
        let lock = client.lock("held").lease(lease);
        waits.spawn(async move { drop(lock.acquire().await.unwrap()) });
    }
    scene.stop();
    scene.ended().await;
    let ends: Vec<_> = guards.iter().map(Guard::deadline).collect();
    eventually("renewed beyond their leases", async || {
        assert!(guards.iter().all(Guard::is_held));
        let mut both = std::iter::zip(&guards, &ends);
        both.all(|(guard, end)| guard.deadline() > *end + LEASE)
    })
    .await;
    drop(held);
    timeout(DEADLINE, waits.join_all()).await.unwrap();
    for guard in guards {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    drop(other);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_takes_connections_and_gives_no_answers_is_left_for_the_next_one() {
    let scene = Scene::set_with(shared).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let urls = Coordinators::new([&silent, &scene.url]);
    let client = Client::builder().coordinators(urls).build().await.unwrap();
    let lock = client.lock("key").lease(LEASE);
    let guard = timeout(DEADLINE, lock.acquire()).await.unwrap().unwrap();
    // A caller that waits for less than a call may take. The wait is for its answer.
    let inspected = async || {
        timeout(Duration::from_millis(300), lock.inspect())
            .await
            .is_ok_and(|found| found.is_ok())
    };
    eventually("another coordinator answers", inspected).await;
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_kept_where_views_of_the_topology_are_shorter_than_its_lease() {
    const VIEW: Duration = Duration::from_secs(3);
    let found = |builder: Builder| builder.removal(Removal::Leased).view_lease(VIEW);
    let scene = Scene::founded(found, shared).await;
    let client = Client::builder().coordinators(&*scene.url);
    let client = client.build().await.unwrap();
    let lock = client.lock("key").lease(10 * VIEW);
    let guard = lock.acquire().await.unwrap();
    // Confirmed beyond the view that it was granted by.
    sleep(2 * VIEW).await;
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_coordinators_a_lock_is_in_danger_and_then_lost_at_its_deadline() {
    let mut scene = Scene::set_with(|config| {
        shared(config);
        config.grace = Duration::ZERO;
    })
    .await;
    let client = Client::builder()
        .coordinators(&*scene.url)
        .build()
        .await
        .unwrap();
    let guard = client.lock("key").lease(LEASE).acquire().await.unwrap();
    scene.stop();
    scene.ended().await;
    let danger = timeout(DEADLINE, guard.danger()).await.unwrap();
    assert_eq!(danger, Danger::RenewalFailed);
    timeout(DEADLINE, guard.lost()).await.unwrap();
    let next = timeout(DEADLINE, scene.other.lock("key").acquire())
        .await
        .unwrap();
    assert!(next.unwrap().token() > guard.token());
    let refused = client.lock("key").try_acquire().await.unwrap_err();
    assert!(refused.is_retryable(), "{refused:?}");
}

#[tokio::test]
async fn a_client_is_built_only_if_a_coordinator_takes_it() {
    let scene = Scene::set_with(|config| principal(config, "worker", Roles::all())).await;
    let gone = "http://127.0.0.1:1".to_owned();
    let build = async |coordinators: Coordinators| {
        let client = Client::builder().coordinators(coordinators);
        client.connect_within(DEADLINE).build().await.map(drop)
    };
    let urls = || Coordinators::new([&gone, &scene.url]);
    build(urls().token("worker")).await.unwrap();
    for refused in [urls(), urls().token("thief")] {
        let refused = build(refused).await.unwrap_err();
        assert!(!refused.is_retryable(), "{refused}");
    }
    let nobody = build(Coordinators::new(&gone)).await.unwrap_err();
    assert!(
        nobody.is_retryable() && nobody.to_string().contains(&gone),
        "{nobody}"
    );
    let malformed = build(Coordinators::new("redis://127.0.0.1"))
        .await
        .unwrap_err();
    assert!(
        !malformed.is_retryable() && malformed.to_string().contains("http"),
        "{malformed}"
    );
}

/// Tells the process that gets a signal where its coordinator is.
const COORDINATOR: &str = "RINGFENCE_TEST_COORDINATOR";

#[tokio::test]
#[ignore = "a process that the test below starts"]
async fn a_process_that_gets_a_signal() {
    let Ok(url) = env::var(COORDINATOR) else {
        return;
    };
    let client = Client::builder().coordinators(Coordinators::new(&url));
    let client = client.build().await.unwrap();
    let work = async {
        let _guard = client.lock("key").acquire().await.unwrap();
        raise(Signal::SIGTERM).unwrap();
        pending::<()>().await;
    };
    assert_eq!(client.until_signal(work).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_gets_a_signal_hands_its_lock_over() {
    let scene = Scene::set().await;
    let mut process = Command::new(env::current_exe().unwrap());
    process
        .args(["client::a_process_that_gets_a_signal", "--exact"])
        .args(["--ignored", "--nocapture"])
        .env(COORDINATOR, &scene.url);
    let output = process.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(scene.is_free("key").await);
}

/// Takes the lock `key` in a runtime of its own, which then ends, as at the end of `main`: with the guard, or with the task
/// that has it.
fn hold_until_the_runtime_ends(url: &str, key: &str, in_a_task: bool) {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::builder().coordinators(Coordinators::new(url));
        let client = client.build().await.unwrap();
        let guard = client.lock(key).try_acquire().await.unwrap();
        if in_a_task {
            let mut tasks = JoinSet::new();
            tasks.spawn(async move {
                pending::<()>().await;
                drop(guard);
            });
            tasks.detach_all();
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_ends_leaves_no_lock() {
    let scene = Scene::set().await;
    for in_a_task in [false, true] {
        let tries = Cell::new(0);
        // It waits for its last releases, but not for long.
        eventually("it is free at the end", async || {
            tries.set(tries.get() + 1);
            let (url, key) = (scene.url.clone(), format!("{in_a_task}/{}", tries.get()));
            let its = key.clone();
            let ends = move || hold_until_the_runtime_ends(&url, &its, in_a_task);
            spawn_blocking(ends).await.unwrap();
            scene.is_free(&key).await
        })
        .await;
    }
}
