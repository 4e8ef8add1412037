//! What ran, and how it ended.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

/// How many of the slowest are listed.
const SLOWEST: usize = 10;
/// How many lines of a failure's output are repeated at the end.
const LAST_LINES: usize = 12;

/// How a test or a check ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Passed,
    /// With its output.
    Failed(String),
    /// With the reason.
    NotRun(String),
}

/// A test or a check that ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
    /// The command that runs it alone.
    pub(crate) command: String,
}

/// Something that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) name: String,
    /// The last lines of its output.
    end: String,
    command: String,
}

/// What the gate has seen.
#[derive(Debug, Default)]
pub(crate) struct Report {
    tests: Vec<Outcome>,
    checks: Vec<Outcome>,
    /// With the time of all of their tests.
    binaries: Vec<(String, Duration)>,
    failures: Vec<Failure>,
    /// Tests that are left to another part of the gate, by the reason.
    left_out: BTreeMap<String, usize>,
}

impl Report {
    /// Adds a test of a binary.
    pub(crate) fn test(&mut self, outcome: Outcome) {
        self.tell(&outcome);
        self.tests.push(outcome);
    }

    /// Adds a check.
    pub(crate) fn check(&mut self, outcome: Outcome) {
        println!("== {}: {:.0} s", outcome.name, outcome.took.as_secs_f64());
        self.tell(&outcome);
        self.checks.push(outcome);
    }

    /// Adds a binary, whose tests were added one by one.
    pub(crate) fn binary(
        &mut self,
        name: String,
        (passed, failed): (usize, usize),
        took: Duration,
    ) {
        let seconds = took.as_secs_f64();
        println!("== {name}: {passed} passed, {failed} failed; {seconds:.0} s");
        self.binaries.push((name, took));
    }

    /// Shows at once what failed or cannot run.
    fn tell(&mut self, outcome: &Outcome) {
        let Outcome {
            name,
            verdict,
            command,
            ..
        } = outcome;
        match verdict {
            Verdict::Passed => {}
            Verdict::Failed(output) => {
                println!("\nFAILED: {name}\n{output}\nrepeat it: {command}\n");
                self.failures.push(Failure {
                    name: name.clone(),
                    end: last_lines(output),
                    command: command.clone(),
                });
            }
            Verdict::NotRun(why) => println!("not run: {name}: {why}"),
        }
    }

    /// Adds `count` tests that do not run for `reason`.
    pub(crate) fn left_out(&mut self, reason: &str, count: usize) {
        if count > 0 {
            *self.left_out.entry(reason.to_owned()).or_default() += count;
        }
    }

    /// All that failed, in the order of time.
    pub(crate) fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// For people. The last line has the counts.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        let checks = self.checks.iter().map(|check| (&check.name, check.took));
        let binaries = self.binaries.iter().map(|(name, took)| (name, *took));
        slowest(&mut text, "Slowest steps", checks.chain(binaries));
        let tests = self.tests.iter().map(|test| (&test.name, test.took));
        slowest(&mut text, "Slowest tests", tests);
        let not_run = self.not_run();
        if !not_run.is_empty() {
            let _ = writeln!(text, "\nNot run:\n  {}", not_run.join("\n  "));
        }
        if !self.failures.is_empty() {
            text +=
                "\nFailed, with the end of its output, and the command that repeats it alone:\n";
        }
        for Failure { name, end, command } in &self.failures {
            let _ = writeln!(text, "  {name}\n{end}      {command}");
        }
        let all = self.tests.iter().chain(&self.checks);
        let passed = all.filter(|outcome| outcome.verdict == Verdict::Passed);
        let (passed, failed) = (passed.count(), self.failures.len());
        let left_out: usize = self.left_out.values().sum();
        let skipped = self.tests.len() + self.checks.len() - passed - failed + left_out;
        let _ = write!(
            text,
            "\n{passed} passed, {failed} failed, {skipped} skipped"
        );
        text
    }

    fn not_run(&self) -> Vec<String> {
        let checks = self.checks.iter().filter_map(|check| match &check.verdict {
            Verdict::NotRun(why) => Some(format!("{}: {why}", check.name)),
            Verdict::Passed | Verdict::Failed(_) => None,
        });
        let tests = self.left_out.iter();
        let tests = tests.map(|(why, count)| format!("{count} tests: {why}"));
        checks.chain(tests).collect()
    }
}

/// The last lines of an output, indented.
fn last_lines(output: &str) -> String {
    let lines: Vec<_> = output.trim_end().lines().collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    let indented = lines[from..].iter().map(|line| format!("      | {line}\n"));
    indented.collect()
}

fn slowest<'a>(text: &mut String, title: &str, all: impl Iterator<Item = (&'a String, Duration)>) {
    let mut by_time: Vec<_> = all.collect();
    by_time.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let _ = writeln!(text, "\n{title}:");
    for (name, took) in by_time.iter().take(SLOWEST) {
        let _ = writeln!(text, "{:8.1} s  {name}", took.as_secs_f64());
    }
}
