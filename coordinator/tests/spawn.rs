//! A spawned server lives as long as it is wanted, and no longer.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use ringfence_coordinator::spawn::{RedisServer, SpawnError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// Set for the process that is to be killed.
const VICTIM: &str = "RINGFENCE_SPAWN_VICTIM";
const SOON: Duration = Duration::from_secs(120);

/// Sends `line` and answers the first line that comes back.
async fn ask(port: u16, line: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    let mut answer = vec![0; 512];
    let length = stream.read(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

/// Whether a process of this id runs: a zombie does not.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z')
}

async fn ends_soon(pid: u32) -> bool {
    let deadline = Instant::now() + SOON;
    while runs(pid) && Instant::now() < deadline {
        sleep(Duration::from_millis(10)).await;
    }
    !runs(pid)
}

#[tokio::test]
async fn a_server_answers_once_it_is_spawned_and_is_gone_once_dropped() {
    let server = RedisServer::spawn().await.unwrap();
    let (port, pid) = (server.port(), server.pid().unwrap());
    assert_eq!(server.url(), format!("redis://127.0.0.1:{port}"));
    assert_eq!(ask(port, "PING").await.unwrap(), "+PONG");
    drop(server);
    assert!(
        !std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "killed, not reaped"
    );
    ask(port, "PING").await.unwrap_err();
}

#[tokio::test]
async fn a_restarted_server_has_the_same_port_and_what_it_saved() {
    let builder = RedisServer::builder().set("appendonly", "yes");
    let mut server = builder.set("appendfsync", "no").spawn().await.unwrap();
    let (port, pid) = (server.port(), server.pid());
    assert_eq!(ask(port, "INCRBY x 41").await.unwrap(), ":41");
    server.kill();
    assert_eq!(server.pid(), None);
    ask(port, "PING").await.unwrap_err();

    server.restart().await.unwrap();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(ask(port, "INCR x").await.unwrap(), ":42");
}

#[tokio::test]
async fn a_stopped_server_answers_when_it_goes_on() {
    let server = RedisServer::spawn().await.unwrap();
    server.stop();
    let asked = ask(server.port(), "PING");
    tokio::pin!(asked);
    timeout(Duration::from_millis(100), &mut asked)
        .await
        .expect_err("it is stopped");
    server.cont();
    assert_eq!(asked.await.unwrap(), "+PONG");
}

#[tokio::test]
async fn a_server_with_a_login_is_ready_too() {
    let server = RedisServer::builder()
        .password("s3cret")
        .spawn()
        .await
        .unwrap();
    assert_eq!(
        server.url(),
        format!("redis://:s3cret@127.0.0.1:{}", server.port())
    );
    assert!(
        ask(server.port(), "PING")
            .await
            .unwrap()
            .starts_with("-NOAUTH")
    );

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users.acl");
    std::fs::write(
        &file,
        "user default off\nuser ringfence on >s3cret ~* &* +@all\n",
    )
    .unwrap();
    let builder = RedisServer::builder().login("ringfence", "s3cret");
    let server = builder
        .set("aclfile", file.display())
        .spawn()
        .await
        .unwrap();
    assert_eq!(
        server.url(),
        format!("redis://ringfence:s3cret@127.0.0.1:{}", server.port())
    );
}

#[tokio::test]
async fn a_setting_that_redis_refuses_is_an_error_that_says_so() {
    let refused = RedisServer::builder()
        .set("appendonly", "perhaps")
        .spawn()
        .await;
    assert!(
        matches!(refused, Err(SpawnError::Ended { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_cancelled_spawn_leaves_no_server() {
    let title = format!("cancelled-{}", std::process::id());
    let builder = || RedisServer::builder().set("proc-title-template", &title);
    let kept = builder().spawn().await.unwrap();
    assert_eq!(called(&title), [kept.pid().unwrap()]);
    drop(kept);

    for wait_ms in [0, 1, 2, 5, 10] {
        drop(timeout(Duration::from_millis(wait_ms), builder().spawn()).await);
    }
    let deadline = Instant::now() + SOON;
    while !called(&title).is_empty() {
        assert!(Instant::now() < deadline, "{:?}", called(&title));
        sleep(Duration::from_millis(10)).await;
    }
}

/// Processes with `title` in their command lines.
fn called(title: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_called = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(title)
    };
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.filter(is_called).collect()
}

/// Not a test: what `a_server_dies_with_the_process_that_spawned_it` kills.
#[tokio::test]
#[ignore = "started, and killed, by another test"]
async fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    // Spawned from a thread that ends at once: that alone must not kill it.
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let spawn = move || runtime().block_on(RedisServer::spawn());
    let server = std::thread::spawn(spawn).join().unwrap().unwrap();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(ask(server.port(), "PING").await.unwrap(), "+PONG");
    println!("\nserver {} {}", server.pid().unwrap(), server.port());
    // Killed long before; or not at all, if the other test failed.
    sleep(3 * SOON).await;
}

#[tokio::test]
async fn a_server_dies_with_the_process_that_spawned_it() {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "spawn::victim", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let said = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("server "));
    let said = said.expect("the victim has a server");
    let mut numbers = said
        .split(' ')
        .skip(1)
        .map(|number| number.parse::<u32>().unwrap());
    let (pid, port) = (numbers.next().unwrap(), numbers.next().unwrap() as u16);
    assert!(runs(pid), "it outlives the thread it was spawned from");

    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(ends_soon(pid).await, "server {pid} outlives its process");
    ask(port, "PING").await.unwrap_err();
}
