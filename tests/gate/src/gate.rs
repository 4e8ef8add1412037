//! The parts of the gate, in their order.

use std::{
    cell::{Cell, OnceCell, Ref, RefCell},
    io,
    time::Duration,
};

use tokio::{process::Command, time::Instant};

use crate::{
    binaries::{self, BUILD, Built},
    check::Check,
    context::Context,
    leftovers, plan,
    pool::Pool,
    report::{Outcome, Report, Verdict},
};

/// Runs of chaos at a time.
const CHAOS_AT_A_TIME: usize = 2;

/// The gate, and what it has seen so far.
pub(crate) struct Gate {
    context: Context,
    began: Instant,
    built: OnceCell<Built>,
    report: RefCell<Report>,
    /// Then tests were ended that leave something behind.
    is_stopped: Cell<bool>,
}

impl Gate {
    pub(crate) fn new(context: Context) -> Self {
        Self {
            context,
            began: Instant::now(),
            built: OnceCell::new(),
            report: RefCell::default(),
            is_stopped: Cell::new(false),
        }
    }

    /// The quick part; then the long one, or as much of it as ends within `until` of the start.
    pub(crate) async fn whole(&self, long: bool, until: Option<Duration>) {
        let is_quick = !long && until.is_none();
        for check in plan::first_checks() {
            self.pool().check(&check).await;
        }
        let built = self.build().await;
        // The tests wait for servers much of their time: compilers have the processors then.
        let tests = async {
            if let Some(built) = built {
                self.tests_once(built).await;
            }
        };
        tokio::join!(self.checks(is_quick, built), tests);
        self.clear().await;
        if let Some(built) = built.filter(|_| !is_quick) {
            let until = until.map(|until| self.began + until);
            self.long(built, until).await;
        }
    }

    /// What is not a test.
    async fn checks(&self, is_quick: bool, built: Option<&Built>) {
        let mut checks = plan::checks();
        checks.push(plan::chart(is_quick));
        checks.extend(built.into_iter().flat_map(plan::checks_of_programs));
        match is_quick {
            true => self.not_run(
                plan::dependencies(),
                "its tool takes minutes to build: scripts/test --long",
            ),
            false => checks.push(plan::dependencies()),
        }
        for check in checks {
            self.pool().check(&check).await;
        }
    }

    /// The tests.
    pub(crate) async fn tests_once(&self, built: &Built) {
        let seed = self.context.seed.get();
        let tests = plan::tests(built);
        self.pool().run(tests, self.context.jobs).await;
        let chaos = plan::chaos(built, seed);
        let at_a_time = self.context.jobs.min(CHAOS_AT_A_TIME);
        self.pool().run(chaos, at_a_time).await;
    }

    async fn long(&self, built: &Built, until: Option<Instant>) {
        let seed = self.context.seed.get();
        let mut jobs = plan::long(built, seed);
        jobs.extend(self.valkey(built).await);
        if until.is_some() {
            plan::shuffle(&mut jobs, &self.commit().await);
        }
        self.pool().run_until(jobs, until).await;
        self.clear().await;
    }

    /// The tests of servers on Valkey, and no others.
    pub(crate) async fn valkey_alone(&self) {
        if let Some(built) = self.build().await {
            let jobs = self.valkey(built).await;
            self.pool().run_until(jobs, None).await;
        }
    }

    async fn valkey(&self, built: &Built) -> Vec<plan::Long> {
        let program = "scripts/valkey";
        match self.output(self.context.command(program)).await {
            Ok(bin) => plan::valkey(built, &bin),
            Err(reason) => {
                let check = Check::new("tests on Valkey", program);
                self.not_run(check, &format!("it cannot be had here: {reason}"));
                Vec::new()
            }
        }
    }

    fn not_run(&self, check: Check, why: &str) {
        self.report.borrow_mut().check(check.not_run(why));
    }

    async fn commit(&self) -> String {
        let mut git = self.context.command("git");
        git.args(["rev-parse", "HEAD"]);
        self.output(git).await.unwrap_or_default()
    }

    /// What `command` prints, or else the last line of what it says of its failure.
    async fn output(&self, mut command: Command) -> Result<String, String> {
        let output = command.kill_on_drop(true).output().await;
        let output = output.map_err(|error| error.to_string())?;
        let [out, err] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        match output.status.success() {
            true => Ok(out),
            false => Err(err.lines().next_back().unwrap_or_default().to_owned()),
        }
    }

    /// Builds the tests.
    pub(crate) async fn build(&self) -> Option<&Built> {
        let began = Instant::now();
        println!("-- build of the tests");
        let built = binaries::build(&self.context).await;
        let (built, verdict) = match built {
            Ok(built) => (Some(built), Verdict::Passed),
            Err(error) => (None, Verdict::Failed(format!("{error}\nno test was run"))),
        };
        self.report.borrow_mut().check(Outcome {
            name: "build of the tests".to_owned(),
            verdict,
            took: began.elapsed(),
            command: BUILD.join(" "),
        });
        built.map(|built| self.built.get_or_init(|| built))
    }

    /// The seed of the next round.
    pub(crate) fn next_seed(&self) -> u64 {
        let seed = self.context.seed.get() + 1;
        self.context.seed.set(seed);
        seed
    }

    /// Says that the gate was ended by `signal`.
    pub(crate) fn stopped(&self, signal: &str) {
        self.is_stopped.set(true);
        self.report.borrow_mut().check(Outcome {
            name: "the gate".to_owned(),
            verdict: Verdict::Failed(format!("ended by {signal}: the rest did not run")),
            took: self.began.elapsed(),
            command: "scripts/test".to_owned(),
        });
    }

    /// Ends and removes what is left of the tests, and says so.
    pub(crate) async fn clear(&self) {
        let Context {
            mark,
            tmp,
            in_memory,
            ..
        } = &self.context;
        let left = leftovers::clear(mark, tmp, in_memory).await;
        if !left.is_empty() && !self.is_stopped.get() {
            self.report.borrow_mut().check(Outcome {
                name: "nothing is left behind".to_owned(),
                verdict: Verdict::Failed(left.join("\n")),
                took: Duration::ZERO,
                command: "scripts/test".to_owned(),
            });
        }
    }

    /// The bytes of disk that are free now.
    pub(crate) fn free_disk(&self) -> io::Result<u64> {
        self.context.free_disk()
    }

    /// What it has seen so far.
    pub(crate) fn report(&self) -> Ref<'_, Report> {
        self.report.borrow()
    }

    fn pool(&self) -> Pool<'_> {
        Pool {
            context: &self.context,
            report: &self.report,
        }
    }
}
