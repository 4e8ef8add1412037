//! Accounts at coordinators: one call per step. Every request has an id or a goal, so that it may be repeated at
//! another coordinator.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use ringfence_api::{
    Error,
    v1::{
        self, AcceptAccountRequest, AccountSegment, AccountSegments, CancelRequest,
        CloseAccountRequest, ConfirmRequest, CreateAccountRequest, Decision, DeductRequest,
        DeleteAccountRequest, DepositRequest, EffectKind as Kind, FindRequest, FindResponse,
        GetAccountRequest, GetAccountResponse, GetBalanceRequest, GetHistoryRequest,
        LabelAccountRequest, ListAccountsRequest, ListAccountsResponse, ResegmentAccountRequest,
        ReservationState, ReserveRequest, SweepAccountRequest, TransferRequest,
        counter_service_client::CounterServiceClient,
    },
};
use ringfence_coordinator::name::Namespace;
use ringfence_ring::ShardId;
use ringfence_segment_lock::{
    Account, AccountEffect, AccountHistory, Amount, Balance, BalanceAfter, Changed, CounterError,
    Details, Durability, Ended, Found, HistoryCursor, Inspection, Leg, Legs, LostSegment,
    LostSegments, ManifestError, Reference, Referenced, RequestId, Reserved, Seen, Swept, Terms,
    limits::SEGMENTS_MAX,
    segment::{Committed, CreditId, Effect, EffectKind, SegmentView, State},
};
use tonic::Status;

use super::{
    failed,
    reach::{Failed, Reach},
    seen,
};
use crate::{AccountListPage, ListedAccount};

/// A coordinator asks its shards for about 5 s, and answers by then.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The same, for work on a whole account.
const WORK_WITHIN: Duration = Duration::from_secs(60);

/// Most effects in one answer.
const HISTORY_LIMIT: u32 = 1_000;

/// The accounts of a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    reach: Arc<Reach>,
    namespace: Namespace,
}

/// An account.
#[derive(Debug)]
pub(crate) struct RemoteCounter {
    of: Accounts,
    account: Account,
}

/// Makes a call of CounterService.
macro_rules! call {
    ($counter:expr, $within:expr, $method:ident, $message:expr) => {{
        let (message, reach) = ($message, &$counter.of.reach);
        let answer = reach.ask($within, |channel| {
            let request = reach.request(message.clone());
            async move { CounterServiceClient::new(channel).$method(request).await }
        });
        answer.await
    }};
}

/// Makes a call of CounterService that changes something.
macro_rules! change {
    ($counter:expr, $within:expr, $method:ident, $message:expr) => {
        call!($counter, $within, $method, $message)
            .map_err(|error| failed::counter(error, &$counter.account, &[]))
    };
}

impl Accounts {
    pub(crate) fn new(reach: Arc<Reach>, namespace: Namespace) -> Self {
        Self { reach, namespace }
    }

    pub(crate) fn open(&self, account: Account) -> RemoteCounter {
        let of = self.clone();
        RemoteCounter { of, account }
    }

    /// The accounts whose names begin with `prefix`.
    pub(crate) fn list(&self, prefix: String) -> crate::AccountList {
        let reach = self.reach.clone();
        let message = ListAccountsRequest {
            namespace: self.namespace.to_string(),
            prefix,
            conditions: Vec::new(),
        };
        let pages = async move {
            let pages = reach.call(|channel| {
                let request = reach.request(message.clone());
                async move {
                    CounterServiceClient::new(channel)
                        .list_accounts(request)
                        .await
                }
            });
            pages.await
        };
        let pages = stream::once(pages).flat_map(|pages| match pages {
            Ok(pages) => pages.map(page).left_stream(),
            Err(error) => stream::iter([unlisted(&error.to_string())]).right_stream(),
        });
        crate::AccountList::of(pages.boxed())
    }

