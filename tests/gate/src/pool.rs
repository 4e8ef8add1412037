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

    /// The same, without those that take too long to end by `until`.
    pub(crate) async fn run_until(&self, jobs: Vec<Long>, until: Option<Instant>) {
        let jobs = stream::iter(jobs);
        jobs.for_each_concurrent(self.context.jobs, async |long| {
            let ends = Instant::now() + long.takes;
            match until.is_some_and(|until| ends > until) {
                true => self.leave_out(&long.job, long.takes),
                false => self.job(long.job).await,
            }
        })
        .await;
    }

    fn leave_out(&self, job: &Job, takes: Duration) {
        let minutes = takes.as_secs() / 60;
        self.report.borrow_mut().check(Outcome {
            name: job.name().to_owned(),
            verdict: Verdict::NotRun(format!("takes {minutes} min, and the time is up")),
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
