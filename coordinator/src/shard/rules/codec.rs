//! The documents as text, for stores that keep them: JSON, which people can read.
//!
//! Every document is taken apart field by field: a field that is added to one and not kept here does not compile.

use std::{collections::BTreeSet, str::FromStr, time::Duration};

use ringfence_ring::Slot;
use serde::{Deserialize, Serialize};

use super::{
    end::End,
    head::{Armed, Head},
    import::{Import, Known},
    lock_state::{Entry, LockState},
    millis,
    queue::{Queue, Stay, Waiter},
    shares::Shares,
    sightings::Sightings,
    tokens::Tokens,
};
use crate::{
    clock::Instant,
    ids::{Epoch, Incarnation, Life, MapVersion, Nonce, Token},
    name::{Label, LockKey},
    shard::{LockKind, LockMode, Notification, QueuedGrant, Record, Ticket, slots::PACKED},
};

/// A document that is none of ours.
#[derive(Debug, thiserror::Error)]
#[error("not a document of this release: {0}")]
pub(crate) struct Malformed(String);

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// The arming to which a document of slots belongs. One of another arming says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Arming {
    pub(crate) life: Life,
    pub(crate) epoch: Epoch,
}

#[derive(Serialize, Deserialize)]
struct HeadText {
    life: Life,
    fence: Option<Incarnation>,
    copy: Option<(Incarnation, u64, String)>,
    epoch_seen: Epoch,
    armed: Option<ArmedText>,
}

#[derive(Serialize, Deserialize)]
struct ArmedText {
    epoch: Epoch,
    grace_until_ms: u64,
    grace_ms: u64,
    grace_from: Epoch,
    #[serde(default, skip_serializing_if = "Sightings::is_empty")]
    seen: Sightings,
    forced: Epoch,
    declared: MapVersion,
    quiet: Option<MapVersion>,
}

/// The head of `life`, without its tokens: the store counts them.
pub(crate) fn head_text(life: &Life, head: &Head) -> String {
    let Head {
        fence,
        copy,
        epoch_seen,
        armed,
    } = head.clone();
    let armed = armed.map(|armed| {
        let Armed {
            epoch,
            tokens: _,
            grace,
            grace_from,
            seen,
            forced,
            declared,
            quiet,
        } = armed;
        ArmedText {
            epoch,
            grace_until_ms: grace.at_ms,
            grace_ms: grace.length_ms,
            grace_from,
            seen,
            forced,
            declared,
            quiet,
        }
    });
    let life = life.clone();
    text(&HeadText {
        life,
        fence,
        copy,
        epoch_seen,
        armed,
    })
}

/// Reads a head; an empty one if it is that of another life. `last` is the last token that was made.
pub(crate) fn head(life: &Life, content: &str, last: Token) -> Result<Head, Malformed> {
    if content.is_empty() {
        return Ok(Head::default());
    }
    let head: HeadText = serde_json::from_str(content)?;
    if head.life != *life {
        return Ok(Head::default());
    }
    let armed = head.armed.map(|armed| Armed {
        epoch: armed.epoch,
        tokens: Tokens {
            epoch: last.epoch(),
            counter: last.counter(),
        },
        grace: End {
            at_ms: armed.grace_until_ms,
            length_ms: armed.grace_ms,
        },
        grace_from: armed.grace_from,
        seen: armed.seen,
        forced: armed.forced,
        declared: armed.declared,
        quiet: armed.quiet,
    });
    Ok(Head {
        fence: head.fence,
        copy: head.copy,
        epoch_seen: head.epoch_seen,
        armed,
    })
}

/// The packed states of some slots: the different ones, and the number of each slot's own. Few of many are different,
/// and the states of all slots have to fit into one commit.
pub(crate) fn states_text(arming: &Arming, packed: &[u8]) -> String {
    let different: BTreeSet<&[u8]> = packed.chunks(PACKED).collect();
    let different: Vec<&[u8]> = different.into_iter().collect();
    let digits = digits(different.len());
    let number = |state| different.binary_search(&state).expect("it is among them");
    let numbers = packed.chunks(PACKED).map(number);
    let numbers: String = numbers
        .map(|number| format!("{number:0digits$x}"))
        .collect();
    text(&(arming, hex(&different.concat()), numbers))
}

