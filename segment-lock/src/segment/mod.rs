//! One segment: its state, and one function for each request.
//!
//! Each function is atomic: it checks first, in the order of `checks.rs`, and writes last; nothing can fail after its
//! first write. Each request may be repeated. A backend stores the state and calls the function, as [`crate::memory`]
//! does, or follows the same rules in another language.
//!
//! In Redis a segment is one group of keys under one slot, so one script can access all of it:
//!
//! | part | type | holds |
//! |---|---|---|
//! | `seg` | hash | the numbers, the terms, `frozen` (`until caller`), the copy of the `manifest`, and the `origin` of the last write |
//! | `out`, `inn` | hashes | segment → `seq:amount` of the last loan to it; → `seq` of the last that landed |
//! | `ids` | hash | the newest final answers, of requests and credits: key → content and state |
//! | `order` | list | the same as records, in the order in which they became final; those of one batch are one element |
//! | `blocks` | hash | older final answers, and older effects: SHA-1 of the records → records |
//! | `times` | sorted set | names of blocks, by the greatest key in the block |
//! | `open` | hash | answers that are not final: key → content and state |
//! | `due` | sorted set | ids of held reservations, by deadline |
//! | `sent`, `pinned` | sorted sets | ids of unfinished transfers, in their order |
//! | `log` | list | the newest effects; those of one batch are one element |
//! | `pages` | sorted set | names of blocks of older effects, by the time of the first one |
//!
//! A key has 18 bytes: the time of the id, and 96 bits of the digest of its name. A record is a key, the content's
//! digest and a letter: 27 bytes. A block has thousands of records. No other block has keys between its least and its
//! greatest key. Its name is a digest of its content, so it can be copied while the segment changes.
//!
//! Amounts are decimal text there, exact to the last of their 64 bits. Times, sequence numbers, generations and
//! versions stay below 2^53.

mod answer;
mod cancel;
mod capture;
mod checks;
mod close;
mod collect;
mod confirm;
mod credit;
mod doubt;
mod entry;
mod expire;
mod find;
mod finish_transfer;
mod forget;
mod land;
mod lend;
mod log;
mod op;
mod prepare;
mod purge;
mod refuse;
mod remove;
mod replace;
mod request;
mod unfinished;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

pub use answer::{Answer, Money, PinnedCredit, Refusal, Reply, SegmentView};
pub(crate) use checks::{clocks_agree, makes_for_ms};
pub use entry::{Committed, Credit, CreditId, CreditState, Entry, Final, State};
pub use log::{Effect, EffectKind, History, HistoryPage, Log};
pub(crate) use replace::unused_version;
pub use request::{
    Accept, Cancel, Capture, Close, Collect, Confirm, Create, Expire, Find, FinishTransfer, Forget,
    Freeze, GiveCredit, Inspect, Land, Lend, Loan, Op, Outcome, Pinned, Prepare, Purge, ReadCopy,
    Refuse, Remove, Replace, Request, Sent, Thaw,
};

use crate::{Caller, RequestId, Terms};

/// The last loan to another segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// Its number: the lender's version after it. The numbers of a segment's loans rise, and none is used twice.
    pub seq: u64,
    /// The amount of the last one.
    pub amount: i64,
}

/// A freeze: for a moment, only requests of one caller move money here. Safety does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// The caller.
    pub caller: Caller,
    /// Its end, in ms since 1970 on the segment's clock.
    pub until_ms: u64,
}

/// The state of one segment: plain data, to be stored. The functions keep it valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The terms. They never change.
    pub terms: Terms,
    /// Money that may be spent.
    pub value: i64,
    /// Money set aside: reservations that are held, transfers that are sent.
    pub held: i64,
    /// Room for money that is promised to come. `value + held + promised` fits.
    pub promised: i64,
    /// Rises with every change of `value` or of a channel.
    pub version: u64,
    /// The last loan to each other segment. *In flight* until it has landed.
    pub out: BTreeMap<u32, Channel>,
    /// The number of the last loan that landed from each other segment.
    pub inn: BTreeMap<u32, u64>,
    /// The greatest generation that was prepared here.
    pub generation: u64,
    /// The generation that was in force when that one was planned.
    pub base: u64,
    /// That generation decides the homes of ids of this time or later, in ms. Older ids have the same home by both.
    pub cut_ms: u64,
    /// Ids of this time and before may have been forgotten, in ms. Never falls.
    pub mark_ms: u64,
    /// The lost segment that this one replaces may have decided ids of this time and before, in ms. 0: it replaces
    /// none.
    pub lost_ms: u64,
    /// The greatest time of an id decided here, in ms.
    pub newest_ms: u64,
    /// Decided requests that have their home here.
    pub ids: BTreeMap<RequestId, Entry>,
    /// Decided transfers from other accounts.
    pub credits: BTreeMap<CreditId, Credit>,
    /// The final ones of `ids` and `credits`, in the order in which they became final.
    pub order: VecDeque<Final>,
    /// Held reservations by deadline.
    pub due: BTreeSet<(u64, RequestId)>,
    /// Transfers that are sent, or committed; and captures.
    pub sent: BTreeSet<RequestId>,
    /// Credits that are promised or pinned.
    pub pinned: BTreeSet<CreditId>,
    /// The effects of before.
    pub log: Log,
    /// The caller that froze it.
    pub frozen: Option<Frozen>,
    /// It may have lost its last changes: it moves no money until an operator accepts it as it is.
    pub doubtful: bool,
    /// It replaces a lost segment, is in doubt, and does not know yet which loans are new: [`Accept::others`].
    pub awaits_versions: bool,
    /// How often it may have lost its last changes and continued.
    pub losses: u64,
    /// It takes no new money.
    pub closed: bool,
    /// A copy of the account's manifest, as text, with the plan for `generation`, for the case that the manifest is
    /// lost.
    pub manifest: Arc<str>,
}

