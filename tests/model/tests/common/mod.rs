//! A test for every clean configuration, and one for every rule.
//!
//! `cargo run --release -p ringfence-model -- all` goes to the end of what they begin.

use ringfence_model::Verdict;

/// A test that each of the clean configurations holds, and one that none is left out.
macro_rules! hold {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                must_hold($name);
            }
        )*

        #[test]
        fn every_configuration_is_tested() {
            let names: Vec<_> = clean().iter().map(|config| config.name).collect();
            assert_eq!(names, [$($name),*]);
        }
    };
}

/// A test that each of the rules is needed, and one that none is left out.
macro_rules! break_without {
    ($($test:ident: $rule:ident,)*) => {
        $(
            #[test]
            fn $test() {
                must_break_without(Rule::$rule);
            }
        )*

        #[test]
        fn every_rule_is_tested() {
            assert_eq!(Rule::every(), [$(Rule::$rule),*]);
        }
    };
}

/// Everything holds as far as the cap went, and everything happened that should.
pub(crate) fn assert_holds(name: &str, verdict: &Verdict) {
    println!("{name}: {verdict}");
    assert!(verdict.holds(), "{verdict:#?}");
}

/// The control's property is violated without the rule, and holds with it over as many states.
pub(crate) fn assert_breaks(
    name: &str,
    violates: &'static str,
    without: &Verdict,
    with: impl FnOnce(usize) -> Verdict,
) {
    println!("{name}: {without}");
    let violated = without.violated.as_ref().map(|(name, _)| *name);
    assert_eq!(violated, Some(violates), "{without}");

    let with = with(without.generated);
    assert!(with.violated.is_none(), "with the rule: {with:#?}");
}
