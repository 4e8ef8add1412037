//! The end of a shard's log that is missing in an older copy: what its segments forget.

use std::collections::{BTreeMap, HashMap, HashSet};

use ringfence_test_support::Command;

/// A record's key begins with the time of its id, in so many bytes, the most significant first.
const TIME_LEN: usize = 6;

/// What the segments of one account forget.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// The times of the ids whose records were written.
    pub(super) times: HashSet<u64>,
    /// How much was lent.
    pub(super) lent: i64,
    /// In how many loans.
    pub(super) loans: usize,
    /// Of how many channels two loans or more are forgotten, by the lender or by the borrower.
    pub(super) long_channels: usize,
    /// When the first layout begins that is forgotten, in ms since 1970.
    pub(super) layout_from_ms: Option<u64>,
}

impl Tail {
    /// By the accounts' numbers, of which there are so many.
    pub(super) fn of(forgotten: &[Command], accounts: usize) -> BTreeMap<usize, Self> {
        let mut tails: BTreeMap<usize, Self> = BTreeMap::new();
        let mut channels: HashMap<(usize, &[u8], &[u8]), usize> = HashMap::new();
        for command in forgotten {
            let [verb, key, fields @ ..] = &command[..] else {
                continue;
            };
            let Some(account) = account_of(key, accounts).filter(|_| verb == b"HSET") else {
                continue;
            };
            let tail = tails.entry(account).or_default();
            for field in fields.chunks_exact(2) {
                let (field, value) = (&field[0], &field[1]);
                if key.ends_with(b":ids") || key.ends_with(b":open") {
                    tail.times.insert(time_of(field));
                } else if key.ends_with(b":seg") && field == b"cut" {
                    let from_ms = number(value);
                    let first = tail.layout_from_ms.unwrap_or(from_ms);
                    tail.layout_from_ms = Some(first.min(from_ms));
                } else if key.ends_with(b":out") {
                    let amount = lent(value);
                    tail.lent += amount;
                    tail.loans += usize::from(amount > 0);
                }
                if key.ends_with(b":out") || key.ends_with(b":inn") {
                    *channels.entry((account, key, field)).or_default() += 1;
                }
            }
        }
        for ((account, ..), loans) in channels {
            let tail = tails.entry(account).or_default();
            tail.long_channels += usize::from(loans > 1);
        }
        tails
    }
}

/// The number of the account whose segment has a key of that name.
pub(super) fn account_of(key: &[u8], accounts: usize) -> Option<usize> {
    (0..accounts).find(|number| {
        let name = format!("account/{number}#");
        key.windows(name.len()).any(|part| part == name.as_bytes())
    })
}

fn time_of(key: &[u8]) -> u64 {
    let bytes = key[..TIME_LEN].iter();
    bytes.fold(0, |time, &byte| time << 8 | u64::from(byte))
}

/// The amount of a loan: "number:amount".
fn lent(value: &[u8]) -> i64 {
    let at = value.iter().position(|&byte| byte == b':');
    let at = at.expect("a loan has a number and an amount");
    number(&value[at + 1..])
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &[u8]) -> T {
    let text = std::str::from_utf8(text).expect("numbers are decimal text");
    text.parse().expect("numbers are decimal text")
}
