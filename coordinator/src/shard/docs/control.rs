//! Rare requests to the whole shard, and looks at its locks.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_ring::Slot;

use super::{
    attempt::{ATTEMPTS, Changes, Desk, Read, overtaken},
    locks::Locks,
    store::{Name, TokenChange},
    view::View,
};
use crate::{
    ids::Token,
    limits::{COUNTED_MAX, LIST_PAGE},
    name::LockKey,
    shard::{
        Cursor, Inspection, List, LockPage, ShardError,
        rules::{self, ToRead},
        whole::{ChangeWhole, Needs, Whole},
    },
};

impl ChangeWhole for Desk {
    async fn change<T: Send>(
        &mut self,
        needs: Needs<'_>,
        rule: impl Fn(&mut Whole, u64) -> Result<T, ShardError> + Send + Sync,
    ) -> Result<T, ShardError> {
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            self.view = View::default();
            let (read, is_snapshot) = self.read_whole(needs).await?;
            self.view.put_token(read.drawn.start);
            let (before, imports) = (self.view.clone(), self.view.imports(&read.names));
            let whole = &mut self.view.whole;
            whole.head.limit_grace(read.now_ms, whole.slack_ms);
            let result = rule(whole, read.now_ms);
            let life = self.session.life();
            let mut writes = self.view.changed_states(life, &before, &read.names);
            writes.extend(self.view.changed_imports(life, &imports, read.now_ms));
            let affiliation = &self.view.whole.affiliation;
            let changes = Changes {
                writes,
                tokens: token_change(before.token(), self.view.token()),
                notifications: Vec::new(),
                announcement: match *affiliation == before.whole.affiliation {
                    true => None,
                    false => affiliation.announcement(),
                },
            };
            // One read is one moment.
            let is_answered = is_snapshot && changes.is_empty();
            if is_answered || self.commit(&read, changes).await?.is_done() {
                return result;
            }
        }
        Err(overtaken())
    }

    async fn last_token(&mut self) -> Result<Token, ShardError> {
        Ok(self.session.read(&[], None).await?.last)
    }
}

/// The documents that a rule needs.
fn names_of(view: &View, needs: Needs<'_>) -> BTreeSet<Name> {
    match needs {
        Needs::Head => BTreeSet::new(),
        Needs::Topology(slots) => states_of(slots).chain([Name::Topology]).collect(),
        // An arming replaces what there is of the slots.
        Needs::All => BTreeSet::from([Name::Topology]),
        Needs::States(slots) => states(view, slots),
        Needs::Moves(slots) => {
            let imports = slots.iter().map(|slot| Name::Import(*slot));
            states_of(slots).chain(imports).collect()
        }
    }
}

fn states_of(slots: &[Slot]) -> impl Iterator<Item = Name> {
    let numbers = slots.iter().map(|slot| rules::codec::states_of(*slot));
    numbers.map(Name::Slots)
}

impl Desk {
    /// Reads what a rule needs. Returns whether all of it was read at one moment.
    pub(super) async fn read_whole(
        &mut self,
        needs: Needs<'_>,
    ) -> Result<(Read, bool), ShardError> {
        let mut names = names_of(&self.view, needs);
        names.insert(Name::Head);
        let all: Vec<Name> = names.iter().cloned().collect();
        let found = self.session.read(&all, None).await?;
        let life = self.session.life();
        for (name, document) in all.into_iter().zip(&found.documents) {
            self.view.put(life, name, document.as_ref())?;
        }
        // The states of slots tell of which an import is needed.
        if !self.view.unknown(&names_of(&self.view, needs)).is_empty() {
            let names = |view: &View| names_of(view, needs);
            let read = self.read(names, &BTreeSet::new(), |_| None).await?;
            return Ok((read, false));
        }
        self.view.whole.slack_ms = found.slack_ms;
        self.view.whole.moment = self.session.moment();
        Ok((Read::of(names, &found), true))
    }

