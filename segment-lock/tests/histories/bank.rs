//! A storage that does harm between requests and answers, or leaves out a rule; and has every
//! request audited.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{FutureExt, future::join_all};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use ringfence_segment_lock::{
    Account, At, Effect, Manifest, Manifests, NewAccount, Segments, StorageError,
    VersionedManifest,
    memory::Memory,
    segment::{Answer, CreditState, Final, Money, Purge, Reply, Request, Segment, State},
};
use tokio::task::yield_now;

use super::audit::Audit;

/// What a storage must never do, each of them a shortcut that looks harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortcut {
    /// A lend that comes again is debited again.
    LendAgain,
    /// A loan that comes again is credited again.
    LandAgain,
    /// Versions are not compared: what one read saw is believed.
    OneRead,
    /// A transfer's source takes the money back when it has waited long enough.
    TakeBack,
    /// Credits are purged before their transfers are finished.
    PurgePinned,
    /// Entries are purged, and no mark is raised.
    PurgeWithoutMark,
    /// A segment is prepared for a plan without regard to what it has decided.
    PrepareAnyway,
    /// Segments answer who knows an old layout.
    AnyLayout,
    /// A held reservation is confirmed past its deadline, since it came back.
    ConfirmLate,
    /// A lost segment is replaced without regard to the loans it had.
    ForgetNumbers,
    /// Where a segment was lost, what it may have decided is decided again.
    AcceptWithoutMark,
    /// Where a segment was lost, a transfer that it may have been credited is refused.
    RefuseLost,
    /// A segment is made for a plan of long ago.
    CreateLate,
    /// A segment is removed although a transfer to it is not finished.
    RemovePinned,
    /// A promise keeps no room.
    PromiseNothing,
    /// Promises are taken back before anybody knows that nobody decides to pay.
    TakePromiseBack,
    /// A reservation is cancelled after the decision to pay from it.
    CancelCommitted,
}

#[derive(Debug)]
pub(crate) struct Bank {
    memory: Memory,
    pub(crate) audit: Mutex<Audit>,
    harm: Mutex<Harm>,
    shortcut: Option<Shortcut>,
}

#[derive(Debug)]
struct Harm {
    rng: StdRng,
    per_cent: (u32, u32, u32),
    sent: Vec<(At, Request)>,
}

impl Harm {
    fn happens(&mut self, per_cent: u32) -> bool {
        self.rng.random_range(0..100) < per_cent
    }
}

#[derive(Debug, thiserror::Error)]
#[error("lost on the way")]
struct Lost;

fn lost() -> StorageError {
    StorageError {
        effect: Effect::Unknown,
        is_retryable: true,
        source: Arc::new(Lost),
    }
}

impl Bank {
    pub(crate) fn new(
        memory: Memory,
        seed: u64,
        per_cent: (u32, u32, u32),
        shortcut: Option<Shortcut>,
    ) -> Self {
        let harm = Harm {
            rng: StdRng::seed_from_u64(seed),
            per_cent,
            sent: Vec::new(),
        };
        Self {
            memory,
            audit: Mutex::default(),
            harm: Mutex::new(harm),
            shortcut,
        }
    }

    /// No more harm from now on.
    pub(crate) fn heal(&self) {
        self.harm.lock().per_cent = (0, 0, 0);
    }

    /// Whatever was begun is finished by now.
    pub(crate) fn finished(&self) {
        self.memory
            .with_segments(|segments| self.audit.lock().finished(segments));
    }

    /// The storage of a segment comes back with nothing.
    pub(crate) fn lose(&self, at: &At) {
        self.memory
            .with_segments(|segments| self.audit.lock().lose(segments, at));
    }

    /// Purges every segment, whatever is unfinished.
    pub(crate) async fn purge(&self) {
        let all: Vec<At> = self
            .memory
            .with_segments(|segments| segments.keys().cloned().collect());
        let purges = all.into_iter().map(|at| (at, Request::Purge(Purge)));
        self.call_all(purges.collect()).await;
    }

    async fn turns(&self) {
        let turns = self.harm.lock().rng.random_range(0..4);
        for _ in 0..turns {
            yield_now().await;
        }
    }

