//! Runs a binary of tests, test by test: a test that hangs, or ends its process, fails by name, and the others still run.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io,
    path::Path,
    process::Stdio,
    time::Duration,
};

use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{ChildStdout, Command},
    time::{Instant, sleep_until},
};

use crate::{
    context::Context,
    group::Group,
    plan::Tests,
    report::{Outcome, Verdict},
};

/// The length of a process's errors in the output of a test.
const ERRORS_MAX: usize = 10_000;

/// A line of libtest's output (`--format json`).
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Suite { event: String },
    Test(Event),
}

#[derive(Deserialize)]
struct Event {
    event: String,
    name: String,
    #[serde(default)]
    exec_time: f64,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    ignore: bool,
}

/// Which tests of a binary run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Those marked `#[ignore = "long: …"]`; else the others.
    pub(crate) long: bool,
    /// Only tests whose names contain one of these; all if there are none.
    pub(crate) filters: Vec<String>,
}

/// The names of the tests: those selected, and the number of long ones that are not.
pub(crate) async fn list(tests: &Tests, context: &Context) -> io::Result<(Vec<String>, usize)> {
    let selection = &tests.selection;
    let mut command = command(tests, context);
    command.arg("--list").stdin(Stdio::null());
    let output = command.output().await?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!(
            "--list: {}: {errors}",
            output.status
        )));
    }
    let output = String::from_utf8_lossy(&output.stdout);
    let mut found = events(&output);
    let filters = &selection.filters;
    found.retain(|test| filters.is_empty() || filters.iter().any(|its| test.name.contains(its)));
    let (selected, others): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|test| test.ignore == selection.long);
    let left_out = others.iter().filter(|test| test.ignore).count();
    Ok((
        selected.into_iter().map(|test| test.name).collect(),
        left_out,
    ))
}

fn events(output: &str) -> Vec<Event> {
    let test = |line| match serde_json::from_str(line) {
        Ok(Line::Test(event)) => Some(event),
        Ok(Line::Suite { .. }) | Err(_) => None,
    };
    output.lines().filter_map(test).collect()
}

/// The format is unstable, and Rust's stable libtest has it behind this variable.
fn command(
    Tests {
        binary, settings, ..
    }: &Tests,
    context: &Context,
) -> Command {
    let mut command = context.command(&binary.path);
    command
        .current_dir(&binary.dir)
        .env("RUSTC_BOOTSTRAP", "1")
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .args(["-Zunstable-options", "--format=json"]);
    command
}

/// Runs those of `tests` that are called `names`, and tells of each as it ends.
pub(crate) async fn run(
    tests: &Tests,
    names: Vec<String>,
    context: &Context,
    mut tell: impl FnMut(Outcome),
) {
    let mut left: HashSet<String> = names.into_iter().collect();
    let mut suspects = Vec::new();
    while !left.is_empty() {
        let attempt = Attempt {
            tests,
            context,
            tell: &mut tell,
            left: &mut left,
        };
        suspects = attempt.run(suspects).await.unwrap_or_else(|error| {
            for test in left.drain() {
                tell(
                    tests
                        .binary
                        .failed(&test, Duration::ZERO, error.to_string()),
                );
            }
            Vec::new()
        });
    }
}

/// One process, which runs tests that are left.
struct Attempt<'a, F> {
    tests: &'a Tests,
    context: &'a Context,
    tell: &'a mut F,
    left: &'a mut HashSet<String>,
}

