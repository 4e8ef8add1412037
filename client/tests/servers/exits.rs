//! Processes that end without `close`: what they held is free at once, not after its lease.

use std::{
    env,
    error::Error,
    future::pending,
    io, panic,
    pin::pin,
    process,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ringfence_client::{Client, ReleaseAnswer};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Flow, Secured, Servers, Whose, ask, eventually};
use tokio::{process::Command, runtime::Builder, sync::Barrier, time::timeout};
use tracing_subscriber::filter::LevelFilter;

use super::{DEADLINE, SECOND, scene::Proxied};

/// Tells the process that ends how it is to end, and where its servers are.
const WAY: &str = "RINGFENCE_TEST_EXIT";
const SERVERS: &str = "RINGFENCE_TEST_SERVERS";

/// How many runs there are of each way; 25 if not said.
const RUNS: &str = "RINGFENCE_TEST_EXITS";

/// How many locks a process has when it ends, on all of its servers.
const LOCKS: usize = 4;

/// In the log of a process that gave up.
const GAVE_UP: &str = "last releases take longer";

/// It ends long after what is waited for.
const LEASE: Duration = DEADLINE.saturating_mul(10);

/// Where a client is kept that outlives its runtime.
static KEPT: OnceLock<Client> = OnceLock::new();

/// The process. Its `main` is [`main_of`]; the harness does nothing behind that.
#[test]
#[ignore = "a process that the tests below start"]
fn a_process_that_ends_without_close() {
    let (Ok(way), Ok(servers)) = (env::var(WAY), env::var(SERVERS)) else {
        return;
    };
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(io::stderr)
        .init();
    let ended = panic::catch_unwind(|| main_of(&way, &servers));
    process::exit(match ended {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => 101,
    })
}

/// As `#[tokio::main]` has it.
fn main_of(way: &str, servers: &str) -> Result<(), Box<dyn Error>> {
    let mut runtime = match way {
        "returns, of one thread" => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(async {
        let builder = Client::builder().redis(servers.split(' '));
        let client = builder.existing_topology(true).build().await?;
        let mut held = Vec::new();
        for index in 0..LOCKS {
            held.push(client.lock(format!("key/{index}")).try_acquire().await?);
        }
        match way {
            "fails" => Err("it fails")?,
            "panics" => panic!("it panics"),
            "keeps the client" => KEPT.set(client).map_err(|_| "kept before")?,
            "leaves tasks" => {
                let all_run = Arc::new(Barrier::new(LOCKS + 1));
                for guard in held.drain(..) {
                    let all_run = all_run.clone();
                    #[expect(clippy::disallowed_methods, reason = "it ends with the process")]
                    tokio::spawn(async move {
                        all_run.wait().await;
                        pending::<()>().await;
                        drop(guard);
                    });
                }
                all_run.wait().await;
            }
            _ => {}
        }
        Ok(())
    })
}

/// Runs the process at `servers`, which are reached by `urls`: once it has ended, nothing is left. It is run again if it
/// says that it gave up, because it waits for its last releases, but not for long.
async fn ends(way: &str, code: i32, urls: &str, servers: &[RedisServer]) {
    let runs = async {
        while run(way, code, urls).await.contains(GAVE_UP) {
            for server in servers {
                for record in records(server).await {
                    let _: u64 = ask(server, &["DEL", &record]).await;
                }
            }
        }
    };
    assert!(
        timeout(DEADLINE, runs).await.is_ok(),
        "{way}: it always gives up"
    );
    for server in servers {
        let left = records(server).await;
        assert!(left.is_empty(), "{way}: {left:?}");
    }
}

/// Runs the process. Returns its log.
async fn run(way: &str, code: i32, urls: &str) -> String {
    let mut process = Command::new(env::current_exe().unwrap());
    process
        .args([
            "servers::exits::a_process_that_ends_without_close",
            "--exact",
        ])
        .args(["--ignored", "--nocapture"])
        .envs([(WAY, way), (SERVERS, urls)]);
    let output = process.output().await.unwrap();
    assert_eq!(output.status.code(), Some(code), "{way}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The records of locks.
async fn records(server: &RedisServer) -> Vec<String> {
    ask(server, &["KEYS", "ringfence:{*"]).await
}

/// Again and again.
async fn end(way: &str, code: i32) {
    let servers = Servers::spawn(2).await;
    let founder = servers.builder().max_lease(LEASE);
    founder.build().await.unwrap().close().await;
    let urls = servers.urls().join(" ");
    let runs = env::var(RUNS).map_or(10, |runs| runs.parse().unwrap());
    for _ in 0..runs {
        ends(way, code, &urls, &servers.servers).await;
    }
}

#[tokio::test]
async fn a_process_that_returns_from_main_leaves_no_lock() {
    end("returns", 0).await;
    end("returns, of one thread", 0).await;
}

#[tokio::test]
async fn a_process_that_fails_leaves_no_lock() {
    end("fails", 1).await;
}

#[tokio::test]
async fn a_process_that_panics_leaves_no_lock() {
    end("panics", 101).await;
}

#[tokio::test]
async fn a_process_whose_client_outlives_the_runtime_leaves_no_lock() {
    end("keeps the client", 0).await;
}

#[tokio::test]
async fn a_process_whose_tasks_hold_locks_when_the_runtime_ends_leaves_none() {
    end("leaves tasks", 0).await;
}

#[tokio::test]
async fn a_process_gives_back_at_its_end_over_tls_with_the_rights_that_the_readme_lists() {
    let secured = Secured::default();
    let (server, port) = secured.spawn(RedisServer::builder()).await;
    let (urls, servers) = (secured.url(port, true), [server]);
    let founder = Client::builder().redis([urls.clone()]);
    let founder = founder
        .servers_are_new(true)
        .max_lease(LEASE)
        .build()
        .await
        .unwrap();
    founder.close().await;
    ends("returns", 0, &urls, &servers).await;
}

/// It is waited for no longer than it takes to send what there is, and not for a server that does not answer.
#[tokio::test]
async fn a_drop_waits_for_no_silent_server() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let guard = client.lock("key").try_acquire().await.unwrap();
    servers.servers[0].stop();
    let began = tokio::time::Instant::now();
    drop((guard, client));
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    servers.servers[0].cont();
}

/// The thread ends the connections that the process had, before it releases: a request on one of them that is late would
/// put back a lock that has no holder.
#[tokio::test]
async fn an_acquisition_that_arrives_after_the_last_release_leaves_no_lock() {
    let scene = Proxied::new(30 * SECOND).await;
    let Proxied {
        servers,
        proxy,
        client,
    } = scene;
    let guard = client.lock("key").try_acquire().await.unwrap();
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    let work = Whose::lane("work");
    let before = proxy.counts(&work);
    proxy.requests(&work, Flow::Delay(2 * SECOND..3 * SECOND));
    {
        let lock = client.lock("key");
        let mut acquiring = pin!(lock.try_acquire());
        tokio::select! {
            biased;
            early = &mut acquiring => panic!("not delayed: {early:?}"),
            () = eventually("on its way", async || {
                proxy.counts(&work).requests_read > before.requests_read
            }) => {}
        }
    }
    // A request keeps the delay that it was read with; the thread's connection has none.
    proxy.heal();
    drop(client);
    eventually("arrived", async || {
        let counts = proxy.counts(&work);
        counts.requests == counts.requests_read
    })
    .await;
    assert_eq!(records(&servers.servers[0]).await, [""; 0]);
}
