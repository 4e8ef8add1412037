//! The worker processes, seen from the bench that starts them.

use std::{process::Stdio, time::Duration};

use serde::Serialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::messages::{Assignment, Outcome, Said, Window};
use crate::Failure;

/// A worker that says nothing for this long, beyond the slice, is broken: a lock that was left behind
/// would have expired.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Workers(Vec<Worker>);

impl Workers {
    /// Starts a process for each of `assignment`'s, and waits until all are connected.
    pub(crate) async fn start(assignment: &Assignment) -> Result<Self, Failure> {
        let text = serde_json::to_string(assignment)?;
        let start = |_| Worker::start(&text);
        let mut workers: Vec<_> = (0..assignment.setup.processes)
            .map(start)
            .collect::<Result<_, _>>()?;
        for worker in &mut workers {
            match worker.hear().await? {
                Said::Ready => {}
                Said::Done(_) => return Err("a worker did not wait for the word".into()),
            }
        }
        Ok(Self(workers))
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.0
            .iter()
            .filter_map(|worker| worker.child.id())
            .collect()
    }

    /// Has them begin.
    pub(crate) async fn begin(&mut self, window: Window) -> Result<(), Failure> {
        for worker in &mut self.0 {
            worker.tell(&window).await?;
        }
        Ok(())
    }

    /// What they did, by process, once all have ended.
    pub(crate) async fn outcomes(self) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::new();
        for mut worker in self.0 {
            match worker.hear().await? {
                Said::Done(outcome) => outcomes.push(outcome),
                Said::Ready => return Err("a worker forgot what it was told".into()),
            }
            drop(worker.stdin);
            worker.child.wait().await?;
        }
        Ok(outcomes)
    }
}

struct Worker {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(assignment: &str) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["hot-key", "--worker", assignment])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().ok_or("a worker without stdin")?;
        let stdout = child.stdout.take().ok_or("a worker without stdout")?;
        Ok(Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
        })
    }

    async fn tell(&mut self, what: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(what)? + "\n";
        Ok(self.stdin.write_all(line.as_bytes()).await?)
    }

    async fn hear(&mut self) -> Result<Said, Failure> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        match line.map_err(|_| "a worker says nothing")?? {
            Some(line) => Ok(serde_json::from_str(&line)?),
            None => Err(format!("a worker ended: {}", self.child.wait().await?).into()),
        }
    }
}
