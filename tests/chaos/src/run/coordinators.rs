//! The coordinators, each behind a proxy: started, stopped, killed, cut off.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::signal::Signal;
use ringfence_test_support::Proxy;
use tokio::time::{Instant, sleep};

use super::{
    member::befall,
    plan::Step,
    process::{Process, Program},
};
use crate::{
    coordinator::port_file,
    history::{Deed, Fault, Kind, Phase, Recorder},
};

/// How many there are.
const COUNT: usize = 2;
/// They have numbers from here on.
const FIRST: u32 = 80_000;
const NEIGHBOUR: u32 = 90_000;
/// How long one may take to serve, or to end after SIGTERM.
const WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Shared by all, so that each goes on with the others' locks.
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// All coordinators, and their neighbour.
#[derive(Debug)]
pub(super) struct Coordinators {
    dir: PathBuf,
    /// Servers.
    urls: Vec<String>,
    /// Number of the next process.
    next: u32,
    running: Vec<(Process, Proxy)>,
    /// A client of the servers, with a bad clock, if there is to be one.
    neighbour: Option<Process>,
}

impl Coordinators {
    /// Starts them on the servers at `urls`.
    ///
    /// # Errors
    ///
    /// One does not serve.
    pub(super) async fn start(
        dir: &Path,
        urls: &[String],
        seed: u64,
        bad_clock: bool,
    ) -> io::Result<Self> {
        let mut coordinators = Self {
            neighbour: match bad_clock {
                true => Some(Process::start(
                    &Program::This("neighbour"),
                    NEIGHBOUR,
                    dir,
                    servers(urls),
                )?),
                false => None,
            },
            dir: dir.to_owned(),
            urls: urls.to_vec(),
            next: FIRST,
            running: Vec::new(),
        };
        for _ in 0..COUNT {
            let (process, port) = coordinators.start_one().await?;
            let proxy = Proxy::raw(port, seed).await;
            coordinators.running.push((process, proxy));
        }
        Ok(coordinators)
    }

    /// Where clients find them.
    pub(super) fn urls(&self) -> Vec<String> {
        let ports = self.running.iter().map(|(_, proxy)| proxy.port());
        ports
            .map(|port| format!("http://127.0.0.1:{port}"))
            .collect()
    }

    /// Does to one of them what `step` says, records it, and undoes it.
    ///
    /// # Errors
    ///
    /// A process ended by itself, or does not serve.
    pub(super) async fn suffer(&mut self, step: &Step, recorder: &Recorder) -> io::Result<()> {
        let index = step.dice as usize % COUNT;
        let (process, proxy) = &mut self.running[index];
        let deed = Deed {
            fault: Some(step.fault),
            victim: Some(process.number),
            ..Deed::invoke(recorder.next_op(), Kind::Nemesis)
        };
        recorder.record(deed.clone());
        match step.fault {
            Fault::StopCoordinator => {
                process.signal(Signal::SIGSTOP);
                sleep(step.lasts).await;
                process.signal(Signal::SIGCONT);
            }
            Fault::KillCoordinator | Fault::EndCoordinator => {
                match step.fault {
                    Fault::KillCoordinator => process.end().await?,
                    _ => process.ends_by_itself(Instant::now() + WITHIN).await?,
                }
                sleep(step.lasts).await;
                let (process, port) = self.start_one().await?;
                let (its, proxy) = &mut self.running[index];
                *its = process;
                proxy.point_at(port);
            }
            _ => befall(proxy, step).await,
        }
        let phase = Phase::Ok;
        recorder.record(Deed { phase, ..deed });
        Ok(())
    }

    /// Ends all of them, and their neighbour.
    ///
    /// # Errors
    ///
    /// One had ended by itself.
    pub(super) async fn end(mut self) -> io::Result<()> {
        for (process, _) in &mut self.running {
            process.end().await?;
        }
        match &mut self.neighbour {
            Some(neighbour) => neighbour.end().await,
            None => Ok(()),
        }
    }

    /// Starts one, and waits until it serves. Returns its port, too.
    async fn start_one(&mut self) -> io::Result<(Process, u16)> {
        let number = self.next;
        self.next += 1;
        let mut args = vec![("--handle-secret", SECRET.to_owned())];
        args.extend(servers(&self.urls));
        let process = Process::start(&Program::This("coordinator"), number, &self.dir, args)?;
        let file = port_file(&self.dir, number);
        let until = Instant::now() + WITHIN;
        while !file.exists() {
            if Instant::now() > until {
                return Err(process.fault("does not serve"));
            }
            sleep(LOOK_EVERY).await;
        }
        let port = fs::read_to_string(file)?;
        let port = port.parse().map_err(io::Error::other)?;
        Ok((process, port))
    }
}

/// The servers at `urls`, as arguments.
fn servers(urls: &[String]) -> Vec<(&'static str, String)> {
    urls.iter().map(|url| ("--redis", url.clone())).collect()
}