/// Reads packed states; `None` if they are of another arming.
pub(crate) fn states(arming: &Arming, content: &str) -> Result<Option<Vec<u8>>, Malformed> {
    if content.is_empty() {
        return Ok(None);
    }
    let (its, different, numbers): (Arming, String, String) = serde_json::from_str(content)?;
    if its != *arming {
        return Ok(None);
    }
    let different = bytes(&different)?;
    let different: Vec<&[u8]> = different.chunks(PACKED).collect();
    let state = |number: &[u8]| {
        let number = usize::from_str_radix(std::str::from_utf8(number).ok()?, 16).ok()?;
        different.get(number).copied()
    };
    let numbers = numbers.as_bytes().chunks(digits(different.len()));
    let states: Option<Vec<&[u8]>> = numbers.map(state).collect();
    let states = states.ok_or_else(|| Malformed("the number of a slot's state".into()))?;
    Ok(Some(states.concat()))
}

/// Hex digits that number so many states.
fn digits(states: usize) -> usize {
    match states {
        0..=0x10 => 1,
        0x11..=0x100 => 2,
        _ => 3,
    }
}

/// The import of a slot, which arrives since `epoch`.
pub(crate) fn import_text(arming: &Arming, epoch: Epoch, import: &Import) -> String {
    let Import {
        keys,
        complete,
        begun,
        admitted,
    } = import;
    let keys: Vec<_> = keys
        .iter()
        .map(|(key, known)| (hex(key.text()), *known == Known::Proven))
        .collect();
    text(&(arming, epoch, keys, complete, begun, admitted))
}

/// Reads an import; an empty one if it is of another arming or another move.
pub(crate) fn import(arming: &Arming, epoch: Epoch, content: &str) -> Result<Import, Malformed> {
    type Text = (Arming, Epoch, Vec<(String, bool)>, bool, bool, bool);
    if content.is_empty() {
        return Ok(Import::default());
    }
    let (its, its_epoch, keys, complete, begun, admitted): Text = serde_json::from_str(content)?;
    if its != *arming || its_epoch != epoch {
        return Ok(Import::default());
    }
    let known = |(text, proven): (String, bool)| {
        let known = if proven { Known::Proven } else { Known::Listed };
        Ok((key(&text)?, known))
    };
    Ok(Import {
        keys: keys
            .into_iter()
            .map(known)
            .collect::<Result<_, Malformed>>()?,
        complete,
        begun,
        admitted,
    })
}

#[derive(Serialize, Deserialize)]
struct LockText {
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<RecordText>,
    /// The letter of the kind, and the holders of shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<(char, Vec<RecordText>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueueText>,
    #[serde(default, skip_serializing_if = "Sightings::is_empty")]
    records_seen: Sightings,
    #[serde(default, skip_serializing_if = "Sightings::is_empty")]
    queue_seen: Sightings,
    #[serde(default, skip_serializing_if = "is_zero")]
    extensions: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize, Deserialize)]
