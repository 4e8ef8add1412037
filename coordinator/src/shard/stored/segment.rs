//! A segment as its parts, and back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ringfence_segment_lock::{
    Terms,
    segment::{Credit, CreditState, Entry, Frozen, Segment},
};

use super::{
    CREDIT_ORDER, CREDITS, DUE, IDS, INN, ORDER, OUT, PINNED, Part, SEGMENT, SENT, Stored, place,
    texts::{
        caller_of, caller_text, channel_of, content_of, content_text, credit_of, credit_text,
        durability_of, durability_text, id_of, id_text, number_of, state_of, state_text,
    },
};

/// Stands for the content of a reservation that was cancelled before it came.
const NO_CONTENT: [u8; 16] = *b"----------------";

impl Stored {
    /// `segment`, as written by `origin`.
    pub fn from_segment(segment: &Segment, origin: &str) -> Self {
        let mut stored = Self::default();
        stored.put_numbers(segment);
        stored.put(SEGMENT, "origin", origin);
        for (to, channel) in &segment.out {
            let value = format!("{}:{}", channel.seq, channel.amount);
            stored.put(OUT, to.to_string(), value);
        }
        for (from, seq) in &segment.inn {
            stored.put(INN, from.to_string(), seq.to_string());
        }
        for (id, entry) in &segment.ids {
            let content = entry.content.map_or(NO_CONTENT, content_text);
            let value = [&content[..], &state_text(&entry.state)].concat();
            stored.put(IDS, id_text(id), value);
        }
        for (id, credit) in &segment.credits {
            let value = [&content_text(credit.content)[..], &[letter(credit.state)]].concat();
            stored.put(CREDITS, credit_text(id), value);
        }
        for (nth, id) in segment.order.iter().enumerate() {
            stored.put(ORDER, place(nth), id_text(id));
        }
        for (nth, id) in segment.credit_order.iter().enumerate() {
            stored.put(CREDIT_ORDER, place(nth), credit_text(id));
        }
        for (deadline_ms, id) in &segment.due {
            stored.put(DUE, id_text(id), deadline_ms.to_string());
        }
        for id in &segment.sent {
            stored.put(SENT, id_text(id), "0");
        }
        for id in &segment.pinned {
            stored.put(PINNED, credit_text(id), "0");
        }
        stored
    }

    fn put_numbers(&mut self, segment: &Segment) {
        let terms = segment.terms;
        let numbers = [
            ("value", segment.value.unsigned_abs()),
            ("held", segment.held.unsigned_abs()),
            ("version", segment.version),
            ("generation", segment.generation),
            ("base", segment.base),
            ("cut", segment.cut_ms),
            ("mark", segment.mark_ms),
            ("newest", segment.newest_ms),
            ("window", terms.idempotency_for_ms),
            ("skew", terms.skew_ms),
            ("ids_max", terms.ids_max as u64),
            ("losses", segment.losses),
            ("doubtful", u64::from(segment.doubtful)),
            ("closed", u64::from(segment.closed)),
        ];
        for (name, number) in numbers {
            self.put(SEGMENT, name, number.to_string());
        }
        self.put(SEGMENT, "durability", durability_text(terms.durability));
        let frozen = segment.frozen.map_or_else(Vec::new, |frozen| {
            let until = format!("{} ", frozen.until_ms);
            [until.as_bytes(), &caller_text(frozen.caller)].concat()
        });
        self.put(SEGMENT, "frozen", frozen);
        self.put(SEGMENT, "head", segment.head.as_bytes());
    }

    /// The segment; `None` if there is none, or it is malformed.
    pub fn to_segment(&self) -> Option<Segment> {
        let terms = Terms {
            idempotency_for_ms: self.number("window")?,
            skew_ms: self.number("skew")?,
            ids_max: self.number("ids_max")?,
            durability: durability_of(self.value(SEGMENT, "durability")?)?,
        };
        Some(Segment {
            terms,
            value: self.number("value")?,
            held: self.number("held")?,
            version: self.number("version")?,
            out: self.map(OUT, number_of, channel_of)?,
            inn: self.map(INN, number_of, number_of)?,
            generation: self.number("generation")?,
            base: self.number("base")?,
            cut_ms: self.number("cut")?,
            mark_ms: self.number("mark")?,
            newest_ms: self.number("newest")?,
            ids: self.map(IDS, id_of, entry_of)?,
            credits: self.map(CREDITS, credit_of, credit_entry_of)?,
            order: self.list(ORDER, id_of)?,
            credit_order: self.list(CREDIT_ORDER, credit_of)?,
            due: self
                .map(DUE, id_of, number_of)?
                .into_iter()
                .map(|(id, at)| (at, id))
                .collect(),
            sent: self.set(SENT, id_of)?,
            pinned: self.set(PINNED, credit_of)?,
            frozen: frozen_of(self.value(SEGMENT, "frozen")?)?,
            doubtful: self.number::<u8>("doubtful")? == 1,
            losses: self.number("losses")?,
            closed: self.number::<u8>("closed")? == 1,
            head: std::str::from_utf8(self.value(SEGMENT, "head")?)
                .ok()?
                .into(),
        })
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        number_of(self.value(SEGMENT, name)?)
    }

    fn map<K: Ord, V>(
        &self,
        part: Part,
        key: impl Fn(&[u8]) -> Option<K>,
        value: impl Fn(&[u8]) -> Option<V>,
    ) -> Option<BTreeMap<K, V>> {
        let fields = self.part(part);
        fields
            .map(|(field, found)| Some((key(field)?, value(found)?)))
            .collect()
    }

    fn list<T>(&self, part: Part, read: impl Fn(&[u8]) -> Option<T>) -> Option<VecDeque<T>> {
        self.part(part).map(|(_, value)| read(value)).collect()
    }

    fn set<T: Ord>(&self, part: Part, read: impl Fn(&[u8]) -> Option<T>) -> Option<BTreeSet<T>> {
        self.part(part).map(|(member, _)| read(member)).collect()
    }
}

/// `until caller`, or nothing.
fn frozen_of(text: &[u8]) -> Option<Option<Frozen>> {
    if text.is_empty() {
        return Some(None);
    }
    let space = text.iter().position(|byte| *byte == b' ')?;
    Some(Some(Frozen {
        caller: caller_of(&text[space + 1..])?,
        until_ms: number_of(&text[..space])?,
    }))
}

fn entry_of(text: &[u8]) -> Option<Entry> {
    let (content, state) = text.split_at_checked(NO_CONTENT.len())?;
    let content = match content == NO_CONTENT {
        true => None,
        false => Some(content_of(content)?),
    };
    let state = state_of(state)?;
    Some(Entry { content, state })
}

fn credit_entry_of(text: &[u8]) -> Option<Credit> {
    let (content, state) = text.split_at_checked(NO_CONTENT.len())?;
    let state = match state {
        b"P" => CreditState::Pinned,
        b"F" => CreditState::Forgettable,
        b"N" => CreditState::Refused,
        _ => return None,
    };
    let content = content_of(content)?;
    Some(Credit { content, state })
}

fn letter(state: CreditState) -> u8 {
    match state {
        CreditState::Pinned => b'P',
        CreditState::Forgettable => b'F',
        CreditState::Refused => b'N',
    }
}
