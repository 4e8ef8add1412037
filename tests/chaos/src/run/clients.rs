//! The client processes: started, stopped, killed.

use std::io;

use nix::sys::signal::Signal;
use tokio::time::{Duration, Instant, sleep};

use super::{
    plan::Step,
    process::{Process, Program},
};
use crate::{
    client::ClientArgs,
    history::{Deed, Fault, Kind, Phase, Recorder},
};

/// How long a client may take to end after SIGTERM.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Every client process of a group.
#[derive(Debug)]
pub(super) struct Clients {
    program: Program,
    like: ClientArgs,
    running: Vec<Process>,
}

impl Clients {
    /// Starts `count` processes of `program` like `first`, whose numbers go on from its.
    ///
    /// # Errors
    ///
    /// A process cannot be started.
    pub(super) fn start(program: Program, first: ClientArgs, count: usize) -> io::Result<Self> {
        let mut clients = Self {
            program,
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
        let client = &mut self.running[index];
        let deed = Deed {
            fault: Some(step.fault),
            victim: Some(client.number),
            ..Deed::invoke(recorder.next_op(), Kind::Nemesis)
        };
        recorder.record(deed.clone());
        let ended = Deed {
            phase: Phase::Ok,
            ..deed
        };
        if step.fault.ends_a_process() {
            match step.fault {
                Fault::EndClient => client.ends_by_itself(Instant::now() + ENDS_WITHIN).await?,
                _ => client.end().await?,
            }
            recorder.record(ended);
            self.running.remove(index);
            sleep(step.lasts).await;
            return self.start_one();
        }
        client.signal(Signal::SIGSTOP);
        sleep(step.lasts).await;
        client.signal(Signal::SIGCONT);
        recorder.record(ended);
        Ok(())
    }

    /// Ends all of them.
    ///
    /// # Errors
    ///
    /// One had ended by itself.
    pub(super) async fn end(mut self) -> io::Result<()> {
        for client in &mut self.running {
            client.end().await?;
        }
        Ok(())
    }

    fn start_one(&mut self) -> io::Result<()> {
        let like = &self.like;
        let mut args = vec![
            ("--resource", like.resource.display().to_string()),
            ("--run", like.run.clone()),
            ("--seed", like.seed.to_string()),
            ("--lease-ms", like.lease_ms.to_string()),
            ("--section-ms", like.section_ms.to_string()),
        ];
        if let Some(linger_ms) = like.linger_ms.filter(|_| like.process.is_multiple_of(2)) {
            args.push(("--linger-ms", linger_ms.to_string()));
        }
        args.extend(like.urls.iter().map(|url| ("--redis", url.clone())));
        let coordinators = like.coordinators.iter();
        args.extend(coordinators.map(|url| ("--coordinator", url.clone())));
        args.extend(like.keys.iter().map(|key| ("--key", key.clone())));
        let client = Process::start(&self.program, like.process, &like.dir, args)?;
        self.running.push(client);
        self.like.process += 1;
        Ok(())
    }
}
