//! Scripts that lack a rule, for tests that show what the rule is for.

use std::{fmt::Write as _, sync::LazyLock};

use super::{ADOPT, CONFIRM, COUNTERS, LIBRARY, SHARE, SHARED, Script};
use crate::failpoint::{Rule, is_off};

/// A script with one part of it, or of the functions that it shares, replaced.
struct Without {
    rule: Rule,
    script: &'static Script,
    name: &'static str,
    part: &'static str,
    by: &'static str,
    function: LazyLock<String>,
}

macro_rules! without {
    ($($rule:ident: $script:ident as $name:literal, $part:expr => $by:expr;)+) => {
        static ALL: [Without; 8] = [$(Without {
            rule: Rule::$rule,
            script: &$script,
            name: $name,
            part: $part,
            by: $by,
            function: LazyLock::new(|| LIBRARY.function($name)),
        }),+];
    };
}

/// Where a sweep of a transfer's source begins.
const SWEEP: &str = "\
function rules.expire(segment)
  certain(segment)
";

without! {
    // Answers "it is here already" for an existing record, for any state of its slot.
    AdoptByMove: ADOPT as "adopt_without_move",
        "not (mode == 'I' or mode == 'O') then return 0 end"
        => "not (mode == 'I' or mode == 'O') then \
            return parse(redis.pcall('GET', key)) == nonce and 1 or 0 end";
    // Confirms and installs in sealed slots, too.
    ConfirmWhereOpen: CONFIRM as "confirm_anywhere",
        "if mode ~= 'O' then return {8, epoch, -1} end"
        => "";
    // Confirms and installs in grace, too.
    ConfirmAfterGrace: CONFIRM as "confirm_in_grace",
        "if now < ends and mode ~= 'S' then return {4, ends - now} end"
        => "";
    // Every share of a key in a slot that comes is taken to be free, once there was a proof.
    RoomLeft: SHARE as "share_without_left",
        "return import.begun and proven or nil"
        => "return proven and 0";
    // Grants to a request that fits, whether tickets wait or not.
    NoBarging: SHARE as "share_barging",
        "if left and (not queue or line.is_next(queue, nonce, preferred)) and shares.fit("
        => "if left and shares.fit(";
    // Debits a loan that is asked for again, if the money is there.
    LendOnce: COUNTERS as "lend_again",
        "if landed < last then return {'lent', last, amount_of(last_amount)} end"
        => "\
  if landed < last then
    local amount = amount_of(last_amount)
    if not less(segment.value, amount) then set_value(segment, subtract(segment.value, amount)) end
    return {'lent', last, amount}
  end";
    // Decides every request anew.
    RememberIds: COUNTERS as "counters_forgetful",
        "record(segment, id, time, content .. state, aside)"
        => "";
    // A sweep of a transfer's source takes back the money of a transfer that is not finished yet.
    FinishByDestination: COUNTERS as "take_back",
        SWEEP
        => "\
function rules.expire(segment)
  certain(segment)
  local open, sent = part(segment, 'open'), part(segment, 'sent')
  for _, member in ipairs(read('ZRANGE', whole(sent), 0, -1)) do
    local id = string.sub(member, -KEY)
    take_back(segment, amount_of(string.match(get(open, id), '^S(%d+):', 9)))
    put(sent, member, false)
    close_open(segment, id, 'R')
  end
";
}

/// The lines that register them, each with its own copy of the shared functions if it changes one.
pub(super) fn registered() -> String {
    let mut text = String::new();
    for Without {
        script,
        name,
        part,
        by,
        ..
    } in &ALL
    {
        let matches = script.source.matches(part).count() + SHARED.matches(part).count();
        assert_eq!(matches, 1, "{name}");
        let source = script.source.replace(part, by);
        let shared = match SHARED.contains(part) {
            true => SHARED.replace(part, by),
            false => String::new(),
        };
        let function = super::registered(name, &source);
        write!(
            text,
            "do local function variant()\n{shared}{function}end variant() end\n"
        )
        .expect("a text takes it");
    }
    text
}

/// The function that is called for `script`: another one, if a test switched a rule off.
pub(crate) fn in_force(script: &Script) -> &str {
    let mut all = ALL.iter();
    let without = all.find(|without| without.script.name == script.name && is_off(without.rule));
    without.map_or(&script.function, |without| &without.function)
}
