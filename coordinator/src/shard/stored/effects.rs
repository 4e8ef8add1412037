//! Effects as the scripts store them: `redis/lua/counter/segment/log.lua` has the form.

use ringfence_segment_lock::{
    Account, Amount, Reference, RequestId,
    segment::{Effect, EffectKind},
};

use super::texts::{credit_of, credit_text, ended_of, id_text, number_of, pair, push_ended};
use crate::name::push_decimal;

/// Stands before a reference.
const MARK: u8 = b'~';

/// The letter of an effect, and the text after its amount.
fn kind_text(kind: &EffectKind) -> (u8, Vec<u8>) {
    match kind {
        EffectKind::Deposited(id) => (b'+', id_text(id, "")),
        EffectKind::Deducted(id) => (b'-', id_text(id, "")),
        EffectKind::Reserved(id) => (b'H', id_text(id, "")),
        EffectKind::Confirmed(id) => (b'C', id_text(id, "")),
        EffectKind::Cancelled(id) => (b'X', id_text(id, "")),
        EffectKind::Expired(id) => (b'E', id_text(id, "")),
        EffectKind::Sent(id, to) => (b'S', id_text(id, to.as_str())),
        EffectKind::Delivered(id, to) => (b'V', id_text(id, to.as_str())),
        EffectKind::Returned(id, to) => (b'R', id_text(id, to.as_str())),
        EffectKind::Received(credit) => (b'<', credit_text(credit)),
        EffectKind::Lent { to, seq } => (b'O', format!("{to}:{seq}").into_bytes()),
        EffectKind::Landed { from, seq } => (b'I', format!("{from}:{seq}").into_bytes()),
    }
}

/// The inverse of [`kind_text`].
fn kind_of(letter: u8, text: &[u8]) -> Option<EffectKind> {
    let loan = || pair(text).and_then(|(of, seq)| Some((number_of(of)?, number_of(seq)?)));
    let transfer = |kind: fn(RequestId, Account) -> EffectKind| {
        let (id, to) = ended_of(text)?;
        let to = Account::new(std::str::from_utf8(to).ok()?).ok()?;
        Some(kind(id, to))
    };
    let change = |kind: fn(RequestId) -> EffectKind| Some(kind(ended_of(text)?.0));
    match letter {
        b'+' => change(EffectKind::Deposited),
        b'-' => change(EffectKind::Deducted),
        b'H' => change(EffectKind::Reserved),
        b'C' => change(EffectKind::Confirmed),
        b'X' => change(EffectKind::Cancelled),
        b'E' => change(EffectKind::Expired),
        b'S' => transfer(EffectKind::Sent),
        b'V' => transfer(EffectKind::Delivered),
        b'R' => transfer(EffectKind::Returned),
        b'<' => credit_of(text).map(EffectKind::Received),
        b'O' => loan().map(|(to, seq)| EffectKind::Lent { to, seq }),
        b'I' => loan().map(|(from, seq)| EffectKind::Landed { from, seq }),
        _ => None,
    }
}

/// Appends the effect of a deposit, or else of a deduction, as it stands in a chunk.
pub(crate) fn push_change(
    to: &mut Vec<u8>,
    is_deposit: bool,
    amount: Amount,
    (id, reference): (&RequestId, Option<Reference>),
) {
    let letter = if is_deposit { b'+' } else { b'-' };
    push_effect(to, (letter, amount, reference), |to| {
        push_ended(to, id, &[]);
    });
}

/// A reference as it stands in an effect; nothing without one.
pub(crate) fn reference_text(reference: Option<Reference>) -> Vec<u8> {
    reference.map_or_else(Vec::new, |Reference(bytes)| [&[MARK][..], &bytes].concat())
}

/// Appends an effect without its number, time and money.
fn push_effect(
    to: &mut Vec<u8>,
    (letter, amount, reference): (u8, Amount, Option<Reference>),
    text: impl FnOnce(&mut Vec<u8>),
) {
    let at = to.len();
    to.extend_from_slice(&[0, 0, letter]);
    push_decimal(to, amount.get().unsigned_abs());
    if let Some(Reference(bytes)) = reference {
        to.push(MARK);
        to.extend_from_slice(&bytes);
    }
    to.push(b':');
    text(to);
    let len = u16::try_from(to.len() - at - 2).expect("names are short");
    to[at..at + 2].copy_from_slice(&len.to_be_bytes());
}

