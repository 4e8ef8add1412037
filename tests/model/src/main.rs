//! The models on the command line: everything, or what a name begins.

use std::process::ExitCode;

use clap::Parser;
use ringfence_model::{
    Checkable, Control, Named, Ruled, Verdict, check, first_use, legs, queue, redlock, reserve,
    segments, sets, shares, slot, topology, witnessed,
};

/// Checks the clean configurations, which must hold, and the controls, which must not.
#[derive(Parser)]
struct Options {
    /// `all`, `clean`, `controls`, or how the names of configurations or rules begin: `slot/` is
    /// that model, `slot/restart` some of its configurations.
    what: String,
    /// States to generate for each, at most.
    #[arg(long, default_value_t = 12_000_000)]
    cap: usize,
    /// Print the steps to a violation.
    #[arg(long)]
    steps: bool,
}

/// A configuration with all rules, or a control.
struct Run {
    name: String,
    /// Whether it must hold; otherwise it must not.
    clean: bool,
    /// The check, up to so many states.
    check: Box<dyn FnOnce(usize) -> Verdict>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut runs = 0;
    let mut unexpected = 0;
    for run in all().filter(|run| options.means(run)) {
        runs += 1;
        unexpected += usize::from(!options.is_as_expected(run));
    }
    println!("{runs} runs, {unexpected} of them not as expected");
    if runs > 0 && unexpected == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Every run there is.
fn all() -> impl Iterator<Item = Run> {
    let queue = runs(
        "queue",
        queue::clean(),
        |config| config.name,
        queue::control,
    );
    let slot = runs("slot", slot::clean(), |config| config.name, slot::control);
    let topology = runs(
        "topology",
        topology::clean(),
        |config| config.name,
        topology::control,
    );
    let first_use = runs(
        "first-use",
        first_use::clean(),
        |config| config.name,
        first_use::control,
    );
    let segments = runs(
        "segments",
        segments::clean(),
        |config| config.name,
        segments::control,
    );
    let legs = runs("legs", legs::clean(), |config| config.name, legs::control);
    let redlock = runs(
        "redlock",
        redlock::clean(),
        |config| config.name,
        redlock::control,
    );
    let reserve = runs(
        "reserve",
        reserve::clean(),
        |config| config.name,
        reserve::control,
    );
    let shares = runs(
        "shares",
        shares::clean(),
        |config| config.name,
        shares::control,
    );
    let sets = runs("sets", sets::clean(), |config| config.name, sets::control);
    let witnessed = runs(
        "witnessed",
        witnessed::clean(),
        |config| config.name,
        witnessed::control,
    );
    (queue.chain(slot).chain(topology).chain(first_use))
        .chain(segments.chain(legs).chain(redlock))
        .chain(reserve.chain(shares).chain(sets).chain(witnessed))
}

/// The runs of one model.
fn runs<Configuration, Rule>(
    model: &str,
    clean: Vec<Configuration>,
    name: fn(&Configuration) -> &'static str,
    control: fn(Rule) -> Control<Configuration, Rule>,
) -> impl Iterator<Item = Run>
where
    Configuration: Clone + 'static,
    Rule: Named,
    Ruled<Configuration, Rule>: Checkable,
{
    let clean = clean.into_iter().map(move |config| Run {
        name: format!("{model}/{}", name(&config)),
        clean: true,
        check: Box::new(|cap| check(Ruled::with_every_rule(config), cap)),
    });
    let controls = Rule::every().iter().map(move |rule| Run {
        name: format!("{model}/{}", rule.name()),
        clean: false,
        check: Box::new(move |cap| check(control(*rule).model(), cap)),
    });
    clean.chain(controls)
}

impl Options {
    fn means(&self, run: &Run) -> bool {
        match self.what.as_str() {
            "all" => true,
            "clean" => run.clean,
            "controls" => !run.clean,
            begin => run.name.starts_with(begin),
        }
    }

    fn is_as_expected(&self, run: Run) -> bool {
        let verdict = (run.check)(self.cap);
        println!("{:<45} {verdict}", run.name);
        if let Some((_, steps)) = verdict.violated.as_ref().filter(|_| self.steps) {
            for step in steps {
                println!("    {step}");
            }
        }
        if run.clean {
            verdict.holds()
        } else {
            verdict.violated.is_some()
        }
    }
}
