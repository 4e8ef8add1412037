//! Batches of requests about locks.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    attempt::{ATTEMPTS, Changes, Desk, Read, Tokens, imports_in, overtaken},
    known::Drawn,
    locks::Locks,
    store::{Committed, Draw, Draws, Name, TokenChange},
    view::View,
};
use crate::{
    clock::Moment,
    ids::Token,
    name::LockKey,
    shard::{
        Answers, Notification, Op, QueuedGrant, Reply, Request, ShardError, ShardTime,
        rules::{Batch, ToRead},
        whole::Whole,
    },
};

/// Attempts at a whole batch, before its halves are applied one after the other.
const TOGETHER: u32 = 2;

/// Keys of waiters that a session remembers, at most.
const WAITING_MAX: usize = 4096;

impl Desk {
    /// Applies a batch: in as few commits as it takes, or half by half if it is overtaken.
    pub(super) async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError> {
        // Beside the head, a request depends on a lock, and on an import unless the shard is quiet.
        let its = match batch.iter().all(|request| is_quiet(&self.view, request)) {
            true => 1,
            false => 2,
        };
        let together = self.session.commit_max().saturating_sub(1) / its;
        if batch.len() <= together {
            return self.apply_part(batch).await;
        }
        let mut all = None;
        for part in batch.chunks(together) {
            let one = self.apply_part(part).await;
            add(&mut all, one)?;
        }
        Ok(all.expect("it has requests"))
    }

    async fn apply_part(&mut self, part: &[Request]) -> Result<Answers, ShardError> {
        if let [] | [_] = part {
            return self.apply(part, ATTEMPTS).await?.ok_or_else(overtaken);
        }
        if let Some(answers) = self.apply(part, TOGETHER).await? {
            return Ok(answers);
        }
        // One contended lock makes few of the others wait.
        let mut all = None;
        for half in part.chunks(part.len().div_ceil(2)) {
            let one = Box::pin(self.apply_part(half)).await;
            add(&mut all, one)?;
        }
        Ok(all.expect("it has more than one request"))
    }

    /// Applies `batch` in one commit. `None`: every attempt was overtaken, or the batch has to be taken apart.
    async fn apply(
        &mut self,
        batch: &[Request],
        attempts: u32,
    ) -> Result<Option<Answers>, ShardError> {
        self.known.make_room();
        let mut source = self.first_source(batch);
        let yields = batch.iter().all(is_acquire);
        let mut overtaken = 0;
        for _ in 0..attempts {
            source = match self.attempt(batch, source).await? {
                Attempted::Done(answers) => return Ok(Some(answers)),
                Attempted::TakeApart => return Ok(None),
                Attempted::Short { takes } => Source::Read(takes),
                // Tokens must be drawn after the locks were read: a lock may have had others since.
                Attempted::Overtaken => {
                    overtaken += 1;
                    // Acquisitions give way: all waiters depend on the holder's release and renewals.
                    if yields {
                        self.pause(overtaken).await;
                    }
                    Source::Read(self.asked(batch))
                }
            };
        }
        Ok(None)
    }

    /// Where the first attempt has locks and tokens from.
    fn first_source(&mut self, batch: &[Request]) -> Source {
        let asked = self.asked(batch);
        let raises = batch.iter().any(may_raise);
        let known = (!raises).then(|| self.known_locks(batch)).flatten();
        match known {
            Some((locks, draws)) => {
                let recalled = self.recall(|view| names_of(view, batch), locks, draws);
                match recalled.filter(|read| read.drawn.count >= asked) {
                    Some(read) => Source::Known(Box::new(read)),
                    None if asked == 0 => Source::Read(0),
                    None => Source::Read(asked + self.reserve.ahead(asked)),
                }
            }
            None if self.session.draws() == Draws::Commits && !raises => Source::Commit,
            None => Source::Read(asked),
        }
    }

