//! What there is to run.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    mem,
    time::Duration,
};

use crate::{
    binaries::{Binary, Built},
    check::Check,
    libtest::Selection,
};

/// The limit of a test.
const TEST_LIMIT: Duration = Duration::from_secs(180);
/// The limit of a long test.
const LONG_TEST_LIMIT: Duration = Duration::from_secs(30 * 60);
const MINUTE: Duration = Duration::from_secs(60);

/// More of what tests that draw at random do.
const MORE: [(&str, &str); 4] = [
    ("PROPTEST_CASES", "5000"),
    ("RINGFENCE_TEST_OPERATIONS", "200000"),
    ("RINGFENCE_TEST_EXITS", "200"),
    ("RINGFENCE_TEST_SETS_SECONDS", "60"),
];
/// The tests that read these.
const AT_RANDOM: [(&str, &[&str]); 4] = [
    ("ringfence-segment-lock-tests main", &[]),
    ("ringfence-ring-tests main", &[]),
    (
        "ringfence-coordinator-tests main",
        &["differential::", "simulated::", "queue::"],
    ),
    (
        "ringfence-client main",
        &["servers::exits::", "servers::multi::"],
    ),
];
/// The tests that concern servers of Redis.
const OF_REDIS: [&str; 6] = [
    "conformance::redis",
    "differential::",
    "driver::",
    "topology::",
    "tls::",
    "servers::",
];

/// Something that runs beside others.
#[derive(Debug)]
pub(crate) enum Job {
    Check(Check),
    Tests(Tests),
}

/// Tests of one binary.
#[derive(Debug)]
pub(crate) struct Tests {
    /// Of the step.
    pub(crate) name: String,
    pub(crate) binary: Binary,
    pub(crate) selection: Selection,
    pub(crate) settings: Vec<(&'static str, String)>,
    pub(crate) limit: Duration,
}

/// A job of the long part, and how long it takes, about.
#[derive(Debug)]
pub(crate) struct Long {
    pub(crate) job: Job,
    pub(crate) takes: Duration,
}

/// Checks that come before the tests are built, one after the other.
pub(crate) fn first_checks() -> Vec<Check> {
    vec![
        Check::new("what tests need", "scripts/install"),
        Check::new("format", "cargo fmt --all --check"),
        Check::new("rules for tests", "scripts/test-rules"),
    ]
}

/// Checks that run beside the tests, one after the other.
pub(crate) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "lints",
            "cargo clippy --workspace --all-targets --all-features -- -D warnings",
        ),
        Check::new("docs", "cargo doc --workspace --no-deps --all-features")
            .with("RUSTDOCFLAGS", "-D warnings"),
        Check::new("alerts", "scripts/checks/alerts"),
        Check::new("protos", "scripts/checks/protos"),
        Check::new("generated code of Go", "scripts/checks/go-generated"),
    ]
}

/// The check of the Helm chart. Its tool takes minutes to build, so that a quick run takes one that is there.
pub(crate) fn chart(is_quick: bool) -> Check {
    let line = match is_quick {
        true => "scripts/checks/chart",
        false => "scripts/checks/chart --build",
    };
    Check::new("Helm chart", line)
}

/// The check of the crates that others wrote. Its tool takes minutes to install.
pub(crate) fn dependencies() -> Check {
    Check::new("dependencies", "scripts/checks/dependencies")
}

/// The tests, the longest first, so that none runs alone at the end.
pub(crate) fn tests(built: &Built) -> Vec<Job> {
    let quick = Selection::default();
    let binaries = built.binaries.iter().map(|binary| {
        Job::Tests(Tests {
            name: binary.name.clone(),
            binary: binary.clone(),
            selection: quick.clone(),
            settings: Vec::new(),
            limit: TEST_LIMIT,
        })
    });
    let clients = [
        Check::new("Python client", "scripts/checks/python"),
        Check::new("Go client", "scripts/checks/go"),
    ];
    let clients = clients.map(|check| Job::Check(with_programs(check, built)));
    let (first, rest): (Vec<_>, Vec<_>) =
        binaries.partition(|job| matches!(job, Job::Tests(tests) if tests.binary.is_long()));
    first.into_iter().chain(clients).chain(rest).collect()
}

/// Runs of chaos. They come after the tests: each must make enough happen in its time.
pub(crate) fn chaos(built: &Built, seed: u64) -> Vec<Job> {
    let chaos = [
        (
            "shards on databases too",
            format!("run --mixed --seed {seed} --for 20s"),
        ),
        ("a fresh seed", format!("run --seed {seed} --for 20s")),
        (
            "the service",
            format!("run --service --seed {seed} --for 20s"),
        ),
        // One kind of loss each time; all of them in the long part.
        match seed % 3 {
            0 => ("counters", format!("counters --seed {seed} --calls 10000")),
            1 => (
                "counters on disks",
                format!("counters --failovers false --seed {seed} --calls 10000"),
            ),
            _ => (
                "counters whose shards lose everything",
                format!("counters --losses --seed {seed} --calls 20000"),
            ),
        },
    ];
    let run = |(name, arguments): (_, String)| chaos_run(built, name, &arguments, 5 * MINUTE);
    chaos.map(run).map(Job::Check).into()
}

