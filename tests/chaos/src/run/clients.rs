//! The client processes: started, stopped, killed.

use std::{
    fs::File,
    io,
    process::{ExitStatus, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    time::sleep,
};

use super::plan::Step;
use crate::{
    client::ClientArgs,
    history::{Deed, Fault, Kind, Phase, Recorder},
};

/// Every client process there is.
#[derive(Debug)]
pub(super) struct Clients {
    like: ClientArgs,
    running: Vec<(u32, Child)>,
}

impl Clients {
    /// Starts `count` processes like `first`, whose numbers go on from its.
    ///
    /// # Errors
    ///
    /// A process cannot be started.
    pub(super) fn start(first: ClientArgs, count: usize) -> io::Result<Self> {
        let mut clients = Self {
            like: first,
            running: Vec::new(),
        };
        for _ in 0..count {
            clients.start_one()?;
        }
        Ok(clients)
    }

    /// Does what `step` says to one of them, records it, and undoes it.
    ///
    /// # Errors
    ///
    /// A process ended by itself, or cannot be started.
    pub(super) async fn suffer(&mut self, step: &Step, recorder: &Recorder) -> io::Result<()> {
        let index = step.dice as usize % self.running.len();
        let (process, child) = &mut self.running[index];
        let deed = Deed {
            fault: Some(step.fault),
            victim: Some(*process),
            ..Deed::invoke(recorder.next_op(), Kind::Nemesis)
        };
        recorder.record(deed.clone());
        let ended = Deed {
            phase: Phase::Ok,
            ..deed
        };
        if step.fault == Fault::KillClient {
            end(*process, child).await?;
            recorder.record(ended);
            self.running.remove(index);
            sleep(step.lasts).await;
            return self.start_one();
        }
        signal(child, Signal::SIGSTOP);
        sleep(step.lasts).await;
        signal(child, Signal::SIGCONT);
        recorder.record(ended);
        Ok(())
    }

    /// Ends all of them.
    ///
    /// # Errors
    ///
    /// One had ended by itself.
    pub(super) async fn end(mut self) -> io::Result<()> {
        for (process, child) in &mut self.running {
            end(*process, child).await?;
        }
        Ok(())
    }

    fn start_one(&mut self) -> io::Result<()> {
        let like = &self.like;
        let log = File::create(like.dir.join(format!("{:05}.log", like.process)))?;
        // Gone with this process, however that ends.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(std::env::current_exe()?);
        command.arg("client").arg("--dir").arg(&like.dir);
        command.arg("--resource").arg(&like.resource);
        for (flag, value) in [
            ("--run", like.run.clone()),
            ("--seed", like.seed.to_string()),
            ("--process", like.process.to_string()),
            ("--lease-ms", like.lease_ms.to_string()),
        ] {
            command.arg(flag).arg(value);
        }
        if let Some(linger_ms) = like.linger_ms.filter(|_| like.process.is_multiple_of(2)) {
            command.arg("--linger-ms").arg(linger_ms.to_string());
        }
        for url in &like.urls {
            command.arg("--redis").arg(url);
        }
        for key in &like.keys {
            command.arg("--key").arg(key);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.kill_on_drop(true).spawn()?;
        self.running.push((like.process, child));
        self.like.process += 1;
        Ok(())
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = child.id() {
        // It can only fail if there is no such process; and there is, until it is waited for.
        let _ = kill(Pid::from_raw(pid as i32), signal);
    }
}

/// Kills `child`, which must not have ended by itself, and waits for it.
async fn end(process: u32, child: &mut Child) -> io::Result<()> {
    let by_itself = |status: ExitStatus| {
        let what = format!("client {process} ended by itself ({status}): see {process:05}.log");
        io::Error::other(what)
    };
    if let Some(status) = child.try_wait()? {
        return Err(by_itself(status));
    }
    child.kill().await
}