    /// The tokens that `batch` takes, probably: a waiter still waits, mostly; and when it releases the lock, the next one takes as
    /// many. If a request raises the last token, none: tokens that were drawn before it are of no use.
    fn asked(&self, batch: &[Request]) -> u64 {
        if batch.iter().any(may_raise) {
            return 0;
        }
        let draws = self.session.draws();
        let tokens = batch.iter().map(|request| {
            let waiting = self.waiting.get(&request.key);
            match (&request.op, waiting) {
                (Op::Acquire { tokens, .. }, None) => u64::from(*tokens),
                (Op::Release { .. }, Some((_, tokens))) if draws == Draws::Reads => {
                    u64::from(*tokens)
                }
                _ => 0,
            }
        });
        tokens.sum()
    }

    /// The locks of `batch` as they are known without a read, if all are, and the most draws before one of them was read.
    fn known_locks(&self, batch: &[Request]) -> Option<(Locks, u64)> {
        let (mut locks, mut draws) = (Locks::default(), 0);
        let others = batch.iter().filter(|request| !is_acquire(request));
        let others: BTreeSet<&LockKey> = others.map(|request| &request.key).collect();
        for key in keys(batch) {
            let known = self.known.recall(&key, !others.contains(&key))?;
            draws = draws.max(known.draws);
            locks.recall(key, known);
        }
        Some((locks, draws))
    }

    /// Reads what `batch` depends on, and draws tokens.
    async fn read_for(&mut self, batch: &[Request], source: Source) -> Result<Read, ShardError> {
        let tokens = match source {
            Source::Known(read) => return Ok(*read),
            Source::Read(tokens) => tokens,
            Source::Commit => 0,
        };
        let draw = |view: &View| {
            let head = view.version(&Name::Head);
            (tokens > 0).then_some(Draw { head, tokens })
        };
        let names = |view: &View| names_of(view, batch);
        self.read(names, &keys(batch), draw).await
    }

    /// As [`read_for`](Self::read_for). Ends what has ended although the clock does not show it. `None`: the attempt is in
    /// vain.
    async fn begin(
        &mut self,
        batch: &[Request],
        source: Source,
    ) -> Result<Option<Read>, ShardError> {
        let mut read = self.read_for(batch, source).await?;
        let sees = batch.iter().any(is_acquire);
        if read.head_is_stale || self.tends_grace(read.now_ms, sees).await? {
            return Ok(None);
        }
        let now_ms = read.now_ms;
        let to_read = to_read(&self.view, batch, &read.locks, now_ms);
        self.read_stays(&mut read.locks, now_ms, &to_read).await?;
        if let Some(moment) = &self.view.whole.moment {
            read.locks.end_unchanged(moment);
        }
        Ok(Some(read))
    }

    async fn attempt(
        &mut self,
        batch: &[Request],
        source: Source,
    ) -> Result<Attempted, ShardError> {
        // Only if nobody draws before it.
        let draws = matches!(source, Source::Commit);
        let Some(mut read) = self.begin(batch, source).await? else {
            return Ok(Attempted::Overtaken);
        };
        // The shard was quiet when the batch was made.
        let imports = imports_in(&read.names).count();
        if 1 + imports + batch.len() > self.session.commit_max() {
            return Ok(Attempted::TakeApart);
        }
        let drawn = read.drawn;
        self.view.put_token(drawn.start);
        let imports = self.view.imports(&read.names);
        let mut notifications = Vec::new();
        let Whole {
            head,
            slots,
            slack_ms,
            moment,
            ..
        } = &mut self.view.whole;
        let slack_ms = *slack_ms;
        let Ok(armed) = head.armed_mut() else {
            self.view = View::default();
            return Err(ShardError::Unarmed);
        };
        let mut answers = Batch {
            armed,
            slots,
            locks: &mut read.locks,
            notifications: &mut notifications,
            full: false,
            now_ms: read.now_ms,
            slack_ms,
        }
        .apply(batch);
        let at = (read.now_ms, moment.as_ref());
        see(&mut read.locks, batch, &answers.replies, at);
        // A clock that may be late says nothing about its steps.
        answers.now = answers.now.filter(|_| slack_ms == 0);
        let last = armed.tokens.last();
        if !draws && last_granted(&answers.replies, &notifications) > drawn.end() {
            // Nothing is committed: what the rules proved is not known.
            self.view.forget(imports_in(&read.names));
            let raised = batch.iter().zip(&answers.replies).any(raised);
            return Ok(match raised && batch.len() > 1 {
                true => Attempted::TakeApart,
                false => Attempted::Short {
                    takes: last.get() - drawn.start.get(),
                },
            });
        }
        let life = self.session.life();
        let changes = Changes {
            writes: self.view.changed_imports(life, &imports, read.now_ms),
            tokens: token_change(drawn, last, draws),
            notifications,
            announcement: None,
        };
        let Committed::Done { at_ms } = self.commit(&read, changes).await? else {
            return Ok(Attempted::Overtaken);
        };
        answers.now = at_ms.map(ShardTime).or(answers.now);
        self.keep_tokens(&read, last);
        self.remember_waiting(batch, &answers.replies);
        Ok(Attempted::Done(answers))
    }

