//! Ids, states and amounts as the scripts store and report them.
//!
//! Ids as texts sort as the ids do, so sorted sets keep their order.

use ringfence_segment_lock::{
    Account, Caller, Durability, HashKey, Leg, Legs, RequestId, Terms,
    segment::{Channel, Committed, CreditId, PinnedCredit, State},
};

use crate::name::{Decimal, hex, push_decimal};

/// The greatest integer that scripts represent exactly. Times, versions and generations are below it. A greater one is
/// replaced by it, which keeps it newer, or farther in the future, than all others.
pub(crate) const EXACT_MAX: u64 = (1 << 53) - 1;

/// Digits of a time in an id.
const TIME_DIGITS: usize = 16;
/// No text contains it.
const NOT_TEXT: u8 = 0xff;
/// Ends a name. In a name, [`NOT_THE_END`] follows each zero byte.
const END: u8 = 0;
const NOT_THE_END: u8 = NOT_TEXT;

/// The scripts have one number for a smaller amount, and two for any other: high * 10^15 + low.
pub(crate) const SPLIT: u64 = 1_000_000_000_000_000;

/// Of a text in a hash, a piece has at most so many bytes.
const PIECE: usize = 60;
/// A text that needs more pieces is stored as one.
const PIECES_MAX: usize = 9;

/// The fields of a text in a hash, and what they have: `lua/counter/segment/manifest.lua` says why.
pub(crate) fn pieces(field: &str, text: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut pieces: Vec<_> = text.chunks(PIECE).collect();
    if pieces.is_empty() || pieces.len() > PIECES_MAX {
        pieces = vec![text];
    }
    let count = pieces.len().to_string();
    let nth = |(i, piece): (usize, &&[u8])| match i {
        0 => (field.to_owned(), [count.as_bytes(), piece].concat()),
        _ => (format!("{field}{}", i + 1), piece.to_vec()),
    };
    pieces.iter().enumerate().map(nth).collect()
}

/// `time:name`, in two pieces.
fn id_pieces(id: &RequestId) -> ([u8; TIME_DIGITS + 1], &[u8]) {
    let mut time = [b':'; TIME_DIGITS + 1];
    let digits = Decimal::of(id.time_ms().min(EXACT_MAX));
    time[..TIME_DIGITS].copy_from_slice(digits.last(TIME_DIGITS));
    (time, id.name().as_bytes())
}

/// The inverse of [`id_pieces`].
fn id_of(text: &[u8]) -> Option<RequestId> {
    let (time, name) = text.split_at_checked(TIME_DIGITS)?;
    let name = name.strip_prefix(b":")?;
    RequestId::new(number_of::<u64>(time)?, std::str::from_utf8(name).ok()?).ok()
}

/// `time:name`, the name's end, and `more`.
pub(crate) fn id_text(id: &RequestId, more: &str) -> Vec<u8> {
    ended(id, more.as_bytes())
}

/// `time:name`, the name's end, and the account; of a capture also a byte that no text contains, and `time:name` of the
/// reservation with its end.
pub(crate) fn credit_text(credit: &CreditId) -> Vec<u8> {
    let mut text = ended(&credit.id, credit.from.as_str().as_bytes());
    if let Some(reservation) = &credit.reservation {
        text.push(NOT_TEXT);
        push_ended(&mut text, reservation, &[]);
    }
    text
}

/// The inverse of [`credit_text`].
pub(crate) fn credit_of(text: &[u8]) -> Option<CreditId> {
    let (id, from) = ended_of(text)?;
    let mut parts = from.splitn(2, |byte| *byte == NOT_TEXT);
    let from = Account::new(std::str::from_utf8(parts.next()?).ok()?).ok()?;
    let reservation = match parts.next() {
        None => None,
        Some(reservation) => Some(ended_of(reservation)?.0),
    };
    Some(CreditId {
        id,
        from,
        reservation,
    })
}

/// A credit that is not finished, with its key.
pub(crate) fn pinned_text(hash_key: HashKey, credit: &CreditId) -> Vec<u8> {
    [&credit_text(credit)[..], &credit_key(hash_key, credit)].concat()
}

