//! The whole shard, apart from its locks and counters: read, and changed by a rule.
//!
//! What is stored has the form that the scripts of locks and counters read. It comes with a stamp, and a commit is done
//! only if the stamp is still the same.

use ::redis::Value;
use ringfence_ring::Slot;

use super::{
    answers::{integers, text, unexpected},
    connection::Keys,
    counters,
    link::RedisLink,
    migration::packed,
    scripts,
};
use crate::{
    ids::{Epoch, MapVersion, Token},
    shard::{
        Counters, Mode, ShardError,
        docs::COMMIT_WITHIN,
        rules::{Armed, End, Head, Import, Sightings, Slots, Tokens, millis},
        slots::PACKED,
        whole::{Affiliation, ChangeWhole, Needs, OfCounters, Whole},
    },
};

/// Attempts at a change before it is given up. Each one that fails means that another change was done.
const ATTEMPTS: u32 = 64;

/// Words in one command: a script takes no more from its arguments at once.
const WORDS_MAX: usize = 1_000;

/// Slots that are written one by one. More are written with all others.
const RANGES_MAX: usize = 256;

/// The texts of [`scripts::READ`], after its numbers.
const TEXTS: usize = 13;

/// What was read last, and its stamp.
#[derive(Debug)]
pub(super) struct Known {
    has_slots: bool,
    stamp: String,
    whole: Whole,
}

/// The whole shard at a time.
struct Read {
    now_ms: u64,
    whole: Whole,
    stamp: String,
}

/// What a commit writes.
#[derive(Debug, Default)]
struct Changes {
    commands: Vec<Vec<Vec<u8>>>,
    /// Something of the life is among them.
    is_of_life: bool,
    /// States of slots are among them.
    has_slots: bool,
    /// The last token, if it rises.
    token: Option<Token>,
    quiet: Option<MapVersion>,
    announcement: Option<String>,
    counters: OfCounters,
    needs_memory: bool,
}

impl ChangeWhole for RedisLink {
    async fn change<T: Send>(
        &mut self,
        needs: Needs<'_>,
        rule: impl Fn(&mut Whole, u64) -> Result<T, ShardError> + Send + Sync,
    ) -> Result<T, ShardError> {
        for _ in 0..ATTEMPTS {
            let Read {
                now_ms,
                mut whole,
                stamp,
            } = self.read_whole(needs).await?;
            let before = whole.clone();
            whole.head.limit_grace(now_ms, 0);
            let result = rule(&mut whole, now_ms);
            let changes = Changes::of(&self.connection.keys, &before, whole);
            if changes.is_empty() || self.commit_whole(now_ms, &stamp, changes).await? {
                return result;
            }
        }
        Err(ShardError::Unreachable {
            reason: format!("others changed the whole shard {ATTEMPTS} times"),
        })
    }

    async fn last_token(&mut self) -> Result<Token, ShardError> {
        let whole = self.read_whole(Needs::Head).await?.whole;
        Ok(whole.head.armed()?.tokens.last())
    }
}

impl RedisLink {
    async fn read_whole(&mut self, needs: Needs<'_>) -> Result<Read, ShardError> {
        let what = scripts::READ.name;
        let known = self.known.take();
        let known = known.filter(|known| known.has_slots || !has_slots(needs));
        let keys = &self.connection.keys;
        let mut command = self.connection.server.call(&scripts::READ, WHOLE_KEYS);
        command
            .arg(&whole_keys(keys))
            .arg(&self.connection.server.replid)
            .arg(u8::from(has_slots(needs)))
            .arg(known.as_ref().map_or("", |known| &known.stamp))
            .arg(u8::from(matches!(needs, Needs::All)));
        let parts = self.control(what, &command).await?;
        let [now_ms, te, ctr] = integers(what, &parts)?;
        let [_, _, _, Value::Int(up_ms), stamp, texts @ ..] = &parts[..] else {
            return Err(unexpected(what, &Value::Array(parts)));
        };
        let mut known = match (known, texts.is_empty()) {
            (Some(known), true) => known,
            _ => Known {
                has_slots: has_slots(needs),
                stamp: text(stamp),
                whole: whole(texts)?,
            },
        };
        if let Some(armed) = &mut known.whole.head.armed {
            armed.tokens.counter = ctr;
        }
        known.whole.head.see_epoch(Epoch(te));
        let read = Read {
            now_ms,
            whole: Whole {
                up_ms: u64::try_from(*up_ms).ok(),
                ..known.whole.clone()
            },
            stamp: known.stamp.clone(),
        };
        self.known = Some(known);
        Ok(read)
    }

