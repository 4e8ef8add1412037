//! Resizes of the ring, one after another: by mover processes, of which some die amid that.

use std::{io, path::PathBuf};

use rand::{RngExt, rngs::StdRng, seq::IndexedRandom as _};
use ringfence_coordinator::mover::Phase;
use tokio::time::Instant;

use crate::{
    mover::Halt,
    run::process::{Fate, Process, Program},
};

/// Movers have numbers from here on.
const MOVERS: u32 = 10_000;

/// What movers are started with.
#[derive(Debug)]
pub(super) struct Resizes {
    dir: PathBuf,
    seed: u64,
    /// Every server that may be a shard.
    urls: Vec<String>,
    prefix: &'static str,
    next: u32,
}

impl Resizes {
    pub(super) fn new(dir: PathBuf, seed: u64, urls: Vec<String>, prefix: &'static str) -> Self {
        let next = MOVERS;
        Self {
            dir,
            seed,
            urls,
            prefix,
            next,
        }
    }

    /// Every server that may be a shard.
    pub(super) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Has one resize happen, which moves `slot` if there is one. Whether its first mover died amid it.
    ///
    /// # Errors
    ///
    /// A mover failed, or is not done by `until`.
    pub(super) async fn one(
        &mut self,
        random: &mut StdRng,
        slot: Option<u32>,
        until: Instant,
    ) -> io::Result<bool> {
        let mut begin = vec![("--begin", random.random::<u64>().to_string())];
        begin.extend(slot.map(|slot| ("--slot", slot.to_string())));
        let halt = random.random_bool(0.5).then(|| Halt {
            kill: true,
            phase: *Phase::ALL.choose(random).expect("there are phases"),
            nth: random.random_range(1..=2),
        });
        let died = self.run(begin, halt, until).await? == Fate::Killed;
        if died {
            self.finish(until).await?;
        }
        Ok(died)
    }

    /// Finishes the rest of a resize.
    ///
    /// # Errors
    ///
    /// As [`one`](Self::one).
    pub(super) async fn finish(&mut self, until: Instant) -> io::Result<()> {
        match self.run(Vec::new(), None, until).await? {
            Fate::Ended => Ok(()),
            fate => Err(io::Error::other(format!("a mover is not done: {fate:?}"))),
        }
    }

    async fn run(
        &mut self,
        begin: Vec<(&str, String)>,
        halt: Option<Halt>,
        until: Instant,
    ) -> io::Result<Fate> {
        let mut args = vec![
            ("--run", "counters".to_owned()),
            ("--seed", self.seed.to_string()),
            ("--prefix", self.prefix.to_owned()),
        ];
        args.extend(self.urls.iter().map(|url| ("--redis", url.clone())));
        args.extend(begin);
        args.extend(halt.map(|halt| ("--halt", halt.to_arg())));
        let mut mover = Process::start(&Program::This("mover"), self.next, &self.dir, args)?;
        self.next += 1;
        match mover.fate(until).await? {
            Fate::Going => Err(mover.fault("moves slots, and is not done")),
            fate => Ok(fate),
        }
    }
}
