//! Rare requests to the whole shard, and looks at its locks.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ringfence_ring::Slot;

use super::{
    attempt::{ATTEMPTS, Changes, Desk, overtaken},
    locks::Locks,
    store::{Name, TokenChange},
    view::View,
};
use crate::{
    ids::{Epoch, Incarnation, Token},
    limits::{COUNTED_MAX, LIST_PAGE},
    name::LockKey,
    shard::{
        Arm, ArmAnswer, Armed, Cursor, Declare, ForceOpen, ForcedOpen, Grace, Inspection, List,
        LockPage, MarkQuiet, ShardError, Step, Stepped,
        rules::{self, Head, Slots, ToRead},
    },
};

impl Desk {
    /// As [`rules::arm`]. How long the life has been up is not known.
    pub(super) async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError> {
        self.change_view(
            |_| BTreeSet::from([Name::Topology]),
            |view, now_ms| match view.affiliation.id() == Some(&*arm.topology) {
                true => {
                    let arm = Arm {
                        grace: longer_grace(arm.grace, view.slack_ms),
                        ..arm.clone()
                    };
                    rules::arm(&mut view.head, &mut view.slots, &arm, None, now_ms)
                }
                false => Err(ShardError::Refused {
                    what: "arm",
                    reason: "its pointer does not name this topology".into(),
                }),
            },
        )
        .await
    }

    /// The arming, if the life is armed.
    pub(super) async fn armed(&mut self) -> Result<Option<Armed>, ShardError> {
        let (_, now_ms) = self.look(&BTreeSet::new()).await?;
        let armed = self.view.head.armed.as_ref();
        Ok(armed.map(|armed| Armed {
            epoch: armed.epoch,
            grace_left: armed.grace.left(now_ms),
        }))
    }

    /// As [`rules::mark_quiet`].
    pub(super) async fn mark_quiet(&mut self, mark: &MarkQuiet) -> Result<bool, ShardError> {
        self.change(
            |view| states(view, &mark.slots),
            |head, slots, now_ms| rules::mark_quiet(head, slots, mark, now_ms),
        )
        .await
    }

    /// As [`rules::declare`].
    pub(super) async fn declare(&mut self, declare: &Declare) -> Result<Duration, ShardError> {
        self.change(
            |_| BTreeSet::new(),
            |head, _, now_ms| rules::declare(head, declare, now_ms),
        )
        .await
    }

    /// As [`rules::raise`].
    pub(super) async fn raise(
        &mut self,
        incarnation: Incarnation,
        epoch: Epoch,
    ) -> Result<(), ShardError> {
        self.change(
            |_| BTreeSet::new(),
            |head, _, _| rules::raise(head, incarnation, epoch),
        )
        .await
    }

    /// As [`rules::step`].
    pub(super) async fn step(&mut self, step: &Step) -> Result<Stepped, ShardError> {
        let stepped = self
            .change(
                |_| all_of(&step.slots),
                |head, slots, now_ms| rules::step(head, slots, step, now_ms),
            )
            .await?;
        // Tokens were made while the step was on its way: those of its slots, before it.
        let last = self.session.read(&[], None).await?.last;
        Ok(Stepped {
            last_token: stepped.last_token.max(last),
            ..stepped
        })
    }

    /// As [`rules::force_open`].
    pub(super) async fn force_open(&mut self, force: &ForceOpen) -> Result<ForcedOpen, ShardError> {
        self.change_view(
            |_| all_of(&force.slots),
            |view, now_ms| {
                let force = ForceOpen {
                    grace_for: longer(force.grace_for, view.slack_ms),
                    ..force.clone()
                };
                rules::force_open(&mut view.head, &mut view.slots, &force, now_ms)
            },
        )
        .await
    }

