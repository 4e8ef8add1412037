//! Processes that start at the same moment agree on one topology, also when some are killed.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use ringfence_coordinator::topology::server::{Founding, Observer};

use super::servers::{Servers, founding, join, join_with, members, options};

/// The seeds, for a process that is to find its topology.
const SEEDS: &str = "RINGFENCE_TOPOLOGY_SEEDS";
/// Name of the [`Step`](ringfence_coordinator::topology::server::Step) after which the process stops,
/// and waits to be killed.
const STOP_AT: &str = "RINGFENCE_TOPOLOGY_STOP_AT";

const PROCESSES: usize = 8;

/// Not a test: one of the processes that the others start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn process() {
    let Ok(seeds) = std::env::var(SEEDS) else {
        return;
    };
    let seeds: Vec<_> = seeds.split(',').map(options).collect();
    let stop_at = std::env::var(STOP_AT).unwrap_or_default();
    let observer = Observer::new(move |step| {
        if !stop_at.is_empty() && format!("{step:?}").starts_with(&stop_at) {
            println!("\nstopped");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            unreachable!("it is killed first");
        }
    });
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let joined = join_with(
        seeds,
        Founding {
            observer,
            ..founding()
        },
    )
    .await
    .unwrap();
    let topology = &joined.topology;
    let members = members(topology).join(",");
    println!(
        "\njoined {} {} {members} {}",
        topology.id, topology.version, joined.founded_now
    );
}

/// A process of its own that finds its topology when it is told to.
struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(seeds: &[String], stop_at: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "topology::processes::process",
                "--nocapture",
            ])
            .env(SEEDS, seeds.join(","))
            .env(STOP_AT, stop_at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self {
            child,
            stdin,
            lines,
        };
        process.hear("ready");
        process
    }

    fn go(&mut self) {
        self.stdin.write_all(b"go\n").unwrap();
    }

    /// The rest of the next line that begins with `word`.
    fn hear(&mut self, word: &str) -> String {
        let lines = self.lines.by_ref().map_while(Result::ok);
        let said = lines
            .filter_map(|line| line.strip_prefix(word).map(str::to_owned))
            .next();
        said.unwrap_or_else(|| panic!("the process ended before it was {word}"))
    }

    /// Id, version and members; and whether this process founded it.
    fn joined(&mut self) -> (String, bool) {
        let said = self.hear("joined ");
        let (topology, founded) = said.rsplit_once(' ').unwrap();
        (topology.to_owned(), founded == "true")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lists of `servers`, each in another order.
fn lists(servers: &Servers) -> Vec<Vec<String>> {
    let urls: Vec<String> = servers.0.iter().map(|server| server.url()).collect();
    let turned = |turns: usize| {
        let mut list = urls.clone();
        list.rotate_left(turns % urls.len());
        if turns / urls.len() % 2 == 1 {
            list.reverse();
        }
        list
    };
    (0..PROCESSES).map(turned).collect()
}

/// Lets all go at once; answers the topology that they agree on, and how many founded it.
fn agreed(processes: &mut [Process]) -> (String, usize) {
    processes.iter_mut().for_each(Process::go);
    let joined: Vec<(String, bool)> = processes.iter_mut().map(Process::joined).collect();
    assert!(
        joined.iter().all(|(topology, _)| *topology == joined[0].0),
        "{joined:?}"
    );
    let founders = joined.iter().filter(|(_, founded)| *founded).count();
    (joined[0].0.clone(), founders)
}

/// That the servers have the topology that was agreed on, and no other.
async fn assert_only(servers: &Servers, agreed: &str) {
    let joined = join(servers.seeds()).await.unwrap();
    let (id, version) = (&joined.topology.id, joined.topology.version);
    assert_eq!(
        agreed,
        format!("{id} {version} {}", members(&joined.topology).join(","))
    );
    assert!(!joined.founded_now);
    assert_eq!(
        servers.pointers().await,
        vec![Some(id.clone()); servers.0.len()]
    );
}

#[tokio::test]
async fn processes_with_one_list_agree_on_one_topology() {
    let servers = Servers::spawn(3).await;
    let list = &lists(&servers)[0];
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| Process::start(list, "")).collect();
    let (topology, founders) = agreed(&mut processes);
    assert_eq!(founders, 1);
    assert_only(&servers, &topology).await;
}

#[tokio::test]
async fn processes_with_lists_in_different_orders_agree_on_one_topology() {
    let servers = Servers::spawn(3).await;
    let mut processes: Vec<_> = lists(&servers)
        .iter()
        .map(|list| Process::start(list, ""))
        .collect();
    let (topology, founders) = agreed(&mut processes);
    assert_eq!(founders, 1);
    assert_only(&servers, &topology).await;
}

/// One process is killed at `step`, while the others begin.
async fn one_is_killed_at(step: &str) {
    let servers = Servers::spawn(3).await;
    let mut lists = lists(&servers);
    let mut victim = Process::start(&lists.pop().unwrap(), step);
    let mut processes: Vec<_> = lists.iter().map(|list| Process::start(list, "")).collect();
    victim.go();
    victim.hear("stopped");

    victim.child.kill().unwrap();
    victim.child.wait().unwrap();
    let (topology, _) = agreed(&mut processes);
    assert_only(&servers, &topology).await;
}

#[tokio::test]
async fn the_others_agree_if_one_is_killed_before_its_claim() {
    one_is_killed_at("Claiming").await;
}

#[tokio::test]
async fn the_others_agree_if_one_is_killed_after_its_claim() {
    one_is_killed_at("Claimed").await;
}

#[tokio::test]
async fn the_others_agree_if_one_is_killed_while_it_joins_members() {
    one_is_killed_at("Joined").await;
}

#[tokio::test]
async fn the_others_agree_if_one_is_killed_before_it_made_a_copy() {
    one_is_killed_at("Activated").await;
}

#[tokio::test]
async fn the_others_agree_while_one_is_stopped_after_its_claim() {
    let servers = Servers::spawn(3).await;
    let mut lists = lists(&servers);
    let mut stopped = Process::start(&lists.pop().unwrap(), "Claimed");
    let mut processes: Vec<_> = lists.iter().map(|list| Process::start(list, "")).collect();
    stopped.go();
    stopped.hear("stopped");
    let (topology, _) = agreed(&mut processes);
    assert_only(&servers, &topology).await;
}
