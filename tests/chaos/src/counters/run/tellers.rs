//! The teller processes: started, killed, followed by others.

use std::io;

use tokio::time::Instant;

use super::super::{TellerArgs, log::read_process};
use crate::run::process::{Fate, Process, Program};

/// Every teller process there is.
#[derive(Debug)]
pub(super) struct Tellers {
    like: TellerArgs,
    running: Vec<(Process, usize)>,
}

impl Tellers {
    /// Starts `count` processes like `like`, with the following numbers, which together make its
    /// calls.
    ///
    /// # Errors
    ///
    /// A process cannot be started.
    pub(super) fn start(like: TellerArgs, count: usize) -> io::Result<Self> {
        let calls = like.calls.div_ceil(count);
        let mut tellers = Self {
            like,
            running: Vec::new(),
        };
        for _ in 0..count {
            tellers.start_one(calls, None)?;
        }
        Ok(tellers)
    }

    /// Whether all have come to their end.
    ///
    /// # Errors
    ///
    /// One has failed.
    pub(super) async fn are_done(&mut self) -> io::Result<bool> {
        let mut running = Vec::new();
        for (mut teller, calls) in self.running.drain(..) {
            match teller.fate(Instant::now()).await? {
                Fate::Ended => {}
                _ => running.push((teller, calls)),
            }
        }
        self.running = running;
        Ok(self.running.is_empty())
    }

    /// Kills one, and has another make the calls that it did not, and those again that were not answered. Returns
    /// whether it had made calls.
    ///
    /// # Errors
    ///
    /// A process or a log failed.
    pub(super) async fn kill_one(&mut self, dice: u32) -> io::Result<bool> {
        if self.running.is_empty() {
            return Ok(false);
        }
        let (mut teller, calls) = self.running.remove(dice as usize % self.running.len());
        teller.kill().await?;
        let made = match read_process(&self.like.dir, teller.number) {
            // It had not got that far.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            made => made?.len(),
        };
        let killed = (made > 0).then_some(teller.number);
        self.start_one(calls.saturating_sub(made), killed)?;
        Ok(made > 0)
    }

    fn start_one(&mut self, calls: usize, after: Option<u32>) -> io::Result<()> {
        let like = &self.like;
        let mut args = vec![
            ("--seed", like.seed.to_string()),
            ("--prefix", like.prefix.clone()),
            ("--accounts", like.accounts.to_string()),
            ("--visitors", like.visitors.to_string()),
            ("--calls", calls.to_string()),
            ("--latches-on-disk", like.latches_on_disk.to_string()),
        ];
        args.extend(after.map(|killed| ("--after", killed.to_string())));
        args.extend(like.urls.iter().map(|url| ("--redis", url.clone())));
        let teller = Process::start(&Program::This("teller"), like.process, &like.dir, args)?;
        self.running.push((teller, calls));
        self.like.process += 1;
        Ok(())
    }
}
