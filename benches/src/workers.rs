//! Worker processes of a bench: each has its assignment on the command line, and all else is told as JSON lines.

use std::{io, marker::PhantomData, process::Stdio, time::Duration};

use nix::time::ClockId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

use crate::{Failure, Timing};

/// A worker that says nothing for this long, beyond the slice, is broken: a lock that was left behind
/// would have expired.
const PATIENCE: Duration = Duration::from_secs(60);

/// The measured window, in nanoseconds of CLOCK_MONOTONIC: the same for every process. Said to a worker
/// when all are ready.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Window {
    /// Until then, half-way through the warm-up, a hold is long enough for a second holder to show.
    pub(crate) checked: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Window {
    /// Begins after the warm-up, which begins now.
    pub(crate) fn of(timing: Timing) -> Result<Self, Failure> {
        let (begin, warm_up) = (monotonic()?, timing.warm_up.as_nanos() as u64);
        let from = begin + warm_up;
        Ok(Self {
            checked: begin + warm_up / 2,
            from,
            to: from + timing.length.as_nanos() as u64,
        })
    }

    pub(crate) fn has(&self, time: u64) -> bool {
        (self.from..self.to).contains(&time)
    }

    pub(crate) fn seconds(&self) -> f64 {
        (self.to - self.from) as f64 / 1e9
    }
}

/// Nanoseconds of a clock that all processes of a machine share.
pub(crate) fn monotonic() -> Result<u64, Failure> {
    Ok(Duration::from(ClockId::CLOCK_MONOTONIC.now()?).as_nanos() as u64)
}

/// Sleeps until that clock shows `time`.
pub(crate) async fn sleep_until(time: u64) -> Result<(), Failure> {
    sleep(Duration::from_nanos(time.saturating_sub(monotonic()?))).await;
    Ok(())
}

/// What a worker process says.
#[derive(Debug, Serialize, Deserialize)]
enum Said<O> {
    /// It is connected.
    Ready,
    Done(O),
}

/// In a worker, once it is connected: does `work` in the window that it is told.
pub(crate) fn serve<O: Serialize>(
    work: impl FnOnce(Window) -> Result<O, Failure>,
) -> Result<(), Failure> {
    say(&Said::<O>::Ready)?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let outcome = work(serde_json::from_str(&line)?)?;
    say(&Said::Done(outcome))?;
    // Until the bench lets go: its clocks of this process end with the process.
    io::stdin().read_line(&mut line)?;
    Ok(())
}

fn say<O: Serialize>(what: &Said<O>) -> Result<(), Failure> {
    println!("{}", serde_json::to_string(what)?);
    Ok(())
}

/// The worker processes, seen from the bench that starts them. Each has an outcome `O`.
pub(crate) struct Workers<O> {
    workers: Vec<Worker>,
    outcome: PhantomData<O>,
}

impl<O: DeserializeOwned> Workers<O> {
    /// Starts a process of `bench` for each assignment, and waits until all are connected.
    pub(crate) async fn start(
        bench: &str,
        assignments: &[impl Serialize],
    ) -> Result<Self, Failure> {
        let start = |assignment| Worker::start(bench, &serde_json::to_string(assignment)?);
        let mut workers: Vec<_> = assignments
            .iter()
            .map(start)
            .collect::<Result<_, Failure>>()?;
        for worker in &mut workers {
            match worker.hear::<O>().await? {
                Said::Ready => {}
                Said::Done(_) => return Err("a worker did not wait for the word".into()),
            }
        }
        Ok(Self {
            workers,
            outcome: PhantomData,
        })
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        let workers = self.workers.iter();
        workers.filter_map(|worker| worker.child.id()).collect()
    }

    /// Has them begin.
    pub(crate) async fn begin(&mut self, window: Window) -> Result<(), Failure> {
        for worker in &mut self.workers {
            worker.tell(&window).await?;
        }
        Ok(())
    }

    /// What they did, by process, once all have ended.
    pub(crate) async fn outcomes(self) -> Result<Vec<O>, Failure> {
        let mut outcomes = Vec::new();
        for mut worker in self.workers {
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
    fn start(bench: &str, assignment: &str) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([bench, "--worker", assignment])
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

    async fn hear<O: DeserializeOwned>(&mut self) -> Result<Said<O>, Failure> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        match line.map_err(|_| "a worker says nothing")?? {
            Some(line) => Ok(serde_json::from_str(&line)?),
            None => Err(format!("a worker ended: {}", self.child.wait().await?).into()),
        }
    }
}