impl<F: FnMut(Outcome)> Attempt<'_, F> {
    /// Runs `suspects` one by one, or else all that are left side by side. Returns the tests of which one has ended the
    /// process.
    async fn run(mut self, suspects: Vec<String>) -> io::Result<Vec<String>> {
        let errors = self.context.log(&self.tests.binary.key());
        let mut command = command(self.tests, self.context);
        command
            .args(["--report-time", "--include-ignored", "--exact"])
            .stdout(Stdio::piped())
            .stderr(File::create(&errors)?);
        match suspects.is_empty() {
            true => command.args(self.left.iter()),
            false => command.arg("--test-threads=1").args(suspects),
        };
        let mut group = Group::spawn(&mut command)?;
        let output = group.leader.stdout.take().expect("it is piped");
        let mut running = HashMap::new();
        let before = self.left.len();
        let is_over = self.follow(output, &mut running).await?;
        let limit = self.tests.limit;
        let reason = match is_over {
            true => format!("longer than its limit of {} s", limit.as_secs()),
            false => format!("its process ended: {}", group.leader.wait().await?),
        };
        drop(group);
        let written = tail(&errors);
        fs::remove_file(errors)?;
        let reason = format!("{reason}\n{written}");
        if is_over {
            running.retain(|_, began| began.elapsed() >= limit);
        } else if running.len() > 1 {
            return Ok(running.into_keys().collect());
        } else if running.is_empty() && self.left.len() == before {
            return Err(io::Error::other(reason));
        }
        for (test, began) in running {
            self.ends(&test, began.elapsed(), Verdict::Failed(reason.clone()));
        }
        Ok(Vec::new())
    }

    /// Follows the output to its end. Returns early, with true, if a test runs for longer than its limit.
    async fn follow(
        &mut self,
        output: ChildStdout,
        running: &mut HashMap<String, Instant>,
    ) -> io::Result<bool> {
        let mut lines = BufReader::new(output).lines();
        loop {
            let first = running.values().min().copied();
            let over = async {
                match first {
                    Some(began) => sleep_until(began + self.tests.limit).await,
                    None => std::future::pending().await,
                }
            };
            let line = tokio::select! {
                line = lines.next_line() => line?,
                () = over => return Ok(true),
            };
            let Some(line) = line else { return Ok(false) };
            match serde_json::from_str(&line) {
                Ok(Line::Test(event)) => self.apply(event, running),
                // A process that a test has left may keep the output open.
                Ok(Line::Suite { event }) if event != "started" => return Ok(false),
                // Processes that tests start may write other lines.
                Ok(Line::Suite { .. }) | Err(_) => {}
            }
        }
    }

    fn apply(&mut self, event: Event, running: &mut HashMap<String, Instant>) {
        let verdict = match &*event.event {
            "started" => {
                running.insert(event.name, Instant::now());
                return;
            }
            "ok" => Verdict::Passed,
            "failed" => Verdict::Failed(event.stdout),
            // It takes long.
            _ => return,
        };
        running.remove(&event.name);
        let took = Duration::from_secs_f64(event.exec_time);
        self.ends(&event.name, took, verdict);
    }

    fn ends(&mut self, test: &str, took: Duration, verdict: Verdict) {
        if self.left.remove(test) {
            (self.tell)(self.tests.binary.outcome(test, took, verdict));
        }
    }
}

fn tail(errors: &Path) -> String {
    let written = fs::read(errors).unwrap_or_default();
    let from = written.len().saturating_sub(ERRORS_MAX);
    String::from_utf8_lossy(&written[from..]).into_owned()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, env};

    use super::*;
    use crate::binaries::Binary;

    /// Tests that do what their names say, in a process that has this variable.
    const SAMPLE: &str = "RINGFENCE_GATE_SAMPLE";

    mod sample {
        fn is_run() -> bool {
            std::env::var_os(super::SAMPLE).is_some()
        }

        #[test]
        fn aborts() {
            if is_run() {
                std::process::abort();
            }
        }

        #[test]
        fn fails() {
            assert!(!is_run(), "this is its output");
        }

        #[test]
        fn hangs() {
            if is_run() {
                std::thread::park();
            }
        }

        #[test]
        fn passes() {}

        #[test]
        #[ignore = "long: the others are not"]
        fn takes_long() {}
    }

    fn samples() -> Tests {
        Tests {
            name: "samples".to_owned(),
            binary: Binary::this(env::current_exe().unwrap()),
            selection: Selection {
                long: false,
                filters: vec!["sample::".to_owned()],
            },
            settings: vec![(SAMPLE, "yes".to_owned())],
            limit: Duration::from_secs(2),
        }
    }

    #[tokio::test]
    async fn tests_that_end_their_process_or_hang_fail_by_name_and_the_others_run() {
        let context = Context::new(env::current_dir().unwrap()).unwrap();
        let samples = samples();
        let (names, left_out) = list(&samples, &context).await.unwrap();
        assert_eq!((names.len(), left_out), (4, 1), "{names:?}");

        let mut outcomes = BTreeMap::new();
        run(&samples, names, &context, |outcome| {
            let name = outcome.name.rsplit("::").next().unwrap().to_owned();
            assert!(
                outcomes.insert(name, outcome.verdict).is_none(),
                "told once"
            );
        })
        .await;
        let failed = |name| match &outcomes[name] {
            Verdict::Failed(output) => output.clone(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(outcomes["passes"], Verdict::Passed);
        assert!(failed("fails").contains("this is its output"));
        assert!(failed("hangs").contains("its limit of 2 s"));
        assert!(failed("aborts").contains("signal: 6"));
    }
}