    /// Returns whether it was done.
    async fn commit_whole(
        &mut self,
        now_ms: u64,
        stamp: &str,
        changes: Changes,
    ) -> Result<bool, ShardError> {
        self.known = None;
        let (made, is_synced) = match changes.counters {
            OfCounters::Armed(Counters::Never) => ("never", self.is_synced().await?),
            OfCounters::Armed(Counters::Kept) => ("kept", false),
            OfCounters::Armed(Counters::Lost) => ("lost", false),
            _ => ("", false),
        };
        let keys = &self.connection.keys;
        let asides = match &changes.counters {
            OfCounters::Leaving(slots) => (format!("{}:aside:", keys.prefix), packed(slots)),
            _ => Default::default(),
        };
        let server = &self.connection.server;
        let script = match changes.needs_memory {
            true => &scripts::CLAIM,
            false => &scripts::COMMIT,
        };
        let mut command = server.call(script, WHOLE_KEYS);
        command
            .arg(&whole_keys(keys))
            .arg(&server.replid)
            .arg(match changes.is_of_life {
                true => server.life.as_str(),
                false => "",
            })
            .arg(u8::from(changes.has_slots))
            .arg(stamp)
            .arg(now_ms + millis(COMMIT_WITHIN))
            .arg(&keys.life_family);
        match changes.token {
            Some(token) => command.arg(token.epoch().0).arg(token.counter()),
            None => command.arg("").arg(""),
        };
        command
            .arg(
                changes
                    .quiet
                    .map_or_else(String::new, |map| map.0.to_string()),
            )
            .arg(changes.announcement.unwrap_or_default())
            .arg(asides.0)
            .arg(asides.1)
            .arg(made)
            .arg(counters::origin(&self.connection, is_synced));
        for words in &changes.commands {
            command.arg(words.len()).arg(words);
        }
        let parts = self.control(script.name, &command).await?;
        let [done] = integers(script.name, &parts)?;
        Ok(done == 1)
    }
}

/// Whether the states of slots are read.
fn has_slots(needs: Needs<'_>) -> bool {
    match needs {
        Needs::Head | Needs::Topology([]) => false,
        Needs::Topology(_) | Needs::All | Needs::States(_) | Needs::Moves(_) => true,
    }
}

/// How many keys there are.
const WHOLE_KEYS: usize = 12;

/// The keys, in the order of lua/shared/whole.lua.
fn whole_keys(keys: &Keys) -> [&str; WHOLE_KEYS] {
    [
        &keys.state,
        &keys.ctr,
        &keys.slots,
        &keys.quiet,
        &keys.fence,
        &keys.copy,
        &keys.pointer,
        &keys.topology,
        &keys.lives,
        &keys.lineage,
        &keys.complete,
        &keys.queues,
    ]
}

/// Reads the texts of [`scripts::READ`].
fn whole(texts: &[Value]) -> Result<Whole, ShardError> {
    if texts.len() != TEXTS {
        return Err(unexpected(
            scripts::READ.name,
            &Value::Array(texts.to_vec()),
        ));
    }
    let bytes = |at: usize| match &texts[at] {
        Value::BulkString(bytes) => Some(&bytes[..]),
        _ => None,
    };
    let text = |at: usize| bytes(at).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let number = |at: usize| -> Result<Option<u64>, ShardError> {
        let number = text(at).map(|text| text.parse().map_err(|_| malformed(&text)));
        number.transpose()
    };
    let field = |at: usize| Ok(number(at)?.unwrap_or(0));
    let quiet = text(7);
    let quiet = quiet
        .as_deref()
        .and_then(|mark| mark.split('|').next()?.parse().ok());
    let armed = match number(0)? {
        None => None,
        Some(epoch) => Some(Armed {
            epoch: Epoch(epoch),
            tokens: Tokens {
                epoch: Epoch(field(1)?),
                counter: 0,
            },
            grace: End {
                at_ms: field(2)?,
                length_ms: field(3)?,
            },
            grace_from: Epoch(field(4)?),
            seen: Sightings::default(),
            forced: Epoch(field(5)?),
            declared: MapVersion(field(6)?),
            quiet: quiet.map(MapVersion),
        }),
    };
    let fence = text(8).map(|text| text.parse().map_err(|_| malformed(&text)));
    let copy = text(9).map(|text| copy(&text).ok_or_else(|| malformed(&text)));
    let mut head = Head {
        fence: fence.transpose()?,
        copy: copy.transpose()?,
        epoch_seen: Epoch::default(),
        armed,
    };
    head.see_epoch(Epoch(field(0)?.max(field(1)?)));
    Ok(Whole {
        head,
        slots: bytes(12).map_or_else(Slots::default, slots),
        affiliation: Affiliation {
            pointer: text(10),
            record: text(11),
        },
        ..Whole::default()
    })
}

