//! Scripts that lack a rule, for tests that show what it is there for.

use std::sync::LazyLock;

use super::{ADOPT, STEP, Script};
use crate::failpoint::{Rule, is_off};

/// Applies whatever comes.
static STEP_WITHOUT_GUARD: LazyLock<Script> = LazyLock::new(|| {
    let guard = "if its_epoch < epoch or (its_epoch == epoch and step_of(its_mode) < step) then";
    instead(&STEP, guard, "if true then")
});

/// Says "it is here already" of a record that is, whatever becomes of its slot.
static ADOPT_WITHOUT_MOVE: LazyLock<Script> = LazyLock::new(|| {
    let refusal = "not (mode == 'I' or mode == 'O') then return 0 end";
    let yours = "not (mode == 'I' or mode == 'O') then \
                 return parse(redis.pcall('GET', key)) == nonce and 1 or 0 end";
    instead(&ADOPT, refusal, yours)
});

/// All of them, to be loaded beside those they stand in for.
pub(crate) fn all() -> [&'static Script; 2] {
    [&STEP_WITHOUT_GUARD, &ADOPT_WITHOUT_MOVE]
}

/// `script`, or what a test that switched its rule off has run instead.
pub(crate) fn in_force(script: &Script) -> &Script {
    match script.name {
        "step" if is_off(Rule::StepGuard) => &STEP_WITHOUT_GUARD,
        "adopt" if is_off(Rule::AdoptByMove) => &ADOPT_WITHOUT_MOVE,
        _ => script,
    }
}

/// `script` with one part of it replaced.
fn instead(script: &Script, part: &str, by: &str) -> Script {
    assert_eq!(script.code.matches(part).count(), 1, "{}", script.name);
    let code = script.code.replace(part, by);
    let hash = redis::Script::new(&code).get_hash().to_owned();
    Script {
        name: script.name,
        code,
        hash,
    }
}