/// Checks that need the programs.
pub(crate) fn checks_of_programs(built: &Built) -> Vec<Check> {
    let units = Check::new("systemd units", "scripts/checks/units");
    let examples = "cargo test --workspace --all-features --doc";
    vec![
        with_programs(units, built),
        Check::new("examples in the docs", examples),
    ]
}

fn with_programs(check: Check, built: &Built) -> Check {
    check.with("RINGFENCE_BINARY", built.program("ringfence"))
}

fn chaos_run(built: &Built, name: &str, arguments: &str, limit: Duration) -> Check {
    let arguments = format!("{arguments} --keep-failed target/chaos");
    let mut check = Check::new(&format!("chaos, {name}"), &arguments).within(limit);
    check.arguments.insert(0, check.program);
    check.program = built.program("ringfence-chaos");
    if arguments.starts_with("run --service") {
        let chaos = mem::replace(&mut check.program, "scripts/checks/chaos-service".into());
        check.arguments.insert(0, chaos);
    }
    check
}

/// Everything else.
pub(crate) fn long(built: &Built, seed: u64) -> Vec<Long> {
    let mut long = long_checks();
    long.extend(long_chaos(built, seed));
    for binary in &built.binaries {
        let selection = Selection {
            long: true,
            ..Selection::default()
        };
        long.push(some_tests(binary, "long tests", selection, 6));
        let filters = AT_RANDOM.iter().find(|(name, _)| *name == binary.name);
        if let Some((_, filters)) = filters {
            let settings = MORE.map(|(name, value)| (name, value.to_owned()));
            let more = some_tests(binary, "more at random", named(filters), 6);
            long.push(more.with(settings.to_vec()));
        }
    }
    long
}

fn long_checks() -> Vec<Long> {
    let clippy = "cargo clippy --package ringfence --package ringfence-client -- -D warnings";
    let models = "cargo run --release -p ringfence-model -- all";
    let packages = "scripts/release --dry-run";
    vec![
        minutes(3, Check::new("lints without features", clippy)),
        minutes(5, Check::new("macOS", "scripts/checks/macos")),
        minutes(5, Check::new("site of the docs", "scripts/book")),
        minutes(12, Check::new("packages", packages).within(40 * MINUTE)),
        minutes(
            20,
            Check::new("attacks", "scripts/attack").within(60 * MINUTE),
        ),
        minutes(25, Check::new("all models", models).within(90 * MINUTE)),
    ]
}

fn long_chaos(built: &Built, seed: u64) -> impl Iterator<Item = Long> {
    let runs = [
        (
            "the seed of every time",
            "run --seed 1 --for 20m".to_owned(),
        ),
        ("a fresh seed", format!("run --seed {seed} --for 20m")),
        (
            "shards on databases too",
            format!("run --mixed --seed {seed} --for 20m"),
        ),
        (
            "the service",
            format!("run --service --seed {seed} --for 20m"),
        ),
        (
            "counters",
            format!("counters --seed {seed} --calls 1000000"),
        ),
        (
            "counters on disks",
            format!("counters --failovers false --seed {seed} --calls 1000000"),
        ),
        (
            "counters whose shards lose everything",
            format!("counters --losses --seed {seed} --calls 200000"),
        ),
        (
            "counters whose shards go back",
            format!("counters --losses --older-files --seed {seed} --calls 200000"),
        ),
    ];
    runs.map(|(name, arguments)| {
        let name = format!("{name}, for long");
        minutes(25, chaos_run(built, &name, &arguments, 60 * MINUTE))
    })
    .into_iter()
}

/// The tests of servers, on the Valkey in the directory `bin`.
pub(crate) fn valkey(built: &Built, bin: &str) -> Vec<Long> {
    let path = std::env::var("PATH").unwrap_or_default();
    let settings = vec![("PATH", format!("{bin}:{path}"))];
    let on_valkey = built.binaries.iter().map(|binary| {
        let tests = some_tests(binary, "on Valkey", named(&OF_REDIS), 4);
        tests.with(settings.clone())
    });
    on_valkey.collect()
}

/// Puts `jobs` into an order that depends on `text` alone.
pub(crate) fn shuffle(jobs: &mut [Long], text: &str) {
    jobs.sort_by_key(|long| {
        let mut hasher = DefaultHasher::new();
        (text, long.job.name()).hash(&mut hasher);
        hasher.finish()
    });
}

impl Long {
    /// With environment variables.
    fn with(mut self, settings: Vec<(&'static str, String)>) -> Self {
        match &mut self.job {
            Job::Check(check) => check.settings = settings,
            Job::Tests(tests) => tests.settings = settings,
        }
        self
    }
}

impl Job {
    /// Of its step.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Check(check) => &check.name,
            Self::Tests(tests) => &tests.name,
        }
    }
}

fn named(filters: &[&str]) -> Selection {
    Selection {
        long: false,
        filters: filters.iter().map(|filter| (*filter).to_owned()).collect(),
    }
}

fn some_tests(binary: &Binary, what: &str, selection: Selection, takes: u32) -> Long {
    let tests = Tests {
        name: format!("{}, {what}", binary.name),
        binary: binary.clone(),
        selection,
        settings: Vec::new(),
        limit: LONG_TEST_LIMIT,
    };
    Long {
        job: Job::Tests(tests),
        takes: takes * MINUTE,
    }
}

fn minutes(takes: u32, check: Check) -> Long {
    Long {
        job: Job::Check(check),
        takes: takes * MINUTE,
    }
}
