//! The programs in examples, on real servers.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use mysql_async::prelude::Queryable as _;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence::counter::{Amount, Terms};
use ringfence_test_support::{
    Servers,
    database::{mariadb::MariaDb, postgresql::PostgreSql},
    eventually,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    task::JoinSet,
    time::{Duration, timeout},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running example; killed when dropped.
struct Example {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn start(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let tests = env::current_exe().unwrap();
        let mut path = PathBuf::from(tests.parent().unwrap().parent().unwrap());
        path.extend(["examples", name]);
        let child = Command::new(&path)
            .args(arguments)
            .env_remove("RINGFENCE_REDIS")
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.unwrap_or_else(|error| {
            panic!("{error}: {path:?}: cargo build --examples --all-features makes it")
        });
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for a line with `part`; the rest of it.
    async fn says(&mut self, part: &str) -> String {
        let said = timeout(PATIENCE, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if let Some((_, rest)) = line.split_once(part) {
                    return rest.to_owned();
                }
            }
            panic!("it ended before it said {part:?}");
        });
        said.await.unwrap_or_else(|_| panic!("no {part:?}"))
    }
}

impl Example {
    /// All its lines, until it ends.
    async fn rest(&mut self) -> Vec<String> {
        let read = timeout(PATIENCE, async {
            let mut lines = Vec::new();
            while let Some(line) = self.lines.next_line().await.unwrap() {
                lines.push(line);
            }
            lines
        });
        read.await.expect("it ends")
    }
}

/// Servers with a topology.
async fn founded() -> Servers {
    let servers = Servers::spawn(2).await;
    servers.client().await.close().await;
    servers
}

async fn post(address: String, path: &'static str) -> u16 {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let request = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap();
    status.parse().unwrap()
}

/// The number of requests that succeed, of 40 at a time.
async fn succeed(address: &str, path: &'static str) -> i64 {
    let requests: JoinSet<_> = (0..40).map(|_| post(address.to_owned(), path)).collect();
    let answers = requests.join_all().await;
    answers.iter().filter(|status| **status == 200).count() as i64
}

/// The table of the examples that deduct coins.
const ACCOUNTS: &str = "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0);
     INSERT INTO account (id, balance) VALUES (1, 1000), (2, 1000)";
const BALANCE_1: &str = "SELECT balance FROM account WHERE id = 1";
const BALANCE_2: &str = "SELECT balance FROM account WHERE id = 2";
/// As a later holder's token.
const TAKE_OVER: &str = "UPDATE account SET fence = fence + 1000000 WHERE id = 1";

