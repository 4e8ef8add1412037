//! A worker process: its share of the tasks takes from an account that another process has created.

use std::{ops::Range, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{
    contenders::{self, Contender, Reach},
    measure::take,
    setup::Setup,
};
use crate::{Failure, workers::serve};

/// What a worker process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    /// Its place in [`Setup::all`].
    setup: usize,
    reach: Reach,
    /// Its tasks, out of so many.
    tasks: Range<usize>,
    of: usize,
}

impl Assignment {
    /// One for each process.
    pub(crate) fn shares(
        contender: &Contender,
        tasks: usize,
        processes: usize,
    ) -> Result<Vec<Self>, Failure> {
        let setup = contender.setup.place().ok_or("it is in no list")?;
        let share = |process| Self {
            setup,
            reach: contender.reach.clone(),
            tasks: process * tasks / processes..(process + 1) * tasks / processes,
            of: tasks,
        };
        Ok((0..processes).map(share).collect())
    }
}

impl FromStr for Assignment {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

/// Does what it is assigned to, in this process.
pub(crate) fn main(assignment: &Assignment) -> Result<(), Failure> {
    let Assignment {
        setup,
        reach,
        tasks,
        of,
    } = assignment;
    let setup = Setup::all().nth(*setup).ok_or("no such set-up")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let account = runtime.block_on(contenders::open(&setup, &[*of], reach, false))?;
    serve(|window| runtime.block_on(take(account, tasks.clone(), *of, window)))
}