/// A chunk of one effect.
pub fn chunk(effect: &Effect) -> Vec<u8> {
    let mut body = Vec::new();
    let (letter, text) = kind_text(&effect.kind);
    let head = (letter, effect.amount, effect.reference);
    push_effect(&mut body, head, |to| to.extend_from_slice(&text));
    let (value, held) = effect.kind.signs();
    let amount = effect.amount.get();
    let Effect { number, at_ms, .. } = effect;
    let (value, held) = (effect.value - value * amount, effect.held - held * amount);
    let head = format!("{} {number} 1 {at_ms} {value} {held}\n", body.len());
    [head.as_bytes(), &body].concat()
}

/// The effects of some chunks; `None` if they are malformed.
pub fn effects(mut chunks: &[u8]) -> Option<Vec<Effect>> {
    let mut found = Vec::new();
    while !chunks.is_empty() {
        let line = chunks.iter().position(|byte| *byte == b'\n')?;
        let (head, rest) = (
            std::str::from_utf8(&chunks[..line]).ok()?,
            &chunks[line + 1..],
        );
        let mut numbers = head.split(' ').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let (len, first, count, at_ms) = (next()?, next()?, next()?, next()?);
        let (value, held) = (i64::try_from(next()?).ok()?, i64::try_from(next()?).ok()?);
        let (mut body, behind) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        let mut last = (value, held);
        for number in first..first + count {
            let ((kind, amount, reference), rest) = read_effect(body)?;
            let signs = kind.signs();
            last = (
                last.0.checked_add(signs.0 * amount.get())?,
                last.1.checked_add(signs.1 * amount.get())?,
            );
            found.push(Effect {
                number,
                at_ms,
                kind,
                amount,
                value: last.0,
                held: last.1,
                reference,
            });
            body = rest;
        }
        chunks = behind;
    }
    Some(found)
}

/// What is in an effect without its number, time and money.
type Read = (EffectKind, Amount, Option<Reference>);

fn read_effect(body: &[u8]) -> Option<(Read, &[u8])> {
    let (len, body) = body.split_at_checked(2)?;
    let len = u16::from_be_bytes([len[0], len[1]]);
    let (effect, rest) = body.split_at_checked(usize::from(len))?;
    let (&letter, effect) = effect.split_first()?;
    let digits = effect.iter().take_while(|byte| byte.is_ascii_digit());
    let (amount, behind) = effect.split_at(digits.count());
    let (reference, behind) = match behind.strip_prefix(&[MARK]) {
        Some(behind) => {
            let (bytes, behind) = behind.split_first_chunk()?;
            (Some(Reference(*bytes)), behind)
        }
        None => (None, behind),
    };
    let text = behind.strip_prefix(b":")?;
    let amount: Amount = number_of(amount)?;
    Some(((kind_of(letter, text)?, amount, reference), rest))
}

#[cfg(test)]
mod tests {
    use ringfence_segment_lock::segment::CreditId;

    use super::*;

    #[test]
    fn an_effect_is_read_as_it_was_written() {
        let id = || RequestId::new(7, "order:\0 1\n").unwrap();
        let account = || Account::new("a:b\0c").unwrap();
        let credit = CreditId {
            id: id(),
            from: account(),
            reservation: Some(id()),
        };
        let kinds = [
            EffectKind::Deposited(id()),
            EffectKind::Reserved(id()),
            EffectKind::Confirmed(id()),
            EffectKind::Deducted(id()),
            EffectKind::Sent(id(), account()),
            EffectKind::Returned(id(), account()),
            EffectKind::Sent(id(), account()),
            EffectKind::Delivered(id(), account()),
            EffectKind::Reserved(id()),
            EffectKind::Cancelled(id()),
            EffectKind::Reserved(id()),
            EffectKind::Expired(id()),
            EffectKind::Received(credit),
            EffectKind::Lent { to: 3, seq: 9 },
            EffectKind::Landed { from: 3, seq: 9 },
        ];
        let (mut value, mut held, mut written) = (i64::MAX - 2, 0, Vec::new());
        let amount = Amount::new(1).unwrap();
        for (number, kind) in (1..).zip(kinds) {
            let signs = kind.signs();
            (value, held) = (value + signs.0, held + signs.1);
            written.push(Effect {
                number,
                at_ms: 5,
                kind,
                amount,
                value,
                held,
                // Any bytes, also those that stand for something here.
                reference: (number % 2 == 0).then_some(Reference(*b":~+1:\0\n~0123456:")),
            });
        }
        let chunks: Vec<u8> = written.iter().flat_map(chunk).collect();
        assert_eq!(effects(&chunks), Some(written));
        assert_eq!(effects(&chunks[..chunks.len() - 1]), None);
    }
}