    /// Stores a nearer end of grace, if it is farther away than its length at `now_ms`, or over; with `sees`, that it was
    /// seen. Returns whether it stored any of this.
    pub(super) async fn tends_grace(
        &mut self,
        now_ms: u64,
        sees: bool,
    ) -> Result<bool, ShardError> {
        let tend = |whole: &mut Whole, now_ms: u64| {
            let Whole {
                head,
                slack_ms,
                moment,
                ..
            } = whole;
            let limited = head.limit_grace(now_ms, *slack_ms);
            let moment = moment.as_ref();
            let seen = moment.is_some_and(|moment| head.see_grace(moment, sees, now_ms));
            limited || seen
        };
        let tends = tend(&mut self.view.whole, now_ms);
        if tends {
            let rule = |whole: &mut Whole, now_ms| {
                tend(whole, now_ms);
                Ok(())
            };
            self.change(Needs::Head, rule).await?;
        }
        Ok(tends)
    }

    /// Reads the head, and `keys`, anew. Returns them with the time.
    async fn look(&mut self, keys: &BTreeSet<LockKey>) -> Result<(Locks, u64), ShardError> {
        self.view = View::default();
        let mut read = self.read(|_| BTreeSet::new(), keys, |_| None).await?;
        self.read_all_stays(&mut read.locks, read.now_ms, usize::MAX)
            .await?;
        Ok((read.locks, read.now_ms))
    }

    /// As [`read_stays`](Self::read_stays), of everybody who waits in a queue of at most `longest` waiters.
    async fn read_all_stays(
        &mut self,
        locks: &mut Locks,
        now_ms: u64,
        longest: usize,
    ) -> Result<(), ShardError> {
        let queued = locks.queued().map(|(key, lock)| {
            let to_read = match lock.waiters() <= longest {
                true => ToRead::All,
                false => ToRead::First,
            };
            (key.clone(), to_read)
        });
        let to_read: BTreeMap<LockKey, ToRead> = queued.collect();
        self.read_stays(locks, now_ms, &to_read).await
    }

    /// The holder of `key`, and its waiters.
    pub(super) async fn inspect(&mut self, key: &LockKey) -> Result<Inspection, ShardError> {
        let (locks, now_ms) = self.look(&BTreeSet::from([key.clone()])).await?;
        let armed = self.view.whole.head.armed()?;
        let found = locks.get(key);
        Ok(found.map_or_else(Inspection::default, |lock| lock.inspect(armed, now_ms)))
    }

    /// A page of the locks that are held.
    pub(super) async fn list(&mut self, list: &List) -> Result<LockPage, ShardError> {
        self.look(&BTreeSet::new()).await?;
        let after = list.after.as_ref();
        let after = after.map(|cursor| key_of(cursor, "list")).transpose()?;
        let page = self.session.page(after.as_ref(), LIST_PAGE).await?;
        let mut locks = Locks::default();
        for (key, document) in &page.documents {
            let namespace = list.namespace.as_ref();
            if namespace.is_none_or(|namespace| namespace.as_str() == key.namespace()) {
                locks.read(key.clone(), Some(document))?;
            }
        }
        self.read_all_stays(&mut locks, page.now_ms, COUNTED_MAX)
            .await?;
        let armed = self.view.whole.head.armed()?;
        let keys = page.documents.iter().map(|(key, _)| key);
        let listed = keys.filter_map(|key| locks.get(key)?.listed(key, armed, page.now_ms));
        Ok(LockPage {
            locks: listed.collect(),
            next: page.next(),
        })
    }
}

impl super::store::Page {
    /// The end of this page, unless it is the last.
    pub(super) fn next(&self) -> Option<Cursor> {
        let last = self.documents.last().filter(|_| self.more);
        last.map(|(key, _)| Cursor(key.text().to_vec()))
    }
}

/// The key that a page ended with.
pub(super) fn key_of(Cursor(text): &Cursor, what: &'static str) -> Result<LockKey, ShardError> {
    LockKey::parse(text).ok_or_else(|| ShardError::Refused {
        what,
        reason: "the cursor is another shard's".into(),
    })
}

/// The documents with the states of `slots`.
pub(super) fn states(view: &View, slots: &[Slot]) -> BTreeSet<Name> {
    let names = slots.iter().flat_map(|slot| view.names_of(*slot));
    names.collect()
}

/// The change from one last token to another. Before a life is armed, there are no tokens.
fn token_change(before: Option<Token>, now: Option<Token>) -> TokenChange {
    match (before, now) {
        (None, Some(now)) => TokenChange::Exactly(now),
        (Some(before), Some(now)) if before < now => TokenChange::AtLeast(now),
        _ => TokenChange::None,
    }
}
