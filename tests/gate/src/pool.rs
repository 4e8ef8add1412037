//! Runs jobs side by side.

use std::{cell::RefCell, time::Duration};

use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use crate::{
    check::Check,
    context::Context,
    libtest,
    plan::{Job, Long, Tests},
    report::{Outcome, Report, Verdict},
};

/// The long part builds more, and its servers write files: below this it would fail half-way.
const DISK_FOR_LONG: u64 = 4 << 30;

/// Jobs, and where their outcomes go.
pub(crate) struct Pool<'a> {
    pub(crate) context: &'a Context,
    pub(crate) report: &'a RefCell<Report>,
}

impl Pool<'_> {
    /// Runs all jobs, so many at a time. They begin in their order.
    pub(crate) async fn run(&self, jobs: Vec<Job>, at_a_time: usize) {
        let jobs = stream::iter(jobs);
        jobs.for_each_concurrent(at_a_time, async |job| self.job(job).await)
            .await;
    }

    /// The same, without those that take too long to end by `until`, or for which there is no disk.
    pub(crate) async fn run_until(&self, jobs: Vec<Long>, until: Option<Instant>) {
        let jobs = stream::iter(jobs);
        jobs.for_each_concurrent(self.context.jobs, async |long| {
            match self.obstacle(long.takes, until) {
                Some(why) => self.leave_out(&long.job, why),
                None => self.job(long.job).await,
            }
        })
        .await;
    }

    fn obstacle(&self, takes: Duration, until: Option<Instant>) -> Option<String> {
        let ends = Instant::now() + takes;
        if until.is_some_and(|until| ends > until) {
            let minutes = takes.as_secs() / 60;
            return Some(format!("takes {minutes} min, and the time is up"));
        }
        let [free, needed] = [self.context.free_disk().ok()?, DISK_FOR_LONG].map(|it| it >> 20);
        (free < needed).then(|| format!("{free} MiB of disk are free, {needed} are needed"))
    }

    fn leave_out(&self, job: &Job, why: String) {
        self.report.borrow_mut().check(Outcome {
            name: job.name().to_owned(),
            verdict: Verdict::NotRun(why),
            took: Duration::ZERO,
            command: "scripts/test --long".to_owned(),
        });
    }

    async fn job(&self, job: Job) {
        match job {
            Job::Check(check) => self.check(&check).await,
            Job::Tests(tests) => self.tests(tests).await,
        }
    }

    /// Runs one check.
    pub(crate) async fn check(&self, check: &Check) {
        let outcome = check.run(self.context).await;
        self.report.borrow_mut().check(outcome);
    }

    async fn tests(&self, tests: Tests) {
        let began = Instant::now();
        let context = self.context;
        let (listed, left_out) = match libtest::list(&tests, context).await {
            Ok(listed) => listed,
            Err(error) => {
                let failed = tests
                    .binary
                    .failed("--list", began.elapsed(), error.to_string());
                return self.report.borrow_mut().test(failed);
            }
        };
        if tests.selection.filters.is_empty() {
            let reason = "they are of the long part: scripts/test --long";
            self.report.borrow_mut().left_out(reason, left_out);
        }
        if listed.is_empty() {
            return;
        }
        let mut counts = (0, 0);
        libtest::run(&tests, listed, context, |outcome| {
            match outcome.verdict {
                Verdict::Passed => counts.0 += 1,
                _ => counts.1 += 1,
            }
            self.report.borrow_mut().test(outcome);
        })
        .await;
        self.report
            .borrow_mut()
            .binary(tests.name, counts, began.elapsed());
    }
}