    /// Some request that was sent before, answered or not, comes again.
    fn late(&self) {
        let mut harm = self.harm.lock();
        let often = harm.per_cent.2;
        if !harm.happens(often) {
            return;
        }
        let (at, request) = {
            let audit = self.audit.lock();
            let makes_again = |(at, request): &&(At, Request)| {
                matches!(request, Request::Create(_)) && audit.removed.contains(at)
            };
            // Of a deleted account these are few, and matter most.
            let creates: Vec<_> = harm.sent.iter().filter(makes_again).cloned().collect();
            let count = harm.sent.len();
            match creates.len() {
                0 => {
                    let index = harm.rng.random_range(0..count);
                    harm.sent[index].clone()
                }
                few => creates[harm.rng.random_range(0..few)].clone(),
            }
        };
        drop(harm);
        let is_there = self
            .memory
            .with_segments(|segments| segments.contains_key(&at));
        // For a minute, nothing tells a late request to create a segment from the first one, once that segment is lost.
        let is_removed = self.audit.lock().removed.contains(&at);
        if !is_there && !is_removed && matches!(request, Request::Create(_)) {
            return;
        }
        self.audit.lock().reach("late");
        let _ = self.deliver(&at, request);
    }

    fn deliver(&self, at: &At, mut request: Request) -> Answer {
        let before = self
            .memory
            .with_segments(|segments| segments.get(at).cloned());
        if let (Some(shortcut), Some(before)) = (self.shortcut, &before) {
            shortcut.spoil_request(before, &mut request);
        }
        if let (Some(Shortcut::CreateLate), Request::Create(create)) = (self.shortcut, &mut request)
        {
            create.planned_ms = self.memory.now_ms();
        }
        if let (Some(Shortcut::RemovePinned), Request::Remove(_)) = (self.shortcut, &request) {
            self.memory.with_segments(|segments| {
                segments
                    .entry(at.clone())
                    .and_modify(|segment| segment.pinned.clear());
            });
        }
        let answer = self.memory.call(at, request.clone()).now_or_never();
        let mut answer = answer.expect("memory answers at once").unwrap();
        self.memory.with_segments(|segments| {
            if let (Some(shortcut), None, Some(after)) =
                (self.shortcut, &before, segments.get_mut(at))
            {
                shortcut.spoil_new(after);
            }
            if let (Some(shortcut), Some(before), Some(after)) =
                (self.shortcut, &before, segments.get_mut(at))
            {
                shortcut.spoil(before, after, &request, &mut answer);
            }
            let mut audit = self.audit.lock();
            audit.request(at, before.as_ref(), segments, &request, &answer);
        });
        answer
    }
}

#[async_trait]
impl Segments for Bank {
    async fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32> {
        self.memory.place(account, taken, more).await
    }

    fn new_account(&self) -> NewAccount {
        NewAccount::default()
    }

    fn now_ms(&self) -> u64 {
        self.memory.now_ms()
    }

    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError> {
        self.turns().await;
        let (drop_request, drop_answer) = {
            let mut harm = self.harm.lock();
            harm.sent.push((at.clone(), request.clone()));
            let (request, answer, _) = harm.per_cent;
            (harm.happens(request), harm.happens(answer))
        };
        if drop_request {
            self.audit.lock().reach("lost");
            return Err(lost());
        }
        let answer = self.deliver(at, request);
        self.late();
        self.turns().await;
        match drop_answer {
            true => Err(lost()),
            false => Ok(answer),
        }
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        join_all(
            requests
                .iter()
                .map(|(at, request)| self.call(at, request.clone())),
        )
        .await
    }
}

#[async_trait]
impl Manifests for Bank {
    async fn read(&self, account: &Account) -> Result<Option<VersionedManifest>, StorageError> {
        self.turns().await;
        self.memory.read(account).await
    }

    async fn swap(
        &self,
        account: &Account,
        expected: u64,
        manifest: Manifest,
    ) -> Result<bool, StorageError> {
        self.turns().await;
        let is_gone = manifest.is_deleted() && manifest.placed() == 0;
        let manifest_swapped = self.memory.swap(account, expected, manifest).await;
        if let Ok(true) = manifest_swapped {
            self.audit.lock().is_gone(account, is_gone);
        }
        let drop_answer = {
            let mut harm = self.harm.lock();
            let per_cent = harm.per_cent.1;
            harm.happens(per_cent)
        };
        self.turns().await;
        match drop_answer {
            true => Err(lost()),
            false => manifest_swapped,
        }
    }
}

impl Shortcut {
    /// What the segment is asked instead.
    fn spoil_request(self, segment: &Segment, request: &mut Request) {
        match (self, request) {
            (Self::OneRead, Request::Refuse(refuse)) => refuse.version = segment.version,
            (Self::ForgetNumbers, Request::Accept(accept)) => accept.others.clear(),
            (Self::AnyLayout, Request::Op(op)) => op.generation = u64::MAX,
            (Self::AnyLayout, Request::Refuse(refuse)) => refuse.generation = u64::MAX,
            (Self::AnyLayout, Request::Collect(collect)) => collect.generation = u64::MAX,
            _ => {}
        }
    }

