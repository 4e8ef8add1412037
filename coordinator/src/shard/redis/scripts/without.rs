//! Scripts that lack a rule, for tests that show what it is there for.

use std::sync::LazyLock;

use super::{ADOPT, COUNTERS, STEP, Script, versioned};
use crate::failpoint::{Rule, is_off};

/// Applies every step.
static STEP_WITHOUT_GUARD: LazyLock<Script> = LazyLock::new(|| {
    let guard = "if its_epoch < epoch or (its_epoch == epoch and step_of(its_mode) < step) then";
    instead(&STEP, guard, "if true then")
});

/// Answers "it is here already" for an existing record, for any state of its slot.
static ADOPT_WITHOUT_MOVE: LazyLock<Script> = LazyLock::new(|| {
    let refusal = "not (mode == 'I' or mode == 'O') then return 0 end";
    let yours = "not (mode == 'I' or mode == 'O') then \
                 return parse(redis.pcall('GET', key)) == nonce and 1 or 0 end";
    instead(&ADOPT, refusal, yours)
});

/// Debits a loan that is asked for again, if the money is there.
static LEND_AGAIN: LazyLock<Script> = LazyLock::new(|| {
    let same = "if seq == last then return {'lent', last, amount_of(last_amount)} end";
    let again = "\
  if seq == last then
    local amount = amount_of(last_amount)
    if not less(segment.value, amount) then set_value(segment, subtract(segment.value, amount)) end
    return {'lent', last, amount}
  end";
    instead(&COUNTERS, same, again)
});

/// Decides every request anew.
static COUNTERS_FORGETFUL: LazyLock<Script> = LazyLock::new(|| {
    instead(
        &COUNTERS,
        "record(segment, id, time, content .. state, aside)",
        "",
    )
});

/// A sweep of a transfer's source takes back money that is not settled yet.
static TAKE_BACK: LazyLock<Script> = LazyLock::new(|| {
    let sweep = "\
function rules.expire(segment)
  certain(segment)
";
    let take_back = "\
  local open, sent = part(segment, 'open'), part(segment, 'sent')
  for _, member in ipairs(read('ZRANGE', whole(sent), 0, -1)) do
    local id = string.sub(member, -KEY)
    take_back(segment, amount_of(string.match(get(open, id), '^S(%d+):', 9)))
    put(sent, member, false)
    close_open(segment, id, 'R')
  end
";
    instead(&COUNTERS, sweep, &format!("{sweep}{take_back}"))
});

/// All of them, to be loaded beside those they stand in for.
pub(crate) fn all() -> [&'static Script; 5] {
    [
        &STEP_WITHOUT_GUARD,
        &ADOPT_WITHOUT_MOVE,
        &LEND_AGAIN,
        &COUNTERS_FORGETFUL,
        &TAKE_BACK,
    ]
}

/// `script`, or what a test that switched its rule off has run instead.
pub(crate) fn in_force(script: &Script) -> &Script {
    match script.name {
        "step" if is_off(Rule::StepGuard) => &STEP_WITHOUT_GUARD,
        "adopt" if is_off(Rule::AdoptByMove) => &ADOPT_WITHOUT_MOVE,
        "counters" if is_off(Rule::LendOnce) => &LEND_AGAIN,
        "counters" if is_off(Rule::RememberIds) => &COUNTERS_FORGETFUL,
        "counters" if is_off(Rule::SettleByDestination) => &TAKE_BACK,
        _ => script,
    }
}

/// `script` with one part of it replaced.
fn instead(script: &Script, part: &str, by: &str) -> Script {
    assert_eq!(script.code.matches(part).count(), 1, "{}", script.name);
    let code = script.code.replace(part, by);
    let function = versioned(script.name, &[&code]);
    Script {
        name: script.name,
        code: code.replace(&script.function, &function),
        function,
    }
}