    pub(crate) async fn create(
        &self,
        account: Account,
        terms: Terms,
        segments: u32,
    ) -> Result<RemoteCounter, CounterError> {
        // In a request, 0 is the default.
        terms.check().map_err(ManifestError::Terms)?;
        if !(1..=SEGMENTS_MAX).contains(&segments) {
            return Err(ManifestError::Segments { value: segments }.into());
        }
        let counter = self.open(account);
        let (durability, replicas) = durability(terms.durability);
        let request = CreateAccountRequest {
            account: counter.place(),
            segments,
            durability: durability.into(),
            replicas,
            idempotency_for: length(terms.idempotency_for_ms),
            idempotency_at_least: length(terms.idempotency_at_least_ms),
            skew: length(terms.skew_ms),
            ids_max: u32::try_from(terms.ids_max).unwrap_or(u32::MAX),
            effects_max: Some(u32::try_from(terms.effects_max).unwrap_or(u32::MAX)),
            effects_for: length(terms.effects_for_ms),
            floor: terms.floor,
            ceiling: terms.ceiling,
            unit: terms.unit.to_string(),
        };
        change!(counter, ANSWER_WITHIN, create_account, request)?;
        Ok(counter)
    }
}

impl RemoteCounter {
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Its name in a request.
    fn place(&self) -> Option<v1::Account> {
        Some(v1::Account {
            namespace: self.of.namespace.to_string(),
            name: self.account.as_str().to_owned(),
        })
    }

    pub(crate) async fn deposit(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
    ) -> Result<Changed, CounterError> {
        let (id, reference) = named(request);
        let request = DepositRequest {
            account: self.place(),
            id,
            amount: amount.get(),
            reference,
        };
        let answer = change!(self, ANSWER_WITHIN, deposit, request)?;
        Ok(changed((), answer.balance))
    }

    pub(crate) async fn deduct(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
    ) -> Result<Changed, CounterError> {
        let (id, reference) = named(request);
        let request = DeductRequest {
            account: self.place(),
            id,
            amount: amount.get(),
            reference,
        };
        let answer = change!(self, ANSWER_WITHIN, deduct, request)?;
        Ok(changed((), answer.balance))
    }

    pub(crate) async fn reserve(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
        deadline_ms: u64,
    ) -> Result<Changed<Reserved>, CounterError> {
        let (id, reference) = named(request);
        let request = ReserveRequest {
            account: self.place(),
            id,
            amount: amount.get(),
            deadline: Some(time(deadline_ms)),
            reference,
        };
        let answer = change!(self, ANSWER_WITHIN, reserve, request)?;
        let reserved = match answer.state() {
            ReservationState::Held => Reserved::Held,
            state => Reserved::Ended(ended(state)?),
        };
        Ok(changed(reserved, answer.balance))
    }

    pub(crate) async fn confirm(&self, id: &RequestId) -> Result<Changed<Ended>, CounterError> {
        let request = ConfirmRequest {
            account: self.place(),
            id: Some(request_id(id)),
            ..ConfirmRequest::default()
        };
        self.end(request).await
    }

    pub(crate) async fn confirm_part(
        &self,
        id: &RequestId,
        amount: Amount,
    ) -> Result<Changed<Ended>, CounterError> {
        let request = ConfirmRequest {
            account: self.place(),
            id: Some(request_id(id)),
            amount: amount.get(),
            ..ConfirmRequest::default()
        };
        self.end(request).await
    }

    pub(crate) async fn capture(
        &self,
        id: &RequestId,
        capture: &RequestId,
        legs: &Legs,
    ) -> Result<Changed<Ended>, CounterError> {
        let request = ConfirmRequest {
            account: self.place(),
            id: Some(request_id(id)),
            amount: 0,
            legs: messages(legs),
            capture_id: Some(request_id(capture)),
        };
        self.end(request).await
    }

    async fn end(&self, request: ConfirmRequest) -> Result<Changed<Ended>, CounterError> {
        let to = receivers(&request.legs);
        let answer = call!(self, ANSWER_WITHIN, confirm, request);
        let answer = answer.map_err(|error| failed::counter(error, &self.account, &to))?;
        Ok(changed(ended(answer.state())?, answer.balance))
    }

