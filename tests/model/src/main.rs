//! The model on the command line: everything, or what a name begins.

use std::process::ExitCode;

use clap::Parser;
use ringfence_model::{
    Verdict, check,
    queue::{QueueModel, Rule, clean, control},
};

/// Checks the clean configurations, which must hold, and the controls, which must not.
#[derive(Parser)]
struct Options {
    /// `all`, `clean`, `controls`, or how the names of configurations or rules begin.
    what: String,
    /// States to generate for each, at most.
    #[arg(long, default_value_t = 12_000_000)]
    cap: usize,
    /// Print the steps to a violation.
    #[arg(long)]
    steps: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut runs = 0;
    let mut unexpected = 0;
    for config in clean() {
        if options.means(config.name, "clean") {
            let name = config.name;
            let verdict = options.run(name, QueueModel::with_every_rule(config));
            runs += 1;
            unexpected += usize::from(!verdict.holds());
        }
    }
    for rule in Rule::every() {
        if options.means(&rule.name(), "controls") {
            let verdict = options.run(&rule.name(), control(*rule).model());
            runs += 1;
            unexpected += usize::from(verdict.violated.is_none());
        }
    }
    println!("{runs} runs, {unexpected} of them not as expected");
    if runs > 0 && unexpected == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Options {
    fn means(&self, name: &str, group: &str) -> bool {
        self.what == "all" || self.what == group || name.starts_with(&self.what)
    }

    fn run(&self, name: &str, model: QueueModel) -> Verdict {
        let verdict = check(model, self.cap);
        println!("{name:<35} {verdict}");
        if let Some((_, steps)) = verdict.violated.as_ref().filter(|_| self.steps) {
            for step in steps {
                println!("    {step}");
            }
        }
        verdict
    }
}