/// A credit that is not finished, by its text and the time of a promise as a text, which is empty if it is none.
pub(crate) fn pinned_of(text: &[u8], promised: &[u8]) -> Option<PinnedCredit> {
    let promised_ms = match promised {
        [] => None,
        promised => Some(number_of(promised)?),
    };
    Some(PinnedCredit {
        id: credit_of(text)?,
        promised_ms,
    })
}

/// A text behind that of the credit with any key: these begin with a time.
pub(crate) fn behind_pinned(credit: &CreditId) -> Vec<u8> {
    [&credit_text(credit)[..], &[NOT_TEXT]].concat()
}

/// `time:name`, the name's end, and `more`: ordered by id, for any content of `more`.
fn ended(id: &RequestId, more: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(TIME_DIGITS + 2 + id.name().len() + more.len());
    push_ended(&mut text, id, more);
    text
}

/// Appends that.
pub(super) fn push_ended(text: &mut Vec<u8>, id: &RequestId, more: &[u8]) {
    let (time, name) = id_pieces(id);
    text.extend_from_slice(&time);
    for (nth, piece) in name.split(|byte| *byte == END).enumerate() {
        if nth > 0 {
            text.extend_from_slice(&[END, NOT_THE_END]);
        }
        text.extend_from_slice(piece);
    }
    text.push(END);
    text.extend_from_slice(more);
}

/// The inverse of [`ended`]. No byte that follows an end equals [`NOT_THE_END`]: account names are text, and times in
/// keys begin with a smaller byte.
pub(super) fn ended_of(text: &[u8]) -> Option<(RequestId, &[u8])> {
    let (mut id, mut rest) = (Vec::with_capacity(text.len()), text);
    loop {
        let (&byte, behind) = rest.split_first()?;
        let escaped = behind.first() == Some(&NOT_THE_END);
        if byte == END && !escaped {
            return Some((id_of(&id)?, behind));
        }
        id.push(byte);
        rest = if byte == END { &behind[1..] } else { behind };
    }
}

/// A letter, and the data of the state.
pub(crate) fn state_text(state: &State) -> Vec<u8> {
    let mut text = Vec::new();
    match state {
        State::Done => text.push(b'D'),
        State::Insufficient => text.push(b'I'),
        State::Confirmed => text.push(b'C'),
        State::Cancelled => text.push(b'X'),
        State::Expired => text.push(b'E'),
        State::Delivered => text.push(b'V'),
        State::Returned => text.push(b'R'),
        State::Held {
            amount,
            deadline_ms,
        } => {
            text.push(b'H');
            push_decimal(&mut text, amount.get().unsigned_abs());
            text.push(b':');
            push_decimal(&mut text, *deadline_ms);
        }
        State::Sent { amount, to } => {
            text.push(b'S');
            push_decimal(&mut text, amount.get().unsigned_abs());
            text.push(b':');
            text.extend_from_slice(to.as_str().as_bytes());
        }
        State::Committed(committed) => {
            let Committed { legs, capture } = &**committed;
            let capture = capture.as_ref().map(|id| id_text(id, ""));
            text.push(b'K');
            push_counted(&mut text, &capture.unwrap_or_default());
            for Leg { to, amount } in legs.iter() {
                push_decimal(&mut text, amount.get().unsigned_abs());
                text.push(b':');
                push_counted(&mut text, to.as_str().as_bytes());
            }
        }
    }
    text
}

/// The length of `bytes`, a colon, and `bytes`.
fn push_counted(text: &mut Vec<u8>, bytes: &[u8]) {
    push_decimal(text, bytes.len() as u64);
    text.push(b':');
    text.extend_from_slice(bytes);
}

/// The inverse of [`push_counted`], and what follows.
fn counted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = pair(text)?;
    rest.split_at_checked(number_of(len)?)
}