    pub(crate) async fn cancel(&self, id: &RequestId) -> Result<Changed<Ended>, CounterError> {
        let request = CancelRequest {
            account: self.place(),
            id: Some(request_id(id)),
        };
        let answer = change!(self, ANSWER_WITHIN, cancel, request)?;
        Ok(changed(ended(answer.state())?, answer.balance))
    }

    pub(crate) async fn transfer(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
        to: &Self,
    ) -> Result<Changed, CounterError> {
        let (id, reference) = named(request);
        let request = TransferRequest {
            account: self.place(),
            id,
            amount: amount.get(),
            to: to.account.as_str().to_owned(),
            reference,
            legs: Vec::new(),
        };
        let moved = call!(self, ANSWER_WITHIN, transfer, request);
        let to = [to.account.clone()];
        let moved = moved.map_err(|error| failed::counter(error, &self.account, &to))?;
        Ok(changed((), moved.balance))
    }

    pub(crate) async fn transfer_legs(
        &self,
        request: impl Into<Referenced<'_>>,
        legs: &Legs,
    ) -> Result<Changed, CounterError> {
        let (id, reference) = named(request);
        let request = TransferRequest {
            account: self.place(),
            id,
            reference,
            legs: messages(legs),
            ..TransferRequest::default()
        };
        let to = receivers(&request.legs);
        let moved = call!(self, ANSWER_WITHIN, transfer, request);
        let moved = moved.map_err(|error| failed::counter(error, &self.account, &to))?;
        Ok(changed((), moved.balance))
    }

    pub(crate) async fn find(&self, id: &RequestId) -> Result<Found, CounterError> {
        let request = FindRequest {
            account: self.place(),
            id: Some(request_id(id)),
        };
        let found =
            call!(self, ANSWER_WITHIN, find, request).map_err(|error| self.unread(error))?;
        decision(found)
    }

    pub(crate) async fn history(
        &self,
        from: &HistoryCursor,
        limit: u32,
    ) -> Result<AccountHistory, CounterError> {
        let request = GetHistoryRequest {
            account: self.place(),
            cursor: from.to_string(),
            since: None,
            limit: limit.clamp(1, HISTORY_LIMIT),
        };
        let found =
            call!(self, ANSWER_WITHIN, get_history, request).map_err(|error| self.unread(error))?;
        let effects = found.effects.into_iter().map(effect);
        Ok(AccountHistory {
            effects: effects.collect::<Option<_>>().ok_or_else(malformed)?,
            next: found.next.parse().map_err(|_| malformed())?,
            is_end: found.end,
            lost: found.lost_segments,
        })
    }

    pub(crate) async fn balance(&self) -> Result<Balance, CounterError> {
        self.balance_of(false).await
    }

    pub(crate) async fn exact_balance(&self) -> Result<Balance, CounterError> {
        self.balance_of(true).await
    }

    async fn balance_of(&self, exact: bool) -> Result<Balance, CounterError> {
        let request = GetBalanceRequest {
            account: self.place(),
            exact,
        };
        let found =
            call!(self, ANSWER_WITHIN, get_balance, request).map_err(|error| self.unread(error))?;
        Ok(Balance {
            ledger: found.ledger.into(),
            available: found.available.into(),
            in_flight: found.in_flight.into(),
            held: found.held.into(),
            losses: found.losses,
            lost: found.lost_segments as usize,
            counts_twice: found.counts_twice,
        })
    }

    pub(crate) async fn segments(&self) -> Result<u32, CounterError> {
        let homes = self.read().await?.homes;
        homes.ok_or_else(|| failed::unknown("the number of segments is being changed"))
    }

    pub(crate) async fn inspect(&self) -> Result<Inspection, CounterError> {
        Ok(inspection(self.read().await?.segments))
    }