struct RecordText {
    nonce: String,
    label: String,
    token: u64,
    tokens: u32,
    arm: Epoch,
    told: bool,
    shares: u32,
    expires_ms: u64,
    lease_ms: u64,
    since_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct QueueText {
    ends_ms: u64,
    keep_ms: u64,
    waiters: Vec<WaiterText>,
}

/// Nonce, label, mode, tokens, ticket, end, how long it was to last.
type WaiterText = (String, String, Option<ModeText>, u32, TicketText, u64, u64);

/// Sent, claim, callers.
type TicketText = (u64, u64, u32);

/// The letter of the kind, shares, capacity, and whether it is preferred. None: as most are. Thousands of waiters have to
/// fit into a document.
type ModeText = (char, u32, u32, bool);

/// A lock; empty if there is nothing to say.
pub(crate) fn lock_text(lock: &LockState) -> String {
    if lock.is_empty() {
        return String::new();
    }
    let LockState {
        record,
        shares,
        queue,
        records_seen,
        queue_seen,
        extensions,
    } = lock;
    let record = record.as_ref().map(record_text);
    let shares = shares.as_ref().map(|shares| {
        let entries = shares.entries().map(record_text);
        (char::from(shares.kind.letter()), entries.collect())
    });
    let queue = queue.as_ref().map(|queue| QueueText {
        ends_ms: queue.ends().at_ms,
        keep_ms: queue.ends().length_ms,
        waiters: queue.live(0).map(waiter_text).collect(),
    });
    text(&LockText {
        record,
        shares,
        queue,
        records_seen: records_seen.clone(),
        queue_seen: queue_seen.clone(),
        extensions: *extensions,
    })
}

fn record_text(entry: &Entry) -> RecordText {
    let Entry {
        record,
        shares,
        expires,
        since_ms,
    } = entry;
    let Record {
        nonce,
        label,
        token,
        tokens,
        arm,
        told,
    } = record;
    RecordText {
        nonce: nonce.to_string(),
        label: label.to_string(),
        token: token.get(),
        tokens: *tokens,
        arm: *arm,
        told: *told,
        shares: *shares,
        expires_ms: expires.at_ms,
        lease_ms: expires.length_ms,
        since_ms: *since_ms,
    }
}

fn waiter_text(waiter: &Waiter) -> WaiterText {
    let Waiter {
        nonce,
        label,
        mode,
        preferred,
        tokens,
        ticket,
        ends,
    } = waiter;
    let (nonce, label) = (nonce.to_string(), label.to_string());
    let Ticket {
        sent,
        claim,
        callers,
    } = *ticket;
    let ticket = (sent.as_nanos(), millis(claim), callers);
    let kind = char::from(mode.kind().letter());
    let is_usual = *mode == LockMode::Exclusive && !preferred;
    let mode = (!is_usual).then(|| (kind, mode.shares(), mode.capacity(), *preferred));
    let (ends_ms, keep_ms) = (ends.at_ms, ends.length_ms);
    (nonce, label, mode, *tokens, ticket, ends_ms, keep_ms)
}

/// Reads a lock.
pub(crate) fn lock(content: &str) -> Result<LockState, Malformed> {
    if content.is_empty() {
        return Ok(LockState::default());
    }
    let LockText {
        record,
        shares,
        queue,
        records_seen,
        queue_seen,
        extensions,
    } = serde_json::from_str(content)?;
    let shares = shares.map(|(letter, entries)| {
        let mut shares = Box::new(Shares::new(kind(letter)?));
        for its in entries {
            shares.write(entry(its)?);
        }
        Ok::<_, Malformed>(shares)
    });
    let queue = queue.map(|its: QueueText| {
        let waiters: Result<Vec<_>, Malformed> = its.waiters.into_iter().map(waiter).collect();
        let ends = End {
            at_ms: its.ends_ms,
            length_ms: its.keep_ms,
        };
        Ok::<_, Malformed>(Box::new(Queue::of(waiters?, ends)))
    });
    Ok(LockState {
        record: record.map(entry).transpose()?,
        shares: shares.transpose()?,
        queue: queue.transpose()?,
        records_seen,
        queue_seen,
        extensions,
    })
}

fn entry(its: RecordText) -> Result<Entry, Malformed> {
    Ok(Entry {
        record: Record {
            nonce: parsed(&its.nonce)?,
            label: Label::new(&its.label),
            token: Token::from_number(its.token),
            tokens: its.tokens,
            arm: its.arm,
            told: its.told,
        },
        shares: its.shares,
        expires: End {
            at_ms: its.expires_ms,
            length_ms: its.lease_ms,
        },
        since_ms: its.since_ms,
    })
}

fn kind(letter: char) -> Result<LockKind, Malformed> {
    let kind = u8::try_from(letter).ok().and_then(LockKind::of_letter);
    kind.ok_or_else(|| Malformed(format!("a lock of kind {letter:?}")))
}

fn waiter(
    (nonce, label, mode, tokens, (sent, claim, callers), at_ms, length_ms): WaiterText,
) -> Result<Waiter, Malformed> {
    let (mode, preferred) = match mode {
        None => (LockMode::Exclusive, false),
        Some((letter, count, capacity, preferred)) => {
            (LockMode::of(kind(letter)?, count, capacity), preferred)
        }
    };
    Ok(Waiter {
        nonce: parsed(&nonce)?,
        label: Label::new(&label),
        mode,
        preferred,
        tokens,
        ticket: Ticket {
            sent: Instant::from_nanos(sent),
            claim: Duration::from_millis(claim),
            callers,
        },
        ends: End { at_ms, length_ms },
    })
}

/// Sent, end, how long it was to last.
type StayText = (u64, u64, u64);

/// When a waiter asked again.
pub(crate) fn stay_text(Stay { sent, ends }: Stay) -> String {
    let its: StayText = (sent.as_nanos(), ends.at_ms, ends.length_ms);
    text(&its)
}

/// Reads a stay.
pub(crate) fn stay(content: &str) -> Result<Stay, Malformed> {
    let (sent, at_ms, length_ms): StayText = serde_json::from_str(content)?;
    Ok(Stay {
        sent: Instant::from_nanos(sent),
        ends: End { at_ms, length_ms },
    })
}

#[derive(Serialize, Deserialize)]
struct GrantText {
    token: u64,
    tokens: u32,
    claim_ms: u64,
    sent: u64,
    contended: bool,
}

/// A message to a client.
pub(crate) fn notification_text(notification: &Notification) -> String {
    let (key, nonce, grant) = match notification {
        Notification::Contended { key, nonce } => (key, nonce, None),
        Notification::Granted(QueuedGrant {
            key,
            nonce,
            token,
            tokens,
            claim,
            sent,
            contended,
        }) => {
            let grant = GrantText {
                token: token.get(),
                tokens: *tokens,
                claim_ms: millis(*claim),
                sent: sent.as_nanos(),
                contended: *contended,
            };
            (key, nonce, Some(grant))
        }
    };
    text(&(nonce.to_string(), hex(key.text()), grant))
}

/// Reads a message.
pub(crate) fn notification(content: &str) -> Result<Notification, Malformed> {
    let (nonce, text, grant): (String, String, Option<GrantText>) = serde_json::from_str(content)?;
    let (key, nonce): (_, Nonce) = (key(&text)?, parsed(&nonce)?);
    Ok(match grant {
        None => Notification::Contended { key, nonce },
        Some(grant) => Notification::Granted(QueuedGrant {
            key,
            nonce,
            token: Token::from_number(grant.token),
            tokens: grant.tokens,
            claim: Duration::from_millis(grant.claim_ms),
            sent: Instant::from_nanos(grant.sent),
            contended: grant.contended,
        }),
    })
}

/// Slots in one document of states: no more different ones than three digits number.
pub(crate) const SLOTS_TOGETHER: usize = 0x1000;

/// The number of the document with the state of `slot`.
pub(crate) fn states_of(slot: Slot) -> u32 {
    (slot.index() / SLOTS_TOGETHER) as u32
}

fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("it has no maps and no numbers that JSON lacks")
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("it is below 16");
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(digit).collect()
}