fn committed_of(text: &[u8]) -> Option<Committed> {
    let (capture, mut rest) = counted(text)?;
    let capture = match capture {
        [] => None,
        capture => Some(ended_of(capture)?.0),
    };
    let mut legs = Vec::new();
    while !rest.is_empty() {
        let (amount, named) = pair(rest)?;
        let (to, behind) = counted(named)?;
        legs.push(Leg {
            to: Account::new(std::str::from_utf8(to).ok()?).ok()?,
            amount: number_of(amount)?,
        });
        rest = behind;
    }
    let legs = Legs::new(legs).ok()?;
    Some(Committed { legs, capture })
}

/// The inverse of [`state_text`].
pub(crate) fn state_of(text: &[u8]) -> Option<State> {
    let (letter, needs) = text.split_first()?;
    let plain = match letter {
        b'D' => State::Done,
        b'I' => State::Insufficient,
        b'C' => State::Confirmed,
        b'X' => State::Cancelled,
        b'E' => State::Expired,
        b'V' => State::Delivered,
        b'R' => State::Returned,
        b'H' => {
            let (amount, deadline) = pair(needs)?;
            return Some(State::Held {
                amount: number_of(amount)?,
                deadline_ms: number_of(deadline)?,
            });
        }
        b'S' => {
            let (amount, to) = pair(needs)?;
            return Some(State::Sent {
                amount: number_of(amount)?,
                to: Account::new(std::str::from_utf8(to).ok()?).ok()?,
            });
        }
        b'K' => return Some(State::Committed(Box::new(committed_of(needs)?))),
        _ => return None,
    };
    needs.is_empty().then_some(plain)
}

/// The text before its first colon, and the text after it.
pub(crate) fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = text.iter().position(|byte| *byte == b':')?;
    Some((&text[..colon], &text[colon + 1..]))
}

/// Decimal digits, and nothing else.
pub(crate) fn number_of<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Length of a key, in bytes.
pub(crate) const KEY_LEN: usize = 18;

/// The greatest time in a key. The first byte of a key is below [`NOT_THE_END`]. No id with such a distant time is
/// recorded.
const TIME_MAX: u64 = (1 << 47) - 1;

/// The key of an answer: the id's time in six bytes, big-endian, and twelve bytes of `digest`.
fn key(time_ms: u64, digest: u128) -> [u8; KEY_LEN] {
    let mut key = [0; KEY_LEN];
    key[..6].copy_from_slice(&time_ms.min(TIME_MAX).to_be_bytes()[2..]);
    key[6..].copy_from_slice(&digest.to_be_bytes()[..12]);
    key
}

/// The key of a request.
pub(crate) fn id_key(hash_key: HashKey, id: &RequestId) -> [u8; KEY_LEN] {
    key(id.time_ms(), id.digest(hash_key))
}

/// The key of another account's transfer.
pub(crate) fn credit_key(hash_key: HashKey, credit: &CreditId) -> [u8; KEY_LEN] {
    key(credit.id.time_ms(), credit.digest(hash_key))
}

/// The member of a request in the lists of those that are not final: `time:name`, the name's end, and the key.
pub(crate) fn open_text(hash_key: HashKey, id: &RequestId) -> Vec<u8> {
    ended(id, &id_key(hash_key, id))
}

/// The inverse of [`open_text`].
pub(crate) fn open_of(text: &[u8]) -> Option<RequestId> {
    Some(ended_of(text)?.0)
}

/// The digest of a content.
pub(crate) fn content_bytes(content: u64) -> [u8; 8] {
    content.to_be_bytes()
}

/// `seq:amount`, as a channel is stored.
pub(crate) fn channel_of(text: &[u8]) -> Option<Channel> {
    let (seq, amount) = pair(text)?;
    Some(Channel {
        seq: number_of(seq)?,
        amount: number_of(amount)?,
    })
}

/// `process:call`.
pub(crate) fn caller_text(caller: Caller) -> Vec<u8> {
    let (process, call) = caller_pieces(caller);
    [&process[..], &call].concat()
}

/// The text of [`caller_text`], in two pieces.
pub(crate) fn caller_pieces(caller: Caller) -> ([u8; 33], Decimal) {
    let mut process = [b':'; 33];
    process[..32].copy_from_slice(&hex::<32>(caller.process));
    (process, Decimal::of(caller.call))
}