    fn unread(&self, error: Failed) -> CounterError {
        failed::of_read(failed::counter(error, &self.account, &[]))
    }

    async fn read(&self) -> Result<GetAccountResponse, CounterError> {
        let request = GetAccountRequest {
            account: self.place(),
        };
        call!(self, ANSWER_WITHIN, get_account, request).map_err(|error| self.unread(error))
    }

    pub(crate) async fn resegment(&self, segments: u32) -> Result<(), CounterError> {
        let request = ResegmentAccountRequest {
            account: self.place(),
            segments,
        };
        change!(self, WORK_WITHIN, resegment_account, request)?;
        Ok(())
    }

    pub(crate) async fn label(
        &self,
        labels: &BTreeMap<String, Option<String>>,
    ) -> Result<(), CounterError> {
        let mut request = LabelAccountRequest {
            account: self.place(),
            ..LabelAccountRequest::default()
        };
        for (name, value) in labels {
            match value {
                Some(value) => _ = request.set.insert(name.clone(), value.clone()),
                None => request.remove.push(name.clone()),
            }
        }
        change!(self, ANSWER_WITHIN, label_account, request)?;
        Ok(())
    }

    pub(crate) async fn close(&self) -> Result<(), CounterError> {
        let request = CloseAccountRequest {
            account: self.place(),
        };
        change!(self, WORK_WITHIN, close_account, request)?;
        Ok(())
    }

    pub(crate) async fn delete(&self) -> Result<(), CounterError> {
        let request = DeleteAccountRequest {
            account: self.place(),
        };
        change!(self, WORK_WITHIN, delete_account, request)?;
        Ok(())
    }

    pub(crate) async fn sweep(&self) -> Result<Swept, CounterError> {
        let request = SweepAccountRequest {
            account: self.place(),
        };
        let swept = change!(self, WORK_WITHIN, sweep_account, request)?;
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let failures = swept.failures.into_iter().map(|failure| {
            let error = Error::from_detail(failure.error.unwrap_or_default(), failure.message);
            let repeats = false;
            failed::counter(Failed { error, repeats }, &self.account, &[])
        });
        Ok(Swept {
            expired: count(swept.expired),
            delivered: count(swept.delivered),
            returned: count(swept.returned),
            unpinned: count(swept.unpinned),
            purged: count(swept.purged),
            found: None,
            errors: failures.collect(),
        })
    }

    pub(crate) async fn accept_now(&self) -> Result<(Inspection, Duration), CounterError> {
        let request = AcceptAccountRequest {
            account: self.place(),
            no_wait: true,
        };
        let accepted = change!(self, WORK_WITHIN, accept_account, request)?;
        let until_new = accepted.until_new.unwrap_or_default().try_into();
        Ok((inspection(accepted.before), until_new.unwrap_or_default()))
    }
}

/// An id of a request, as a message.
pub(super) fn request_id(id: &RequestId) -> v1::RequestId {
    v1::RequestId {
        created_at: Some(time(id.time_ms())),
        name: id.name().to_owned(),
    }
}

fn messages(legs: &Legs) -> Vec<v1::Leg> {
    let leg = |leg: &Leg| v1::Leg {
        to: leg.to.as_str().to_owned(),
        amount: leg.amount.get(),
    };
    legs.iter().map(leg).collect()
}

fn receivers(legs: &[v1::Leg]) -> Vec<Account> {
    let names = legs.iter().map(|leg| Account::new(&leg.to));
    names.filter_map(Result::ok).collect()
}

fn committed(found: &FindResponse) -> Option<Committed> {
    let leg = |leg: &v1::Leg| {
        Some(Leg {
            to: Account::new(&leg.to).ok()?,
            amount: Amount::new(leg.amount).ok()?,
        })
    };
    let legs = found.legs.iter().map(leg).collect::<Option<_>>()?;
    let capture = match &found.capture_id {
        None => None,
        Some(id) => Some(RequestId::new(millis(id.created_at?), &id.name).ok()?),
    };
    let legs = Legs::new(legs).ok()?;
    Some(Committed { legs, capture })
}