fn bytes(hex: &str) -> Result<Vec<u8>, Malformed> {
    let malformed = || Malformed(format!("hex digits {hex:?}"));
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(|pair| byte(pair).ok_or_else(malformed)).collect()
}

fn key(hex: &str) -> Result<LockKey, Malformed> {
    let parsed = LockKey::parse(&bytes(hex)?);
    parsed.ok_or_else(|| Malformed(format!("key {hex:?}")))
}

fn parsed<T: FromStr<Err = String>>(text: &str) -> Result<T, Malformed> {
    text.parse().map_err(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_were_written_however_many_are_different() {
        let arming = Arming {
            life: Life::new("life"),
            epoch: Epoch(7),
        };
        for different in [0, 1, 16, 17, 256, 257, SLOTS_TOGETHER as u32] {
            let state = |index: u32| [b'O', 0, 0, (index >> 8) as u8, index as u8];
            let indices =
                (0..SLOTS_TOGETHER as u32).filter_map(|index| index.checked_rem(different));
            let packed: Vec<u8> = indices.flat_map(state).collect();
            let text = states_text(&arming, &packed);
            assert_eq!(states(&arming, &text).unwrap(), Some(packed));
            let other = Arming {
                epoch: Epoch(8),
                ..arming.clone()
            };
            assert_eq!(states(&other, &text).unwrap(), None);
        }
        for damaged in [
            "[\"\",\"1\"]",
            "[\"4f00000001\",\"2\"]",
            "[\"4f00000001\",\"é\"]",
        ] {
            let arming = serde_json::to_string(&arming).unwrap();
            let text = damaged.replacen('[', &format!("[{arming},"), 1);
            assert!(states(&serde_json::from_str(&arming).unwrap(), &text).is_err());
        }
    }
}
