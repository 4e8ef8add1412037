//! A command that passes, fails, or cannot run here.

use std::{
    fs::{self, File},
    io,
    process::ExitStatus,
    time::Duration,
};

use tokio::time::{Instant, timeout};

use crate::{
    context::Context,
    group::Group,
    report::{Outcome, Verdict},
};

/// Exit code of a check that cannot run on this machine, as automake has it. The last line of its output says why.
const CANNOT_RUN: i32 = 77;

/// A command, and how long it may take.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) settings: Vec<(&'static str, String)>,
    pub(crate) limit: Duration,
}

impl Check {
    /// The check called `name`: `line` is the program and its arguments, with blanks between.
    pub(crate) fn new(name: &str, line: &str) -> Self {
        let mut words = line.split(' ').map(str::to_owned);
        Self {
            name: name.to_owned(),
            program: words.next().expect("a line has a word"),
            arguments: words.collect(),
            settings: Vec::new(),
            limit: Duration::from_secs(20 * 60),
        }
    }

    /// With an environment variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    /// With another limit of its time.
    pub(crate) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs it to its end.
    pub(crate) async fn run(&self, context: &Context) -> Outcome {
        println!("-- {}", self.name);
        let began = Instant::now();
        let verdict = self.verdict(context).await;
        Outcome {
            name: self.name.clone(),
            verdict: verdict.unwrap_or_else(|error| Verdict::Failed(error.to_string())),
            took: began.elapsed(),
            command: self.command_line(),
        }
    }

    /// The outcome of one that does not run.
    pub(crate) fn not_run(&self, why: &str) -> Outcome {
        Outcome {
            name: self.name.clone(),
            verdict: Verdict::NotRun(why.to_owned()),
            took: Duration::ZERO,
            command: self.command_line(),
        }
    }

    async fn verdict(&self, context: &Context) -> io::Result<Verdict> {
        let path = context.log(&self.name);
        let log = File::create(&path)?;
        let mut command = context.command(&self.program);
        command
            .args(&self.arguments)
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut group = Group::spawn(&mut command)?;
        let ended = timeout(self.limit, group.leader.wait()).await;
        let output = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        Ok(match ended {
            Ok(status) => verdict(status?, output),
            Err(_) => {
                let limit = self.limit.as_secs();
                Verdict::Failed(format!("{output}\nlonger than its limit of {limit} s"))
            }
        })
    }

    fn command_line(&self) -> String {
        let settings = self
            .settings
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"));
        let words = [&self.program].into_iter().chain(&self.arguments);
        let words = words.map(|word| match word.contains(' ') {
            true => format!("{word:?}"),
            false => word.clone(),
        });
        settings.chain(words).collect::<Vec<_>>().join(" ")
    }
}

fn verdict(status: ExitStatus, output: String) -> Verdict {
    if status.success() {
        Verdict::Passed
    } else if status.code() == Some(CANNOT_RUN) {
        let last = output.trim_end().lines().next_back();
        Verdict::NotRun(last.unwrap_or("it does not say why").to_owned())
    } else {
        Verdict::Failed(format!("{output}\n{status}"))
    }
}