/// The most that a segment may have; the credit line, if that is the account's ceiling; and the unit. `None`: the usual
/// ones.
pub(crate) fn limits_text(terms: &Terms) -> Option<String> {
    if terms.ceiling.is_none() && terms.unit.is_none() {
        return None;
    }
    let credit = terms.credit_above_ceiling();
    Some(format!("{} {credit} {}", terms.owned_max(), terms.unit))
}

/// A word, or a number of replicas.
pub(crate) fn durability_text(durability: Durability) -> String {
    match durability {
        Durability::Memory => "memory".into(),
        Durability::Disk => "disk".into(),
        Durability::Replicas(count) => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use ringfence_segment_lock::Amount;

    use super::*;

    const KEY: HashKey = HashKey(7);

    fn id(time_ms: u64, name: &str) -> RequestId {
        RequestId::new(time_ms, name).unwrap()
    }

    fn credit(time_ms: u64, name: &str, from: &str) -> CreditId {
        let from = Account::new(from).unwrap();
        CreditId {
            id: id(time_ms, name),
            from,
            reservation: None,
        }
    }

    fn captured(credit: CreditId, reservation: RequestId) -> CreditId {
        CreditId {
            reservation: Some(reservation),
            ..credit
        }
    }

    fn committed(capture: Option<RequestId>) -> State {
        let leg = |to| Leg {
            to: Account::new(to).unwrap(),
            amount: Amount::new(7).unwrap(),
        };
        let legs = Legs::new(vec![leg("a:1"), leg("3:b")]).unwrap();
        State::Committed(Box::new(Committed { legs, capture }))
    }

    #[test]
    fn ids_are_told_apart_and_in_their_order() {
        let ids = [
            id(1, "z"),
            id(9, "a"),
            id(10, "a"),
            id(10, "a\0"),
            id(10, "b:c"),
        ];
        for (one, next) in ids.iter().zip(&ids[1..]) {
            assert!(
                one < next && open_text(KEY, one) < open_text(KEY, next),
                "{one} {next}"
            );
        }
        for id in ids {
            assert_eq!(open_of(&open_text(KEY, &id)), Some(id));
        }
    }

    #[test]
    fn credits_are_told_apart_and_in_their_order() {
        let credits = [
            credit(1, "a", "b\0c"),
            credit(1, "a", "\u{10ffff}"),
            credit(1, "a\0", "c"),
            credit(1, "a\0\0", "c"),
            credit(1, "a\0b", "c"),
            credit(1, "ab", "a"),
            captured(credit(1, "ab", "a"), id(1, "c")),
            captured(credit(1, "ab", "a"), id(1, "c\0")),
            captured(credit(1, "ab", "a"), id(1, "c\0b")),
        ];
        for (one, next) in credits.iter().zip(&credits[1..]) {
            assert!(one < next, "{one:?} {next:?}");
            assert!(credit_text(one) < credit_text(next), "{one:?} {next:?}");
            let pinned = |credit| pinned_text(HashKey(7), credit);
            assert!(pinned(one) < behind_pinned(one), "{one:?}");
            assert!(behind_pinned(one) < pinned(next), "{one:?} {next:?}");
        }
        for credit in credits {
            assert_eq!(credit_of(&credit_text(&credit)), Some(credit.clone()));
            for (promised, promised_ms) in [("", None), ("7", Some(7))] {
                let id = credit.clone();
                let found = pinned_of(&credit_text(&credit), promised.as_bytes());
                assert_eq!(found, Some(PinnedCredit { id, promised_ms }));
            }
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let amount = Amount::new(i64::MAX).unwrap();
        let states = [
            State::Done,
            State::Insufficient,
            State::Confirmed,
            State::Cancelled,
            State::Expired,
            State::Delivered,
            State::Returned,
            State::Held {
                amount,
                deadline_ms: 7,
            },
            State::Sent {
                amount,
                to: Account::new("a:b").unwrap(),
            },
            committed(None),
            committed(Some(id(9, "x:\0"))),
        ];
        for state in states {
            assert_eq!(state_of(&state_text(&state)), Some(state));
        }
        assert_eq!(state_of(b"Dx"), None);
    }
}