    /// What a new segment is instead.
    fn spoil_new(self, new: &mut Segment) {
        if self == Self::RefuseLost {
            new.lost_ms = 0;
        }
    }

    /// What the segment does beside, or instead.
    fn spoil(self, before: &Segment, after: &mut Segment, request: &Request, answer: &mut Answer) {
        match (self, request) {
            (Self::LendAgain, Request::Lend(lend)) => {
                if let Some(loan) = before
                    .out
                    .get(&lend.to)
                    .filter(|loan| loan.seq > lend.landed)
                {
                    after.value -= loan.amount.min(after.value);
                    after.version += 1;
                }
            }
            (Self::LandAgain, Request::Op(op)) if after.version > before.version => {
                let landed = |from| before.inn.get(from).is_some_and(|&seq| seq > 0);
                let again = op.lands.iter().filter(|loan| landed(&loan.from));
                let again = again.filter(|loan| before.inn[&loan.from] >= loan.seq);
                again.for_each(|loan| after.value += loan.amount.get());
            }
            (Self::OneRead, Request::Op(_) | Request::Collect(_)) => {
                if let Ok(Reply::View(view) | Reply::Short(view)) = answer {
                    view.version = 0;
                }
            }
            (Self::TakeBack, _) => {
                if let Some(id) = before.sent.first().filter(|id| after.sent.contains(id)) {
                    let entry = after.ids.get_mut(id).unwrap();
                    if let State::Sent { amount, .. } = &entry.state {
                        after.held -= amount.get();
                        after.value += amount.get();
                    }
                    entry.state = State::Returned;
                    after.sent.remove(id);
                }
            }
            (Self::PurgePinned, Request::Purge(_)) => {
                let old = after
                    .pinned
                    .iter()
                    .filter(|credit| credit.id.time_ms() <= after.mark_ms);
                let old: Vec<_> = old.cloned().collect();
                for credit in old {
                    after.pinned.remove(&credit);
                    let dropped = after.credits.remove(&credit);
                    if let Some(CreditState::Promised { amount, .. }) =
                        dropped.map(|credit| credit.state)
                    {
                        after.promised -= amount.get();
                    }
                }
            }
            (Self::PurgeWithoutMark, Request::Purge(_))
            | (Self::AcceptWithoutMark, Request::Accept(_)) => after.mark_ms = before.mark_ms,
            (Self::PrepareAnyway, Request::Prepare(prepare)) => {
                if let Ok(Reply::Later { .. }) = answer {
                    after.generation = prepare.generation;
                    after.base = prepare.base;
                    after.cut_ms = prepare.from_ms;
                    *answer = Ok(Reply::Prepared);
                }
            }
            (Self::ConfirmLate, Request::Confirm(confirm)) => {
                if let Some(entry) = after.ids.get_mut(&confirm.id)
                    && entry.state == State::Expired
                {
                    entry.state = State::Confirmed;
                    *answer = Ok(Reply::Recorded(State::Confirmed, Money::default()));
                }
            }
            _ => self.spoil_legs(before, after, request, answer),
        }
    }

    /// The same where other accounts wait.
    fn spoil_legs(
        self,
        before: &Segment,
        after: &mut Segment,
        request: &Request,
        answer: &mut Answer,
    ) {
        match (self, request) {
            // A caller looks before it removes.
            (Self::RemovePinned, Request::Inspect(_)) => {
                if let Ok(Reply::View(view)) = answer {
                    view.unfinished = 0;
                }
            }
            (Self::PromiseNothing, Request::Credit(credit)) if credit.is_promise => {
                *after = before.clone();
                *answer = Ok(Reply::Promised);
            }
            (Self::TakePromiseBack, Request::Purge(_)) => {
                for id in before.pinned.iter() {
                    let credit = after.credits.get_mut(id).unwrap();
                    if let CreditState::Promised { amount, .. } = credit.state {
                        credit.state = CreditState::Refused;
                        after.promised -= amount.get();
                        after.pinned.remove(id);
                        after.order.push_back(Final::Credit(id.clone()));
                    }
                }
            }
            (Self::CancelCommitted, Request::Cancel(cancel)) => {
                let committed = match after.ids.get(&cancel.id).map(|entry| &entry.state) {
                    Some(State::Committed(committed)) => committed.legs.sum().get(),
                    _ => return,
                };
                after.held -= committed;
                after.value += committed;
                after.sent.remove(&cancel.id);
                after.ids.get_mut(&cancel.id).unwrap().state = State::Cancelled;
            }
            _ => {}
        }
    }
}