    /// Keeps the tokens that were drawn for `read`, or reserved, and are after `last`.
    fn keep_tokens(&mut self, read: &Read, last: Token) {
        let left = read.drawn.after(last);
        match read.tokens {
            Tokens::Drawn => {
                let head = self.view.version(&Name::Head);
                self.reserve.put(left, head, read.now_ms);
            }
            Tokens::Reserved => self.reserve.keep(left),
            Tokens::None => {}
        }
    }

    /// Remembers waiters. Their entries outlast a release: a process that waited for a lock often waits for it again.
    fn remember_waiting(&mut self, batch: &[Request], replies: &[Reply]) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.clear();
        }
        for (request, reply) in batch.iter().zip(replies) {
            let Op::Acquire { nonce, tokens, .. } = request.op else {
                continue;
            };
            match reply {
                Reply::Held {
                    position: Some(_), ..
                } => drop(self.waiting.insert(request.key.clone(), (nonce, tokens))),
                _ => drop(self.waiting.remove(&request.key)),
            }
        }
    }
}

/// Keeps what the replies to `batch` say about the locks.
fn see(locks: &mut Locks, batch: &[Request], replies: &[Reply], at: (u64, Option<&Moment>)) {
    let keys = |is| keys_of(batch, replies, is);
    // Other answers may be final, and depend on the lock as it was read.
    let others = keys(|reply| !keeps_waiting(reply));
    let waiting = keys(keeps_waiting);
    locks.keep_waiting(&waiting.difference(&others).copied().collect());
    locks.see(&keys(is_refused), &keys(is_extended), at);
}

/// The change to the `last` token, by a commit that `draws` those that were not drawn.
fn token_change(drawn: Drawn, last: Token, draws: bool) -> TokenChange {
    let after = drawn.end();
    match last > after {
        true if draws => TokenChange::Next { after, last },
        true => TokenChange::AtLeast(last),
        false => TokenChange::None,
    }
}

/// Where an attempt has locks and tokens from.
enum Source {
    /// From what is known.
    Known(Box<Read>),
    /// From a read that draws so many tokens.
    Read(u64),
    /// From a read, and its commit draws the tokens.
    Commit,
}

/// What came of an attempt.
enum Attempted {
    Done(Answers),
    /// Another request was done meanwhile.
    Overtaken,
    /// The rules granted more tokens than were drawn. Nothing was done.
    Short {
        /// So many.
        takes: u64,
    },
    /// The rules raised the last token, and granted tokens above that. Only a request that does one or the other can be
    /// applied. Nothing was done.
    TakeApart,
}

/// The keys of a batch.
fn keys(batch: &[Request]) -> BTreeSet<LockKey> {
    batch.iter().map(|request| request.key.clone()).collect()
}

/// The tickets that a batch depends on: those of the first waiters, where it may pass the lock on.
fn to_read(
    view: &View,
    batch: &[Request],
    locks: &Locks,
    now_ms: u64,
) -> BTreeMap<LockKey, ToRead> {
    let armed = view.whole.head.armed.as_ref();
    let queued = locks.queued().map(|(key, lock)| {
        let is_held = armed.is_some_and(|armed| lock.live(armed, now_ms).is_some());
        let mut its = batch.iter().filter(|request| request.key == *key);
        let asks_again = |request: &Request| match request.op {
            Op::Acquire { nonce, .. } => lock.is_awaited_by(nonce),
            _ => false,
        };
        let to_read = match is_held && its.all(asks_again) {
            true => ToRead::Nothing,
            false => ToRead::First,
        };
        (key.clone(), to_read)
    });
    queued.collect()
}

