//! A segment as its parts.

use ringfence_segment_lock::{
    Durability, HashKey, Terms,
    segment::{CreditState, Entry, Final, Log, Segment, State},
};

use super::{
    DUE, IDS, INN, LOG, OPEN, ORDER, OUT, PINNED, SEGMENT, SENT, Stored,
    effects::chunk,
    place,
    texts::{
        KEY_LEN, caller_text, content_bytes, credit_key, durability_text, id_key, limits_text,
        open_text, pieces, pinned_text, state_text,
    },
};

impl Stored {
    /// `segment`, as written by `origin`, with hashes of ids by `hash_key`. It has no blocks. Each element of its order is one record, without times,
    /// and each chunk of its log has one effect.
    pub fn from_segment(segment: &Segment, hash_key: HashKey, origin: &str) -> Self {
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
        stored.put_answers(segment, hash_key);
        for (deadline_ms, id) in &segment.due {
            stored.put(DUE, open_text(hash_key, id), deadline_ms.to_string());
        }
        for id in &segment.sent {
            stored.put(SENT, open_text(hash_key, id), "0");
        }
        for id in &segment.pinned {
            stored.put(PINNED, pinned_text(hash_key, id), "0");
        }
        for (nth, effect) in segment.log.effects.iter().enumerate() {
            stored.put(LOG, place(nth), chunk(effect));
        }
        stored
    }

    fn put_answers(&mut self, segment: &Segment, hash_key: HashKey) {
        for (id, entry) in &segment.ids {
            let part = if entry.state.is_final() { IDS } else { OPEN };
            self.put(part, id_key(hash_key, id), value_of(entry));
        }
        for (id, credit) in &segment.credits {
            let (part, state) = match credit.state {
                CreditState::Promised { amount, at_ms } => {
                    (OPEN, format!("Q{}:{at_ms}", amount.get()))
                }
                CreditState::Pinned => (OPEN, "P".to_owned()),
                CreditState::Forgettable => (IDS, "F".to_owned()),
                CreditState::Refused => (IDS, "N".to_owned()),
            };
            let value = [&content_bytes(credit.content)[..], state.as_bytes()].concat();
            self.put(part, credit_key(hash_key, id), value);
        }
        for (nth, id) in segment.order.iter().enumerate() {
            let key = key_of(hash_key, id);
            let value = self.0[IDS.name][&key[..]].clone();
            self.put(ORDER, place(nth), [&key[..], &value].concat());
        }
    }

    fn put_numbers(&mut self, segment: &Segment) {
        let terms = segment.terms;
        let remembered = segment.ids.len() + segment.credits.len();
        let newest = segment.order.len();
        let numbers = [
            ("value", segment.value.unsigned_abs()),
            ("held", segment.held.unsigned_abs()),
            ("promised", segment.promised.unsigned_abs()),
            ("version", segment.version),
            ("generation", segment.generation),
            ("base", segment.base),
            ("cut", segment.cut_ms),
            ("mark", segment.mark_ms),
            ("lost", segment.lost_ms),
            ("newest", segment.newest_ms),
            ("newest_count", newest as u64),
            ("packed_count", 0),
            ("open", (remembered - newest) as u64),
            ("oldest", segment.order.front().map_or(0, Final::time_ms)),
            ("packed", 0),
            ("losses", segment.losses),
            ("doubtful", u64::from(segment.doubtful)),
            ("awaits_versions", u64::from(segment.awaits_versions)),
            ("closed", u64::from(segment.closed)),
        ];
        let there = numbers.into_iter();
        let there = there.filter(|(name, number)| is_always_said(name) || *number > 0);
        for (name, number) in there {
            self.put(SEGMENT, name, number.to_string());
        }
        if terms.effects_max > 0 {
            let Log {
                last,
                at_ms,
                effects,
            } = &segment.log;
            let (most, keep_ms, newest) = (terms.effects_max, terms.effects_for_ms, effects.len());
            let log = format!("{most} {keep_ms} {last} {at_ms} {newest} 0");
            self.put(SEGMENT, "log", log);
        }
        if let Some(terms) = terms_text(&terms) {
            self.put(SEGMENT, "terms", terms);
        }
        let frozen = segment.frozen.map_or_else(Vec::new, |frozen| {
            let until = format!("{} ", frozen.until_ms);
            [until.as_bytes(), &caller_text(frozen.caller)].concat()
        });
        self.put(SEGMENT, "frozen", frozen);
        for (field, piece) in pieces("manifest", segment.manifest.as_bytes()) {
            self.put(SEGMENT, field, piece);
        }
    }
}

/// The terms but for the log, without what is usual; `None` if all is. `lua/counter/segment/load.lua` has the form.
fn terms_text(terms: &Terms) -> Option<String> {
    let numbers = |terms: &Terms| {
        [
            terms.idempotency_for_ms,
            terms.idempotency_at_least_ms,
            terms.skew_ms,
            terms.ids_max as u64,
        ]
    };
    let both = numbers(terms).into_iter().zip(numbers(&Terms::in_memory()));
    let said = |(number, usual): (u64, u64)| match number == usual {
        true => String::new(),
        false => number.to_string(),
    };
    let mut words: Vec<String> = both.map(said).collect();
    words.push(match terms.durability {
        Durability::Memory => String::new(),
        durability => durability_text(durability),
    });
    words.push(limits_text(terms).unwrap_or_default());
    let is_usual = words.iter().all(String::is_empty);
    (!is_usual).then(|| words.join(" "))
}

/// Whether a field of a segment is there although it is 0 or empty: stamps leave most of these out.
pub fn is_always_said(name: &str) -> bool {
    ["value", "version", "losses", "doubtful", "frozen"].contains(&name)
}

fn key_of(hash_key: HashKey, id: &Final) -> [u8; KEY_LEN] {
    match id {
        Final::Request(id) => id_key(hash_key, id),
        Final::Credit(id) => credit_key(hash_key, id),
    }
}

fn value_of(entry: &Entry) -> Vec<u8> {
    match (entry.content, &entry.state) {
        (None, State::Cancelled) => [&content_bytes(0)[..], b"Y"].concat(),
        (content, state) => {
            let content = content_bytes(content.unwrap_or_default());
            [&content[..], &state_text(state)].concat()
        }
    }
}