/// The id and the reference of a request, as in a message.
fn named<'a>(request: impl Into<Referenced<'a>>) -> (Option<v1::RequestId>, Vec<u8>) {
    let Referenced { id, reference } = request.into();
    let reference = reference.map_or_else(Vec::new, |Reference(bytes)| bytes.to_vec());
    (Some(request_id(id)), reference)
}

/// The answer to a change.
fn changed<T>(outcome: T, balance: Option<v1::BalanceAfter>) -> Changed<T> {
    let balance = balance.map(|balance| BalanceAfter {
        ledger: balance.ledger,
        available: balance.available,
        held: balance.held,
    });
    Changed { outcome, balance }
}

/// A durability, with its number of replicas, as a message.
pub(super) fn durability(durability: Durability) -> (v1::Durability, u32) {
    match durability {
        Durability::Memory => (v1::Durability::Memory, 0),
        Durability::Disk => (v1::Durability::Disk, 0),
        Durability::Replicas(count) => (v1::Durability::Replicas, count.into()),
    }
}

fn ended(state: ReservationState) -> Result<Ended, CounterError> {
    match state {
        ReservationState::Confirmed => Ok(Ended::Confirmed),
        ReservationState::Cancelled => Ok(Ended::Cancelled),
        ReservationState::Expired => Ok(Ended::Expired),
        ReservationState::Held | ReservationState::Unspecified => {
            Err(failed::unknown("a coordinator of another release"))
        }
    }
}

fn malformed() -> CounterError {
    failed::unknown("a coordinator of another release")
}

fn effect(found: v1::AccountEffect) -> Option<AccountEffect> {
    let amount = Amount::new(found.amount).ok()?;
    let id = || {
        let id = found.id.clone()?;
        RequestId::new(millis(id.created_at?), &id.name).ok()
    };
    let account = || Account::new(&found.counterpart).ok();
    let kind = match found.kind() {
        Kind::Deposited => EffectKind::Deposited(id()?),
        Kind::Deducted => EffectKind::Deducted(id()?),
        Kind::Reserved => EffectKind::Reserved(id()?),
        Kind::Confirmed => EffectKind::Confirmed(id()?),
        Kind::Cancelled => EffectKind::Cancelled(id()?),
        Kind::Expired => EffectKind::Expired(id()?),
        Kind::Sent => EffectKind::Sent(id()?, account()?),
        Kind::Delivered => EffectKind::Delivered(id()?, account()?),
        Kind::Returned => EffectKind::Returned(id()?, account()?),
        Kind::Received => EffectKind::Received(CreditId {
            id: id()?,
            from: account()?,
            reservation: None,
        }),
        Kind::Lent => EffectKind::Lent {
            to: found.other_segment,
            seq: found.loan,
        },
        Kind::Landed => EffectKind::Landed {
            from: found.other_segment,
            seq: found.loan,
        },
        Kind::Unspecified => return None,
    };
    Some(AccountEffect {
        segment: found.segment,
        effect: Effect {
            number: found.number,
            at_ms: millis(found.at?),
            kind,
            amount,
            value: found.available,
            held: found.held,
            reference: match found.reference.len() {
                0 => None,
                _ => Some(Reference(found.reference.try_into().ok()?)),
            },
        },
        follows_gap: found.follows_gap,
    })
}