/// The keys of the requests with such replies.
fn keys_of<'a>(
    batch: &'a [Request],
    replies: &[Reply],
    is: fn(&Reply) -> bool,
) -> BTreeSet<&'a LockKey> {
    let answered = batch.iter().zip(replies);
    let answered = answered.filter(|(_, reply)| is(reply));
    answered.map(|(request, _)| &request.key).collect()
}

/// Whether somebody else has what was asked for.
fn is_refused(reply: &Reply) -> bool {
    matches!(reply, Reply::Held { .. } | Reply::OtherKind { .. })
}

/// Whether the sender has to ask again: nothing is granted.
fn keeps_waiting(reply: &Reply) -> bool {
    is_refused(reply) || matches!(reply, Reply::Grace { .. })
}

/// Whether the sender counts a deadline from the request.
fn is_extended(reply: &Reply) -> bool {
    use Reply::{Adopted, Granted, Renewed};
    matches!(reply, Granted { .. } | Renewed { .. } | Adopted { .. })
}

/// The documents of slots that a batch depends on. On a quiet shard every slot is open.
fn names_of(view: &View, batch: &[Request]) -> BTreeSet<Name> {
    let unquiet = batch.iter().filter(|request| !is_quiet(view, request));
    unquiet
        .flat_map(|request| view.names_of(request.key.slot()))
        .collect()
}

/// Whether the request needs no state of its slot.
fn is_quiet(view: &View, request: &Request) -> bool {
    let armed = view.whole.head.armed.as_ref();
    let looks = matches!(request.op, Op::Adopt { .. } | Op::Remove { .. });
    !looks && armed.is_some_and(|armed| armed.is_quiet(request.map))
}

fn is_acquire(request: &Request) -> bool {
    matches!(request.op, Op::Acquire { .. })
}

/// Whether the request may raise the last token to one that was made elsewhere.
fn may_raise(request: &Request) -> bool {
    matches!(
        request.op,
        Op::Renew { .. } | Op::Confirm { .. } | Op::Adopt { .. }
    )
}

/// Whether it did, perhaps.
fn raised((request, reply): (&Request, &Reply)) -> bool {
    match reply {
        Reply::Adopted { .. } => true,
        Reply::Renewed { reclaimed, .. } => *reclaimed || matches!(request.op, Op::Confirm { .. }),
        _ => false,
    }
}

/// The greatest token that was granted.
fn last_granted(replies: &[Reply], notifications: &[Notification]) -> Token {
    let replied = replies.iter().filter_map(|reply| match reply {
        Reply::Granted { token, tokens, .. } => Some((*token, *tokens)),
        _ => None,
    });
    let notified = notifications
        .iter()
        .filter_map(|notification| match notification {
            Notification::Granted(QueuedGrant { token, tokens, .. }) => Some((*token, *tokens)),
            Notification::Contended { .. } => None,
        });
    let last = |(token, tokens): (Token, u32)| token.get() + u64::from(tokens) - 1;
    let last = replied.chain(notified).map(last).max();
    last.map_or(Token::default(), Token::from_number)
}

/// Adds the answers to the next requests of a batch. The shard answers all of a batch, or nothing of it.
fn add(all: &mut Option<Answers>, one: Result<Answers, ShardError>) -> Result<(), ShardError> {
    match (all, one) {
        (None, Err(error)) => Err(error),
        (Some(_), Err(error)) => Err(in_part(&error)),
        (all @ None, Ok(one)) => {
            *all = Some(one);
            Ok(())
        }
        (Some(all), Ok(one)) => {
            all.counter = all.counter.max(one.counter);
            all.replies.extend(one.replies);
            Ok(())
        }
    }
}

/// The error of a batch that was applied in part.
fn in_part(error: &ShardError) -> ShardError {
    ShardError::NoReply {
        reason: format!("a part of the batch was applied, then: {error}"),
    }
}