/// Every file below `folder`.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// Those in Python and Go have their tests there.
#[test]
fn examples_are_short_and_the_readme_leads_to_each() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let mut examples = Vec::new();
    for folder in ["examples", "clients/python/examples", "clients/go/examples"] {
        files(&root.join(folder), &mut examples);
    }
    for path in &examples {
        let lines = fs::read_to_string(path).unwrap().lines().count();
        let path = path.strip_prefix(root).unwrap().display();
        assert!(lines <= 80, "{path}: {lines} lines");
        assert!(readme.contains(&format!("]({path})")), "{path}");
    }
    assert!(examples.len() >= 10, "{examples:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coins_of_postgresql_are_deducted_once_under_the_lock_and_lost_without_it() {
    let database = PostgreSql::spawn().await;
    let sql = database.connect().await;
    sql.batch_execute(ACCOUNTS).await.unwrap();
    let read = async |select| sql.query_one(select, &[]).await.unwrap().get(0);
    let run = async |statement| _ = sql.execute(statement, &[]).await.unwrap();
    deducts("coins", &database.address(), read, run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coins_of_mariadb_are_deducted_once_under_the_lock_and_lost_without_it() {
    let database = MariaDb::spawn().await;
    database.run(ACCOUNTS).await;
    let read = async |select| {
        let mut sql = database.connect().await;
        sql.query_first(select).await.unwrap().expect("a row")
    };
    let run = async |statement| database.run(statement).await;
    deducts("coins_mariadb", &database.address(), read, run).await;
}

async fn deducts(
    example: &str,
    database: &str,
    read: impl AsyncFn(&'static str) -> i64,
    run: impl AsyncFn(&'static str),
) {
    let servers = founded().await;
    let seeds = servers.urls().join(",");
    let environment = [
        ("RINGFENCE_REDIS", &*seeds),
        ("DATABASE", database),
        ("LISTEN", "127.0.0.1:0"),
    ];
    let mut service = Example::start(example, &[], &environment);
    let address = service.says("serves on ").await;

    assert_eq!(succeed(&address, "/accounts/1/deduct/20").await, 40);
    assert_eq!(read(BALANCE_1).await, 200);
    let raced = succeed(&address, "/accounts/2/race/20").await;
    assert!(
        read(BALANCE_2).await > 1000 - 20 * raced,
        "no coin was spent twice"
    );
    run(TAKE_OVER).await;
    assert_eq!(post(address, "/accounts/1/deduct/20").await, 503);
    assert_eq!(read(BALANCE_1).await, 200);
}

const ORDERS: &str =
    "CREATE TABLE orders (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, buyer TEXT NOT NULL,
        amount BIGINT NOT NULL, state TEXT NOT NULL DEFAULT 'new');
    CREATE TABLE outbox (of BIGINT PRIMARY KEY REFERENCES orders, made_ms BIGINT NOT NULL)";
/// As the example places one.
const MANY_ORDERS: &str = "WITH placed AS (INSERT INTO orders (buyer, amount)
        SELECT 'buyer/' || n % 5, 1 + n % 40 FROM generate_series(1, 150) n RETURNING id)
    INSERT INTO outbox (of, made_ms) SELECT id, $1 FROM placed";
/// An order that was paid is changed, and one that was refused counts as paid.
const PLANT: &str = "UPDATE orders SET amount = amount + 1 WHERE id = (SELECT min(id) FROM orders WHERE state = 'paid');
    UPDATE orders SET state = 'paid' WHERE id = (SELECT min(id) FROM orders WHERE state = 'refused')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_paid_once_by_workers_that_are_killed_and_a_planted_difference_is_found() {
    let (database, servers) = (PostgreSql::spawn().await, founded().await);
    let sql = database.connect().await;
    sql.batch_execute(ORDERS).await.unwrap();
    let client = servers.client().await;
    let counters = client.counters();
    let amount = |units: i64| Amount::new(units).unwrap();
    let shop = counters
        .create("shop", Terms::in_memory(), 2)
        .await
        .unwrap();
    for buyer in 0..5 {
        let name = format!("buyer/{buyer}");
        let account = counters.create(&name, Terms::in_memory(), 1);
        let salary = counters.new_request();
        account
            .await
            .unwrap()
            .deposit(&salary, amount(500))
            .await
            .unwrap();
    }
    let (seeds, address) = (servers.urls().join(","), database.address());
    let environment = [("RINGFENCE_REDIS", &*seeds), ("DATABASE", &*address)];
    let mut placed = Example::start("payments", &["buyer/1", "30"], &environment);
    placed.says("placed 1").await;
    let made_ms = i64::try_from(counters.new_request().time_ms()).unwrap();
    sql.execute(MANY_ORDERS, &[&made_ms]).await.unwrap();

    // Two at a time; one of them is killed at any point of its work.
    let open = async || {
        let row = sql.query_one("SELECT count(*) FROM outbox", &[]).await;
        row.unwrap().get::<_, i64>(0)
    };
    for payments in [1, 4, 2, 7, 1, 3] {
        let [mut killed, mut other] =
            [(); 2].map(|()| Example::start("payments", &[], &environment));
        for _ in 0..payments {
            let next = timeout(PATIENCE, killed.lines.next_line()).await;
            next.unwrap().unwrap().expect("there is more to pay");
        }
        killed.child.kill().await.unwrap();
        other.child.kill().await.unwrap();
    }
    assert!(open().await > 0, "the rest is for a worker that lives");
    Example::start("payments", &[], &environment).rest().await;
    assert_eq!(open().await, 0);
    let states = sql.query_one(
        "SELECT sum(amount) FILTER (WHERE state = 'paid')::BIGINT, count(*) FILTER (WHERE state = 'refused') FROM orders",
        &[],
    );
    let (paid, refused): (i64, i64) = states.await.map(|row| (row.get(0), row.get(1))).unwrap();
    assert!(refused > 0, "some buyers have too little");
    assert_eq!(
        shop.exact_balance().await.unwrap().available,
        i128::from(paid)
    );

    let differences = async || {
        let lines = Example::start("reconcile", &[], &environment).rest().await;
        lines.len() - 1
    };
    assert_eq!(differences().await, 0);
    sql.batch_execute(PLANT).await.unwrap();
    shop.deposit(&counters.new_request(), amount(7))
        .await
        .unwrap();
    assert_eq!(differences().await, 3);
    client.close().await;
}

#[tokio::test]
async fn a_sale_sells_each_piece_once() {
    let mut sale = Example::start("seckill", &[], &[]);
    assert_eq!(sale.says("sold ").await, "100 of 100, left 0");
}

#[tokio::test]
async fn a_standby_leads_when_the_leader_is_killed_and_when_it_gets_a_signal() {
    let servers = founded().await;
    let seeds = servers.urls().join(",");
    let start = |name| Example::start("leader", &[name], &[("RINGFENCE_REDIS", &seeds)]);
    let mut first = start("node-1");
    let token: u64 = first.says("leads with token ").await.parse().unwrap();
    let mut second = start("node-2");
    second.says("is a candidate").await;
    first.says("round 2").await;
    first.child.kill().await.unwrap();
    let next: u64 = second.says("leads with token ").await.parse().unwrap();
    assert!(next > token);
    let mut third = start("node-3");
    third.says("is a candidate").await;
    let id = second.child.id().unwrap();
    kill(Pid::from_raw(id.cast_signed()), Signal::SIGTERM).unwrap();
    let last: u64 = third.says("leads with token ").await.parse().unwrap();
    assert!(last > next);
    assert!(second.child.wait().await.unwrap().success());
}

#[tokio::test]
async fn workers_of_two_hosts_do_each_job_once_and_three_at_a_time() {
    let servers = founded().await;
    let seeds = servers.urls().join(",");
    // On a slow machine, one may be at an end before the third begins.
    let three_at_a_time = async || most_workers_at_a_time(&seeds).await == 3;
    eventually("three work at a time", three_at_a_time).await;
}

/// Has workers of two hosts do some jobs. Returns how many worked at a time: at most three.
async fn most_workers_at_a_time(seeds: &str) -> i32 {
    const JOBS: usize = 24;
    let folder = tempfile::tempdir().unwrap();
    for job in 0..JOBS {
        fs::write(folder.path().join(job.to_string()), "").unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let start = |host| Example::start("workers", &[host, path], &[("RINGFENCE_REDIS", seeds)]);
    let (mut one, mut two) = (start("host-1"), start("host-2"));
    let (first, second) = tokio::join!(one.rest(), two.rest());
    let mut events = BTreeSet::new();
    for line in first.iter().chain(&second) {
        if let [at, _, what, job] = line.split(' ').collect::<Vec<_>>()[..]
            && ["begins", "ends"].contains(&what)
        {
            // Ends come first of what is at the same time.
            events.insert((at.parse::<u64>().unwrap(), what == "begins", job));
        }
    }
    assert_eq!(events.len(), 2 * JOBS, "{events:?}");
    let (mut at_work, mut most) = (0, 0);
    for (_, begins, _) in events {
        at_work += if begins { 1 } else { -1 };
        most = most.max(at_work);
    }
    assert!(
        most <= 3 && at_work == 0,
        "{most} at a time, {at_work} at the end"
    );
    assert!(fs::read_dir(path).unwrap().next().is_none(), "all are done");
    most
}
