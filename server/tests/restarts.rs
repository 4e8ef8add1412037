//! Coordinators that are restarted one after the other, under load, behind one name.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use ringfence_client::{AcquireError, Client, Coordinators, ReleaseAnswer};
use ringfence_test_support::eventually;
use tokio::task::JoinSet;

use super::{client::shared, scene::Scene};

/// One name has both.
const HOSTS: [[u8; 4]; 2] = [[127, 0, 0, 1], [127, 0, 0, 2]];
const ROUNDS: usize = 10;
const LEASE: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn ten_rolling_restarts_behind_one_name_fail_no_call_and_lose_no_lock() {
    let scene = Scene::set().await;
    let free = TcpListener::bind((std::net::Ipv4Addr::from(HOSTS[0]), 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let addresses = HOSTS.map(|host| SocketAddr::from((host, port)));
    let start = async |listen| {
        let settings = |config: &mut ringfence_server::Config| {
            shared(config);
            (config.listen, config.grace) = (listen, Duration::from_secs(3600));
        };
        scene.another(settings).await
    };
    let mut coordinators = [start(addresses[0]).await, start(addresses[1]).await];
    let name = format!("coordinators.example:{port}");
    let name = Coordinators::new(&*name).resolver(move |_, _| Ok(addresses.to_vec()));
    let client = Client::builder().coordinators(name).build().await.unwrap();

    let mut held = Vec::new();
    for number in 0..5 {
        let lock = client.lock(format!("held {number}")).lease(LEASE);
        held.push(lock.acquire().await.unwrap());
    }
    let acquired: Arc<[AtomicU64; 3]> = Arc::default();
    let mut workers: JoinSet<AcquireError> = JoinSet::new();
    for worker in 0..acquired.len() {
        let (client, acquired) = (client.clone(), acquired.clone());
        workers.spawn(async move {
            loop {
                let lock = client.lock(format!("key {worker}")).lease(LEASE);
                match lock.wait(Duration::from_secs(10)).acquire().await {
                    Ok(guard) => drop(guard.release().await),
                    Err(error) => return error,
                }
                acquired[worker].fetch_add(1, SeqCst);
            }
        });
    }
    for round in 0..ROUNDS {
        let at = round % HOSTS.len();
        let own = Coordinators::new(&coordinators[at].url);
        let own = Client::builder().coordinators(own).build().await.unwrap();
        // It does not end before this lock is released.
        let last = own.lock(format!("own {round}")).acquire().await.unwrap();
        coordinators[at].stop();
        eventually("it stops", async || {
            own.lock("none").try_acquire().await.is_err()
        })
        .await;
        let counts = || acquired.each_ref().map(|count| count.load(SeqCst));
        let before = counts();
        eventually("all workers go on", async || {
            let now = counts();
            before.iter().zip(now).all(|(before, now)| *before < now)
        })
        .await;
        if let Some(failed) = workers.try_join_next() {
            panic!("round {round}: {}", failed.unwrap());
        }
        assert_eq!(last.release().await, ReleaseAnswer::Held);
        coordinators[at].ended().await;
        coordinators[at] = start(addresses[at]).await;
    }
    for guard in held {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
}