/// Reads a copy: `n version record`.
fn copy(text: &str) -> Option<(crate::ids::Incarnation, u64, String)> {
    let mut words = text.splitn(3, ' ');
    let (n, version) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((n, version, words.next()?.to_owned()))
}

fn malformed(text: &str) -> ShardError {
    let text: String = text.chars().take(80).collect();
    ShardError::Unusable {
        reason: format!("not what this release stores: {text:?}"),
    }
}

/// Reads the states of slots. A slot that comes here is `I` until a mover has said which tokens its former shard made,
/// then `B`, and `A` once all of its counters are here.
fn slots(bytes: &[u8]) -> Slots {
    let (mut bytes, mut arriving) = (bytes.to_vec(), Vec::new());
    for (slot, state) in bytes.chunks_exact_mut(PACKED).enumerate() {
        let admitted = state[0] == b'A';
        if (admitted || state[0] == b'B')
            && let Ok(slot) = Slot::new(slot as u32)
        {
            state[0] = Mode::Import.letter();
            arriving.push((slot, admitted));
        }
    }
    let mut slots = Slots::default();
    slots.put(0, &bytes);
    for (slot, admitted) in arriving {
        slots.put_import(slot, Import::begun(admitted));
    }
    slots
}

/// As [`slots`] reads them.
fn stored(slots: &Slots) -> Vec<u8> {
    let mut bytes = slots.as_bytes().to_vec();
    for (slot, import) in slots.imports() {
        let letter = bytes.get_mut(slot.index() * PACKED);
        if let Some(letter) = letter.filter(|letter| **letter == Mode::Import.letter()) {
            match import {
                Import { admitted: true, .. } => *letter = b'A',
                Import { begun: true, .. } => *letter = b'B',
                _ => {}
            }
        }
    }
    bytes
}

impl Changes {
    /// From `before` to `after`.
    fn of(keys: &Keys, before: &Whole, after: Whole) -> Self {
        let mut changes = Self::default();
        changes.head(keys, &before.head, &after.head);
        if after.head.armed.is_some() {
            changes.slots(keys, before, &after);
        }
        changes.is_of_life = !changes.is_empty();
        let Affiliation { pointer, record } = &after.affiliation;
        changes.text(&keys.pointer, &before.affiliation.pointer, pointer);
        changes.text(&keys.topology, &before.affiliation.record, record);
        if before.affiliation.record != *record {
            changes.announcement = after.affiliation.announcement();
        }
        if after.counters == OfCounters::Incomplete {
            changes.run([&b"UNLINK"[..], keys.complete.as_bytes()]);
        }
        changes.counters = after.counters;
        changes.needs_memory = after.needs_memory;
        changes
    }

    fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.token.is_none() && self.quiet.is_none()
    }

    fn run<'a>(&mut self, words: impl IntoIterator<Item = &'a [u8]>) {
        let words = words.into_iter().map(<[u8]>::to_vec);
        self.commands.push(words.collect());
    }

    fn text(&mut self, key: &str, before: &Option<String>, after: &Option<String>) {
        match after {
            _ if before == after => {}
            Some(text) => self.run(["SET", key, text].map(str::as_bytes)),
            None => self.run(["UNLINK", key].map(str::as_bytes)),
        }
    }

    fn head(&mut self, keys: &Keys, before: &Head, after: &Head) {
        let fence = |head: &Head| head.fence.map(|fence| fence.to_string());
        self.text(&keys.fence, &fence(before), &fence(after));
        let copy = |head: &Head| {
            let copy = head.copy.as_ref();
            copy.map(|(n, version, record)| format!("{n} {version} {record}"))
        };
        self.text(&keys.copy, &copy(before), &copy(after));
        match (&before.armed, &after.armed) {
            (_, Some(armed)) => self.armed(keys, before.armed.as_ref(), armed),
            (Some(_), None) => self.run(
                [
                    "UNLINK",
                    &keys.state,
                    &keys.slots,
                    &keys.ctr,
                    &keys.quiet,
                    &keys.queues,
                    &keys.lineage,
                    &keys.complete,
                ]
                .map(str::as_bytes),
            ),
            (None, None) => {}
        }
    }

    fn armed(&mut self, keys: &Keys, before: Option<&Armed>, after: &Armed) {
        let fields = before.map(fields);
        if fields.as_ref() != Some(&self::fields(after)) {
            let fields = self::fields(after);
            let words = fields.iter().flat_map(|(name, value)| [*name, value]);
            let words: Vec<&str> = ["HSET", &keys.state].into_iter().chain(words).collect();
            self.run(words.into_iter().map(str::as_bytes));
        }
        let last = after.tokens.last();
        if before.is_none() {
            let te = last.epoch().0.to_string();
            self.run(["HSET", &keys.state, "te", &te].map(str::as_bytes));
            self.run(["SET", &keys.ctr, "0"].map(str::as_bytes));
        }
        let rises = before.is_none_or(|before| before.tokens.last() < last);
        self.token = rises.then_some(last);
        let quiet = before.and_then(|before| before.quiet);
        if quiet != after.quiet {
            self.quiet = after.quiet;
            if after.quiet.is_none() {
                self.run(["UNLINK", &keys.quiet].map(str::as_bytes));
            }
        }
    }

    fn slots(&mut self, keys: &Keys, before: &Whole, after: &Whole) {
        let (was, is) = (stored(&before.slots), stored(&after.slots));
        let differ = |at: &usize| was.get(*at..*at + PACKED) != is.get(*at..*at + PACKED);
        let all = (0..was.len().max(is.len())).step_by(PACKED);
        let changed: Vec<usize> = all.clone().filter(differ).collect();
        let slots = keys.slots.as_bytes();
        self.has_slots = !changed.is_empty();
        if changed.len() > RANGES_MAX || was.len() != is.len() {
            self.run([&b"SET"[..], slots, &is]);
        } else {
            for at in &changed {
                let (offset, state) = (at.to_string(), &is[*at..*at + PACKED]);
                self.run([&b"SETRANGE"[..], slots, offset.as_bytes(), state]);
            }
        }
        let epoch = |whole: &Whole| whole.head.armed.as_ref().map(|armed| armed.epoch);
        let armed_anew = epoch(before) != epoch(after);
        let epoch_at =
            |states: &[u8], at: usize| states.get(at + 1..at + PACKED).map(<[u8]>::to_vec);
        // An arriving slot whose letter alone changes still arrives by the same move.
        let arrives =
            |states: &[u8], at: usize| states.get(at).is_some_and(|letter| b"IBA".contains(letter));
        for at in all.filter(|at| arrives(&was, *at)) {
            let goes_on = arrives(&is, at) && epoch_at(&was, at) == epoch_at(&is, at);
            if armed_anew || !goes_on {
                let import = keys.import(at / PACKED);
                self.run(["UNLINK", &import].map(str::as_bytes));
            }
        }
        for (slot, import) in after.slots.imports() {
            self.notes(keys, slot, import);
        }
    }

    /// Adds to what is known of the keys of a slot that comes here.
    fn notes(&mut self, keys: &Keys, slot: Slot, import: &Import) {
        let listed = import.listed();
        let listed = listed.map(|key| [b"k", &keys.record(key)[..]].concat());
        let complete = import.complete.then(|| b"*".to_vec());
        let notes: Vec<Vec<u8>> = listed.chain(complete).collect();
        let import = keys.import(slot.index());
        for some in notes.chunks(WORDS_MAX) {
            let words = [&b"SADD"[..], import.as_bytes()];
            self.run(words.into_iter().chain(some.iter().map(Vec::as_slice)));
        }
    }
}

/// The fields of the state, without that of the last token.
fn fields(armed: &Armed) -> [(&'static str, String); 6] {
    [
        ("arm", armed.epoch.0),
        ("grace", armed.grace.at_ms),
        ("grace_ms", armed.grace.length_ms),
        ("grace_from", armed.grace_from.0),
        ("forced", armed.forced.0),
        ("declared", armed.declared.0),
    ]
    .map(|(name, number)| (name, number.to_string()))
}
