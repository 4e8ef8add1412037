//! The tests, again and again: which of them fail at times.

use std::{collections::BTreeMap, io};

use tokio::process::Command;

use crate::{gate::Gate, group::Group};

/// Runs the tests `rounds` times, beside `busy` processes that compute for ever, and prints which failed, and when.
pub(crate) async fn run(gate: &Gate, rounds: u32, busy: usize) -> io::Result<()> {
    let Some(built) = gate.build().await else {
        return Ok(());
    };
    let spin = |_| Group::spawn(Command::new("sh").args(["-c", "while :; do :; done"]));
    let _busy = (0..busy).map(spin).collect::<io::Result<Vec<_>>>()?;
    let mut table: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for round in 1..=rounds {
        let seed = gate.next_seed();
        println!("\n==== round {round} of {rounds}, seed {seed}");
        let before = gate.report().failures().len();
        gate.tests_once(built).await;
        gate.clear().await;
        for failure in &gate.report().failures()[before..] {
            table.entry(failure.name.clone()).or_default().push(seed);
        }
    }
    println!("\nfailed, of {rounds} rounds:");
    if table.is_empty() {
        println!("  none");
    }
    for (name, seeds) in table {
        println!("  {:3}  {name}; seeds: {seeds:?}", seeds.len());
    }
    Ok(())
}