fn decision(found: FindResponse) -> Result<Found, CounterError> {
    let amount = || Amount::new(found.amount).map_err(|_| malformed());
    let at = |time: Option<prost_types::Timestamp>| time.map(millis).ok_or_else(malformed);
    Ok(Found::Decided(match found.decision() {
        Decision::NeverSeen => return Ok(Found::NeverSeen),
        Decision::Forgotten => {
            let mark_ms = at(found.forgotten_until)?;
            return Ok(Found::Forgotten { mark_ms });
        }
        Decision::Done => State::Done,
        Decision::Insufficient => State::Insufficient,
        Decision::Held => State::Held {
            amount: amount()?,
            deadline_ms: at(found.deadline)?,
        },
        Decision::Confirmed => State::Confirmed,
        Decision::Cancelled => State::Cancelled,
        Decision::Expired => State::Expired,
        Decision::Sent => State::Sent {
            amount: amount()?,
            to: Account::new(&found.to).map_err(|_| malformed())?,
        },
        Decision::Committed => State::Committed(Box::new(committed(&found).ok_or_else(malformed)?)),
        Decision::Delivered => State::Delivered,
        Decision::Returned => State::Returned,
        Decision::Unspecified => return Err(malformed()),
    }))
}

fn page(page: Result<ListAccountsResponse, Status>) -> AccountListPage {
    let page = match page {
        Ok(page) => page,
        Err(status) => return unlisted(status.message()),
    };
    let listed = |listed: v1::ListedAccount| {
        let account = Account::new(&listed.name).ok()?;
        let found = match listed.failure {
            None => Ok(inspection(listed.segments)),
            Some(failure) => {
                let error = Error::from_detail(failure.error.unwrap_or_default(), failure.message);
                let repeats = false;
                Err(failed::counter(Failed { error, repeats }, &account, &[]))
            }
        };
        Some(ListedAccount { account, found })
    };
    let accounts = match &*page.error {
        "" => Ok(page.accounts.into_iter().filter_map(listed).collect()),
        reason => Err(seen::refused(reason)),
    };
    AccountListPage {
        shard: ShardId::new(&page.shard).unwrap_or_else(|_| seen::coordinator()),
        accounts,
    }
}

/// The page of a list that failed.
fn unlisted(reason: &str) -> AccountListPage {
    AccountListPage {
        shard: seen::coordinator(),
        accounts: Err(seen::refused(reason)),
    }
}

fn inspection(segments: Option<AccountSegments>) -> Inspection {
    let AccountSegments {
        present,
        lost,
        unit,
        floor,
        ceiling,
        labels,
    } = segments.unwrap_or_default();
    let rate = |segment: &AccountSegment| Some((segment.index, segment.changes_per_second?));
    let changes_per_s = present.iter().filter_map(rate).collect();
    let views = present.into_iter().map(|segment| {
        let view = SegmentView {
            value: segment.available,
            held: segment.held,
            doubtful: segment.in_doubt,
            losses: segment.losses,
            unfinished: usize::try_from(segment.unfinished).unwrap_or(usize::MAX),
            mark_ms: segment.forgotten_until.map_or(0, millis),
            ..SegmentView::default()
        };
        (segment.index, view)
    });
    let lost = lost.into_iter().map(|segment| LostSegment {
        index: segment.index,
        last_seen: segment.last_seen.map(|seen| Seen {
            owned: seen.amount,
            losses: seen.losses,
            at_ms: seen.at.map_or(0, millis),
            version: 0,
        }),
    });
    Inspection {
        details: Details {
            unit: unit.parse().unwrap_or_default(),
            floor,
            ceiling,
            labels: labels.into_iter().collect(),
        },
        views: views.collect::<BTreeMap<_, _>>(),
        lost: LostSegments(lost.collect()),
        changes_per_s,
    }
}

fn length(millis: u64) -> Option<prost_types::Duration> {
    Duration::from_millis(millis).try_into().ok()
}

fn time(millis: u64) -> prost_types::Timestamp {
    let since = Duration::from_millis(millis);
    prost_types::Timestamp {
        seconds: since.as_secs().try_into().unwrap_or(i64::MAX),
        nanos: since.subsec_nanos().try_into().unwrap_or_default(),
    }
}

fn millis(time: prost_types::Timestamp) -> u64 {
    let seconds = u64::try_from(time.seconds).unwrap_or_default();
    let millis = u64::try_from(time.nanos / 1_000_000).unwrap_or_default();
    seconds.saturating_mul(1000).saturating_add(millis)
}
