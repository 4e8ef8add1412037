//! What a run found: a table for people, JSON for machines.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    contenders::Who,
    goals,
    measure::{Plan, Row},
    setup::Setup,
};
use crate::{Bound, Common, Failure, Machine, Place, Spread, Timing, print_bounds, print_table};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    /// Processors busy with neither the server nor the workers.
    others: Spread,
    parameters: Parameters,
    rows: Vec<Line>,
    bounds: Vec<Bound>,
}

#[derive(Debug, Serialize)]
struct Parameters {
    rounds: usize,
    #[serde(flatten)]
    timing: Timing,
    setups: Vec<Setup>,
    place: Place,
}

/// One contender in one set-up.
#[derive(Debug, Serialize)]
struct Line {
    contender: &'static str,
    what: &'static str,
    setup: Setup,
    grants_per_s: Spread,
    /// Of all rounds.
    wait_ms: BTreeMap<&'static str, f64>,
    jain: Spread,
    starved: Spread,
    hold_ms: Spread,
    commands_per_release: Spread,
    messages_per_release: Spread,
    server_us_per_release: Spread,
    client_us_per_release: Spread,
    /// How many times its grants a second ringfence reaches.
    ringfence_is: Spread,
}

impl Report {
    pub(crate) fn new(machine: Machine, plan: &Plan, rows: &[Row]) -> Self {
        Self {
            bench: "hot-key",
            machine,
            others: Spread::of(rows.iter().flat_map(|row| row.others.iter().copied())),
            parameters: Parameters {
                rounds: plan.rounds,
                timing: plan.timing,
                setups: plan.setups.clone(),
                place: plan.place,
            },
            rows: rows.iter().map(|row| Line::of(row, rows)).collect(),
            bounds: goals::bounds(rows),
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        let Parameters {
            rounds,
            timing,
            place,
            ..
        } = self.parameters;
        println!("{}", self.machine);
        println!("{rounds} rounds, {timing}");
        println!("{place}");
        println!("other work on the machine: {:.1} processors", self.others);
        println!("median (min … max) of the rounds; waits of all rounds, in ms");
        println!(
            "starved: tasks without a grant in the slice; commands, messages, processor time: a release\n"
        );
        self.print_rows();
        print_bounds(&self.bounds, rounds, self.others);
        common.write(self.bench, self)
    }

    fn print_rows(&self) {
        for &setup in &self.parameters.setups {
            let title = setup.to_string();
            let head = [
                &title,
                "grants/s",
                "p50",
                "p99",
                "p999",
                "max",
                "Jain",
                "starved",
                "commands",
                "messages",
                "server us",
                "client us",
                "ringfence is",
            ];
            let here = self.rows.iter().filter(|line| line.setup == setup);
            let cells: Vec<Vec<String>> = here.map(Line::cells).collect();
            print_table(&head, &cells);
            println!();
        }
        let first = self.parameters.setups[0];
        for line in self.rows.iter().filter(|line| line.setup == first) {
            println!("{:15} {}", line.contender, line.what);
        }
        println!();
    }
}

impl Line {
    fn of(row: &Row, rows: &[Row]) -> Self {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        let quantile = |part| row.waits.value_at_quantile(part) as f64 / 1e6;
        let waits = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
        let ours = goals::find(rows, Who::Ringfence, row.setup).unwrap_or(row);
        Self {
            contender: row.who.name(),
            what: row.who.what(),
            setup: row.setup,
            grants_per_s: spread(&row.grants_per_s),
            wait_ms: waits.map(|(name, part)| (name, quantile(part))).into(),
            jain: spread(&row.jain),
            starved: spread(&row.starved),
            hold_ms: spread(&row.hold_ms),
            commands_per_release: spread(&row.commands),
            messages_per_release: spread(&row.messages),
            server_us_per_release: spread(&row.server_us),
            client_us_per_release: spread(&row.client_us),
            ringfence_is: Spread::of_ratios(&ours.grants_per_s, &row.grants_per_s),
        }
    }

    fn cells(&self) -> Vec<String> {
        let wait = |name| format!("{:.2}", self.wait_ms[name]);
        let ratio = self.ringfence_is;
        let digits = if ratio.median < 0.1 { 4 } else { 2 };
        vec![
            self.contender.to_owned(),
            format!("{:.0}", self.grants_per_s),
            wait("p50"),
            wait("p99"),
            wait("p999"),
            wait("max"),
            format!("{:.2}", self.jain),
            format!("{:.0}", self.starved),
            format!("{:.2}", self.commands_per_release.median),
            format!("{:.3}", self.messages_per_release.median),
            format!("{:.1}", self.server_us_per_release.median),
            format!("{:.1}", self.client_us_per_release.median),
            format!("{ratio:.digits$} x"),
        ]
    }
}