    /// Applies a rule to the head, and to the slots and imports that `names` tells; all slots are changed by an arming
    /// alone.
    pub(super) async fn change<T>(
        &mut self,
        names: impl Fn(&View) -> BTreeSet<Name>,
        rule: impl Fn(&mut Head, &mut Slots, u64) -> Result<T, ShardError>,
    ) -> Result<T, ShardError> {
        self.change_view(names, |view, now_ms| {
            rule(&mut view.head, &mut view.slots, now_ms)
        })
        .await
    }

    /// As [`change`](Self::change), to all that `names` tells.
    pub(super) async fn change_view<T>(
        &mut self,
        names: impl Fn(&View) -> BTreeSet<Name>,
        rule: impl Fn(&mut View, u64) -> Result<T, ShardError>,
    ) -> Result<T, ShardError> {
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            self.view = View::default();
            let read = self.read(&names, &BTreeSet::new(), |_| None).await?;
            self.view.put_token(read.last);
            let (before, imports) = (self.view.clone(), self.view.imports(&read.names));
            let slack_ms = self.view.slack_ms;
            self.view.head.limit_grace(read.now_ms, slack_ms);
            // A rule that refuses may have raised the fence, and kept the copy.
            let result = rule(&mut self.view, read.now_ms);
            let life = self.session.life();
            let mut writes = self.view.changed_states(life, &before, &read.names);
            writes.extend(self.view.changed_imports(life, &imports, read.now_ms));
            let changes = Changes {
                writes,
                tokens: token_change(before.token(), self.view.token()),
                notifications: Vec::new(),
                announcement: match self.view.affiliation == before.affiliation {
                    true => None,
                    false => self.view.affiliation.announcement(),
                },
            };
            if self.commit(&read, changes).await? {
                return result;
            }
        }
        Err(overtaken())
    }

    /// Stores a nearer end of grace, if it is farther away than its length at `now_ms`, or over; with `sees`, that it was
    /// seen. Returns whether it stored any of this.
    pub(super) async fn tends_grace(
        &mut self,
        now_ms: u64,
        sees: bool,
    ) -> Result<bool, ShardError> {
        let tend = |view: &mut View, now_ms: u64| {
            let View {
                head,
                slack_ms,
                moment,
                ..
            } = view;
            let limited = head.limit_grace(now_ms, *slack_ms);
            let moment = moment.as_ref();
            let seen = moment.is_some_and(|moment| head.see_grace(moment, sees, now_ms));
            limited || seen
        };
        let tends = tend(&mut self.view, now_ms);
        if tends {
            let changed = self.change_view(
                |_| BTreeSet::new(),
                |view, now_ms| {
                    tend(view, now_ms);
                    Ok(())
                },
            );
            changed.await?;
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
        let armed = self.view.head.armed()?;
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
        let armed = self.view.head.armed()?;
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

/// The documents of `slots`: their states, and their imports, whether they arrive or not.
fn all_of(slots: &[Slot]) -> BTreeSet<Name> {
    let states = slots
        .iter()
        .map(|slot| Name::Slots(rules::codec::states_of(*slot)));
    let imports = slots.iter().map(|slot| Name::Import(*slot));
    states.chain(imports).collect()
}

/// A length that counts from a clock which may be late by `slack_ms`. None stays none.
fn longer(length: Duration, slack_ms: u64) -> Duration {
    match length.is_zero() {
        true => length,
        false => length + Duration::from_millis(slack_ms),
    }
}

fn longer_grace(grace: Grace, slack_ms: u64) -> Grace {
    match grace {
        Grace::Full(length) => Grace::Full(longer(length, slack_ms)),
        Grace::LessUptime(length) => Grace::LessUptime(longer(length, slack_ms)),
        Grace::None => Grace::None,
    }
}

/// The change from one last token to another. Before a life is armed, there are no tokens.
fn token_change(before: Option<Token>, now: Option<Token>) -> TokenChange {
    match (before, now) {
        (None, Some(now)) => TokenChange::Exactly(now),
        (Some(before), Some(now)) if before < now => TokenChange::AtLeast(now),
        _ => TokenChange::None,
    }
}