impl Segment {
    /// A segment with nothing but its credit, created for a plan. It refuses ids from before the plan's beginning: those have their homes
    /// elsewhere.
    pub fn new(create: &Create) -> Self {
        let Create {
            prepare,
            terms,
            credit,
            planned_ms: _,
        } = create;
        Self {
            terms: *terms,
            value: *credit,
            held: 0,
            promised: 0,
            version: 0,
            out: BTreeMap::new(),
            inn: BTreeMap::new(),
            generation: prepare.generation,
            base: prepare.base,
            cut_ms: prepare.from_ms,
            mark_ms: prepare.from_ms.saturating_sub(1).max(prepare.mark_ms),
            lost_ms: 0,
            newest_ms: 0,
            ids: BTreeMap::new(),
            credits: BTreeMap::new(),
            order: VecDeque::new(),
            due: BTreeSet::new(),
            sent: BTreeSet::new(),
            pinned: BTreeSet::new(),
            log: Log::default(),
            frozen: None,
            doubtful: false,
            awaits_versions: false,
            losses: 0,
            closed: prepare.closed,
            manifest: Arc::clone(&prepare.manifest),
        }
    }

    /// Applies `request` to the segment in a place: it may make one where there is none, or remove it.
    pub fn apply_to(place: &mut Option<Self>, request: &Request, now_ms: u64) -> Answer {
        let segment = match place {
            Some(segment) => segment,
            None => place.insert(Self::made_by(request, now_ms)?),
        };
        let answer = segment.apply(request, now_ms);
        if answer == Ok(Reply::Removed) {
            *place = None;
        }
        answer
    }

    /// The segment that `request` creates if there is none; [`Refusal::Missing`] if it creates none, and
    /// [`Refusal::ClocksDiffer`] if the plan is from long ago.
    pub fn made_by(request: &Request, now_ms: u64) -> Result<Self, Refusal> {
        match request {
            Request::Create(create) => {
                clocks_agree(create.planned_ms, now_ms, create.terms.skew_ms)?;
                Ok(Self::new(create))
            }
            Request::Replace(replace) => Self::replacement(replace, now_ms),
            _ => Err(Refusal::Missing),
        }
    }

    /// Applies `request`. `now_ms`: ms since 1970 on this segment's clock.
    ///
    /// If the segment exists, [`Request::Create`] prepares it, and [`Request::Replace`] leaves it as it is. With the answer
    /// [`Reply::Removed`], the segment is to be removed: [`apply_to`](Self::apply_to) does that.
    pub fn apply(&mut self, request: &Request, now_ms: u64) -> Answer {
        match request {
            Request::Op(op) => self.op(op, now_ms),
            Request::Lend(lend) => self.lend(lend, now_ms),
            Request::Land(land) => self.land(land, now_ms),
            Request::Collect(collect) => self.collect(collect, now_ms),
            Request::Thaw(thaw) => self.thaw(thaw),
            Request::Refuse(refuse) => self.refuse(refuse, now_ms),
            Request::Confirm(confirm) => self.confirm(confirm, now_ms),
            Request::Cancel(cancel) => self.cancel(cancel, now_ms),
            Request::Capture(capture) => self.capture(capture, now_ms),
            Request::Expire(Expire) => self.expire(now_ms),
            Request::Credit(credit) => self.credit(credit, now_ms),
            Request::FinishTransfer(finish) => self.finish_transfer(finish, now_ms),
            Request::Forget(forget) => self.forget(forget),
            Request::Find(find) => self.find(find),
            Request::History(history) => self.history(history),
            Request::Sent(after) => self.sent_after(after),
            Request::Pinned(after) => self.pinned_after(after),
            Request::Purge(Purge) => self.purge(now_ms),
            Request::Create(create) => self.prepare(&create.prepare, now_ms),
            Request::Replace(_) => self.inspect(now_ms),
            Request::Prepare(prepare) => self.prepare(prepare, now_ms),
            Request::Close(Close) => self.close(),
            Request::Remove(remove) => self.remove(remove, now_ms),
            Request::Inspect(Inspect) => self.inspect(now_ms),
            Request::Accept(accept) => self.accept(accept, now_ms),
            Request::ReadCopy(ReadCopy) => self.read_copy(),
        }
    }
}
