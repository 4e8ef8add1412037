//! A holder in a process of its own that is stopped between reading and writing.

use std::{env, fs, io, process::Stdio, time::Duration};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence::{Client, ReleaseAnswer};
use ringfence_test_support::{Servers, eventually};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use super::{BALANCE, Resource, mariadb, postgresql, redis};

const KIND: &str = "RINGFENCE_HOLDER_KIND";
const ADDRESS: &str = "RINGFENCE_HOLDER_ADDRESS";
const SHARDS: &str = "RINGFENCE_HOLDER_SHARDS";

const KEY: &str = "account/42";
/// The next holder waits for its end.
const LEASE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(120);

/// What the holder that is stopped would take away, and what the next one does.
const TAKEN: [i64; 2] = [30, 50];

/// Not a test: the holder, which other tests start. The lock is renewed while it waits for its word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn process() {
    let Ok(kind) = env::var(KIND) else { return };
    match &*kind {
        redis::Account::KIND => hold::<redis::Account>().await,
        postgresql::Row::KIND => hold::<postgresql::Row>().await,
        postgresql::Stored::KIND => hold::<postgresql::Stored>().await,
        mariadb::Row::KIND => hold::<mariadb::Row>().await,
        mariadb::Stored::KIND => hold::<mariadb::Stored>().await,
        other => panic!("no resource is called {other}"),
    }
}

async fn hold<R: Resource>() {
    let shards = env::var(SHARDS).unwrap();
    let client = Client::builder()
        .redis(shards.split(','))
        .servers_are_new(true);
    let client = client.build().await.unwrap();
    let mut account = R::connect(&env::var(ADDRESS).unwrap()).await;
    let guard = client.lock(KEY).lease(LEASE).acquire().await.unwrap();
    let balance = account.read(guard.token()).await;
    println!("\nread {balance}");
    // As far as this process knows, nothing happens between this line and the next but one.
    io::stdin().read_line(&mut String::new()).unwrap();
    let written = account.write(guard.token(), balance - TAKEN[0]).await;
    println!("\nwritten {written}");
}

/// The process, as the test sees it; killed when dropped.
struct Holder {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    fn start(kind: &str, address: &str, shards: &[String]) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "fencing::holder::process",
                "--nocapture",
            ])
            .env(KIND, kind)
            .env(ADDRESS, address)
            .env(SHARDS, shards.join(","))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for a line that begins with `word`; the rest of it.
    async fn hear(&mut self, word: &str) -> String {
        let said = timeout(PATIENCE, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if let Some(rest) = line.strip_prefix(word) {
                    return rest.trim().to_owned();
                }
            }
            panic!("it ended before it said {word}");
        });
        said.await
            .unwrap_or_else(|_| panic!("it never said {word}"))
    }

    /// Stops it for real, and gives it the word that it then does not hear.
    async fn stop(&mut self) {
        self.signal(Signal::SIGSTOP);
        let stat = format!("/proc/{}/stat", self.child.id().unwrap());
        eventually("it has stopped", async || {
            fs::read_to_string(&stat).unwrap().contains(") T ")
        })
        .await;
        let word = self.child.stdin.as_mut().unwrap().write_all(b"go\n");
        word.await.unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().unwrap() as i32), signal).unwrap();
    }
}

/// When the holder that was stopped goes on.
#[derive(Clone, Copy, Debug)]
enum Woken {
    /// The next one has read, and not written.
    OnceRead,
    OnceWritten,
}

/// A holder reads and is stopped; its lease runs out; the next one reads and writes. The first goes
/// on meanwhile, or then, and is refused: what there is, is what the next one wrote.
pub(crate) async fn writes_too_late<R: Resource>(address: &str) {
    let shards = Servers::spawn(2).await;
    let client = shards.client().await;
    let mut account = R::connect(address).await;
    for woken in [Woken::OnceRead, Woken::OnceWritten] {
        let mut first = Holder::start(R::KIND, address, &shards.urls());
        assert_eq!(first.hear("read").await, BALANCE.to_string());
        first.stop().await;

        let guard = client.lock(KEY).acquire().await.unwrap();
        let token = guard.token();
        let balance = account.read(token).await;
        assert_eq!(balance, BALANCE);
        if matches!(woken, Woken::OnceWritten) {
            assert!(account.write(token, balance - TAKEN[1]).await);
        }
        first.signal(Signal::SIGCONT);
        assert_eq!(first.hear("written").await, "false", "{woken:?}");

        assert!(account.write(token, balance - TAKEN[1]).await, "{woken:?}");
        assert_eq!(account.balance().await, BALANCE - TAKEN[1], "{woken:?}");
        assert!(account.write(token, BALANCE).await, "for the next round");
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
}
