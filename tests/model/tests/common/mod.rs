//! A test for every clean configuration, and one for every rule. Those that take more than a second or two are marked `long`.
//!
//! `cargo run --release -p ringfence-model -- all` goes to the end of what they begin.

use ringfence_model::{Checkable, Control, Named, Ruled, Verdict, check};

macro_rules! model_test {
    ($test:ident, $run:expr) => {
        #[test]
        fn $test() {
            $run;
        }
    };
    ($test:ident, $run:expr, long) => {
        #[test]
        #[ignore = "long: many states"]
        fn $test() {
            $run;
        }
    };
}

/// A test that each of the clean configurations holds, and one that none is left out.
macro_rules! hold {
    ($($test:ident: $name:literal $($long:ident)?,)*) => {
        $(model_test!($test, must_hold($name) $(, $long)?);)*

        #[test]
        fn every_configuration_is_tested() {
            let names: Vec<_> = clean().iter().map(|config| config.name).collect();
            assert_eq!(names, [$($name),*]);
        }
    };
}

/// A test that each of the rules is needed, and one that none is left out.
macro_rules! break_without {
    ($($test:ident: $rule:ident $($long:ident)?,)*) => {
        $(model_test!($test, must_break_without(Rule::$rule) $(, $long)?);)*

        #[test]
        fn every_rule_is_tested() {
            assert_eq!(Rule::every(), [$(Rule::$rule),*]);
        }
    };
}

/// States within which a control must be found violated.
const CONTROL_CAP: usize = 3_000_000;

/// Everything holds, up to `cap` states, and everything happened that should.
pub(crate) fn assert_holds<Configuration, Rule>(
    name: &str,
    config: Option<Configuration>,
    cap: usize,
) -> Verdict
where
    Rule: Named,
    Ruled<Configuration, Rule>: Checkable,
{
    let config = config.expect("every_configuration_is_tested compares the names");
    let verdict = check(Ruled::with_every_rule(config), cap);
    println!("{name}: {verdict}");
    assert!(verdict.holds(), "{verdict:#?}");
    verdict
}

/// The control's property is violated without the rule, and holds with it over as many states.
pub(crate) fn assert_breaks<Configuration, Rule>(control: &Control<Configuration, Rule>)
where
    Configuration: Clone,
    Rule: Named,
    Ruled<Configuration, Rule>: Checkable,
{
    let without = check(control.model(), CONTROL_CAP);
    println!("{}: {without}", control.rule.name());
    let violated = without.violated.as_ref().map(|(name, _)| *name);
    assert_eq!(violated, Some(control.violates), "{without}");

    let with = check(control.with_the_rule(), without.generated);
    assert!(with.violated.is_none(), "with the rule: {with:#?}");
}
