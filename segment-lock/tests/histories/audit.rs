//! What must be true after every request.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_segment_lock::{
    Account, At, Change, HashKey, RequestId,
    segment::{
        Answer, Committed, CreditId, CreditState, Effect, EffectKind, Outcome, Refusal, Refuse,
        Reply, Request, Segment, State,
    },
};

type Segments = BTreeMap<At, Segment>;

/// A request of an account.
type Key = (Account, RequestId);

/// What one account has at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    /// What can be spent.
    pub(crate) available: i128,
    pub(crate) held: i128,
}

#[derive(Debug, Default)]
pub(crate) struct Audit {
    pub(crate) violation: Option<String>,
    pub(crate) reached: BTreeMap<&'static str, usize>,
    /// What was put in and not taken out, in all accounts.
    books: i128,
    /// What each account had, after every request.
    wholes: Vec<BTreeMap<Account, Whole>>,
    /// How many requests there had been before the first of a call.
    begun: BTreeMap<u64, usize>,
    /// How often a request took effect.
    effects: BTreeMap<Key, usize>,
    /// By destination.
    credited: BTreeMap<(Account, CreditId), usize>,
    /// The first answer to each request.
    answers: BTreeMap<Key, &'static str>,
    /// How much was lost with segments: what was in them, and what was on its way there when that was accepted.
    lost: i128,
    /// Segments that are lost, and whose replacement is not accepted yet.
    gone: Segments,
    /// What each transfer is, once it was sent.
    transfers: BTreeMap<Key, (Account, i64)>,
    /// Accounts that have had their credit line.
    lent: BTreeSet<Account>,
    /// Segments that were removed.
    pub(crate) removed: BTreeSet<At>,
    /// Accounts that are deleted, with their segments.
    deleted: BTreeSet<Account>,
}

impl Audit {
    pub(crate) fn reach(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    pub(crate) fn violated(&mut self, what: impl FnOnce() -> String) {
        let count = self.wholes.len();
        self.violation
            .get_or_insert_with(|| format!("after {count} requests: {}", what()));
    }

    /// How many requests there have been.
    pub(crate) fn now(&self) -> usize {
        self.wholes.len()
    }

    /// Whether the request ever took effect.
    pub(crate) fn took_effect(&self, account: &Account, id: &RequestId) -> bool {
        self.effects.contains_key(&(account.clone(), id.clone()))
    }

    /// An exact balance was answered to a call that began when there had been `begun` requests.
    pub(crate) fn exact(&mut self, account: &Account, begun: usize, answered: Whole) {
        self.reach("exact");
        if answered.held > 0 {
            self.reach("exact while something is held");
        }
        if !self
            .wholes_since(account, begun)
            .any(|whole| whole == answered)
        {
            self.violated(|| format!("{account} never had {answered:?} during the call"));
        }
    }

    /// What the account had at every instant since there had been `begun` requests.
    fn wholes_since(&self, account: &Account, begun: usize) -> impl Iterator<Item = Whole> {
        let wholes = &self.wholes[begun.saturating_sub(1)..];
        let wholes = wholes
            .iter()
            .map(|all| all.get(account).copied().unwrap_or_default());
        let before = (begun == 0).then(Whole::default);
        before.into_iter().chain(wholes)
    }

    pub(crate) fn request(
        &mut self,
        at: &At,
        before: Option<&Segment>,
        segments: &Segments,
        request: &Request,
        answer: &Answer,
    ) {
        let after = &segments.get(at);
        if let (Some(before), Some(after)) = (before, after) {
            self.entries(at, before, after, request);
            self.credits(at, before, after);
            self.sound(at, after);
            self.logged(at, before, after);
        }
        if let (None, Some(made), Request::Create(_)) = (before, after, request)
            && made.value > 0
        {
            self.lent(at, made.value);
        }
        if let (Some(before), Ok(Reply::Removed)) = (before, answer) {
            self.removed(at, before);
        }
        if after.is_some() && self.deleted.contains(&at.account) {
            self.violated(|| format!("{at:?} is there, and its account is deleted"));
        }
        let is_accepted = after.is_some_and(|after| !after.awaits_versions);
        if is_accepted && self.gone.contains_key(at) {
            self.replaced(segments, at);
        }
        self.answered(at, request, answer);
        if let Request::Op(op) = request {
            let now = self.now();
            self.begun.entry(op.caller.call).or_insert(now);
        }
        self.whole(segments);
        if let (Request::Refuse(refuse), Ok(Reply::Recorded(State::Insufficient, _))) =
            (request, answer)
            && before.is_some_and(|before| !before.ids.contains_key(&refuse.id))
        {
            self.insufficient(&at.account, refuse);
        }
    }

    /// A segment went with its account, and with the credit line that it came with.
    fn removed(&mut self, at: &At, before: &Segment) {
        self.reach("removed");
        self.books -= i128::from(before.value);
        if at.index == 0 {
            self.lent.remove(&at.account);
        }
        self.removed.insert(at.clone());
    }

    /// Whether an account is deleted, with its segments.
    pub(crate) fn is_gone(&mut self, account: &Account, is_gone: bool) {
        match is_gone {
            true => _ = self.deleted.insert(account.clone()),
            false => _ = self.deleted.remove(account),
        }
    }

    /// A segment came with the credit line of its account, which comes once.
    fn lent(&mut self, at: &At, credit: i64) {
        self.reach("credit line");
        self.books += i128::from(credit);
        if !self.lent.insert(at.account.clone()) {
            self.violated(|| format!("{at:?} came with the credit line again"));
        }
    }

    /// What became of requests.
    fn entries(&mut self, at: &At, before: &Segment, after: &Segment, request: &Request) {
        for (id, entry) in &after.ids {
            let former = before.ids.get(id).map(|entry| &entry.state);
            if former == Some(&entry.state) {
                continue;
            }
            match (former, &entry.state) {
                (
                    None,
                    State::Done | State::Held { .. } | State::Sent { .. } | State::Committed(_),
                ) => {
                    self.took(at, id, request);
                }
                (Some(State::Held { .. }), State::Committed(_)) => self.reach("captured"),
                (Some(State::Committed(committed)), state) if state.is_final() => {
                    self.paid(at, id, committed, after);
                }
                (Some(State::Held { amount, .. }), State::Confirmed) => {
                    self.books -= i128::from(amount.get());
                    self.reach("confirmed");
                }
                (Some(State::Expired), State::Confirmed) => self.reach("confirmed late"),
                (Some(State::Held { .. }), State::Cancelled) => self.reach("cancelled"),
                (Some(State::Held { .. }), State::Expired) => self.reach("expired"),
                (Some(State::Sent { .. }), State::Delivered) => {
                    self.reach("delivered");
                    let (to, amount) = self.transfers[&(at.account.clone(), id.clone())].clone();
                    if !self.has_credit(&to, credit_id(&at.account, id)) {
                        self.arrived_nowhere(id, amount);
                    }
                }
                (Some(State::Sent { .. }), State::Returned) => self.reach("returned"),
                (None, State::Insufficient | State::Cancelled) => {}
                (former, now) => self.violated(|| format!("{id} went from {former:?} to {now:?}")),
            }
        }
    }

    /// A transfer was delivered and never credited: its destination is in the place of a lost segment, perhaps.
    fn arrived_nowhere(&mut self, id: &RequestId, amount: i64) {
        match self.reached.contains_key("segment lost") {
            true => self.lost += i128::from(amount),
            false => self.violated(|| format!("{id} was delivered, and never credited")),
        }
    }

    fn has_credit(&self, to: &Account, id: CreditId) -> bool {
        self.credited.contains_key(&(to.clone(), id))
    }

    /// The legs of a decision are all paid. Only where a segment was lost, one may have come back.
    fn paid(&mut self, at: &At, id: &RequestId, committed: &Committed, after: &Segment) {
        self.reach("paid");
        for leg in committed.legs.iter() {
            let came_back = EffectKind::Returned(id.clone(), leg.to.clone());
            let mut log = after.log.effects.iter();
            let came_back = log.any(|effect| effect.kind == came_back);
            let is_credited = self.has_credit(&leg.to, leg_id(&at.account, id, committed));
            match (is_credited, came_back) {
                (true, false) => {}
                (false, true) if self.reached.contains_key("segment lost") => {}
                (false, false) => self.arrived_nowhere(id, leg.amount.get()),
                _ => self.violated(|| {
                    format!("{id}: {leg:?} came back: {came_back}, and is credited: {is_credited}")
                }),
            }
        }
    }

    /// A segment is lost, with all that is in it.
    pub(crate) fn lose(&mut self, segments: &mut Segments, at: &At) {
        let (before, _) = self.sum(segments);
        if let Some(gone) = segments.remove(at) {
            // A replacement that is lost, too, had nothing.
            self.gone.entry(at.clone()).or_insert(gone);
            let (after, _) = self.sum(segments);
            self.lost += before - after;
            self.reach("segment lost");
        }
    }

    /// A lost segment was replaced, and that is accepted: what was on its way there is lost, too.
    fn replaced(&mut self, segments: &Segments, at: &At) {
        let mut before = segments.clone();
        before.remove(at);
        let (before, _) = self.sum(&before);
        self.gone.remove(at);
        let (after, _) = self.sum(segments);
        self.lost += before - after;
    }

    fn took(&mut self, at: &At, id: &RequestId, request: &Request) {
        let key = (at.account.clone(), id.clone());
        let effects = self.effects.entry(key.clone()).or_default();
        *effects += 1;
        if *effects > 1 {
            self.violated(|| format!("{id} took effect again"));
        }
        let Request::Op(op) = request else {
            return self.violated(|| format!("{id} took effect by {request:?}"));
        };
        let amount = op.change.amount().get();
        match &op.change {
            Change::Deposit { .. } => {
                self.books += i128::from(amount);
                self.reach("deposit");
            }
            Change::Deduct { .. } => {
                self.books -= i128::from(amount);
                self.reach("deduct");
            }
            Change::Reserve { .. } => self.reach("reserve"),
            Change::Transfer { to, .. } => drop(self.transfers.insert(key, (to.clone(), amount))),
            Change::TransferLegs { .. } => {}
        }
        if !op.lands.is_empty() {
            self.reach("borrowed");
        }
    }

    fn credits(&mut self, at: &At, before: &Segment, after: &Segment) {
        for (id, credit) in &after.credits {
            let former = before.credits.get(id).map(|credit| credit.state);
            match (former, credit.state) {
                (None, CreditState::Promised { .. }) => self.reach("promised"),
                (Some(CreditState::Promised { .. }), CreditState::Refused) => {
                    self.reach("promise taken back");
                }
                _ => {}
            }
            let is_given = former == Some(CreditState::Pinned);
            if credit.state != CreditState::Pinned || is_given {
                continue;
            }
            let key = (at.account.clone(), id.clone());
            let credited = self.credited.entry(key).or_default();
            *credited += 1;
            if *credited > 1 {
                self.violated(|| format!("{id:?} was credited again"));
            }
        }
    }

    /// Whether a segment's numbers agree.
    fn sound(&mut self, at: &At, segment: &Segment) {
        let held = segment.ids.values().map(|entry| match &entry.state {
            State::Held { amount, .. } | State::Sent { amount, .. } => amount.get(),
            State::Committed(committed) => committed.legs.sum().get(),
            _ => 0,
        });
        let held: i64 = held.sum();
        let promised = segment.credits.values().map(|credit| match credit.state {
            CreditState::Promised { amount, .. } => amount.get(),
            _ => 0,
        });
        let promised: i64 = promised.sum();
        if segment.promised != promised
            || segment.value + held + promised > segment.terms.owned_max()
        {
            self.violated(|| format!("{at:?} says {} is promised: {segment:?}", segment.promised));
        }
        if segment.value < 0 || segment.held != held || segment.value.checked_add(held).is_none() {
            self.violated(|| {
                let Segment {
                    value, held: says, ..
                } = segment;
                format!("{at:?} has {value}, and says {says} is held where {held} is")
            });
        }
    }

    /// Whether the effects that the request appended are the change of the money, and no request has one twice.
    fn logged(&mut self, at: &At, before: &Segment, after: &Segment) {
        let mut money = (before.value, before.held);
        let mut number = before.log.last;
        let new = after.log.effects.iter();
        for effect in new.filter(|effect| effect.number > before.log.last) {
            let (signs, amount) = (effect.kind.signs(), effect.amount.get());
            money = (money.0 + signs.0 * amount, money.1 + signs.1 * amount);
            number += 1;
            if (effect.number, effect.value, effect.held) != (number, money.0, money.1) {
                self.violated(|| format!("{at:?} logs {effect:?}, and has {number}, {money:?}"));
            }
            let same = |former: &&Effect| former.kind == effect.kind;
            if after.log.effects.iter().filter(same).count() > 1 {
                self.violated(|| format!("{at:?} logs {effect:?} twice"));
            }
        }
        if money != (after.value, after.held) {
            self.violated(|| format!("{at:?} logs {money:?}, and has {after:?}"));
        }
    }

    /// The first answer to a request is the answer to every repeat.
    fn answered(&mut self, at: &At, request: &Request, answer: &Answer) {
        let id = match request {
            Request::Op(op) => &op.id,
            Request::Refuse(refuse) => &refuse.id,
            Request::Prepare(_) if matches!(answer, Ok(Reply::Later { .. })) => {
                return self.reach("planned later");
            }
            _ => return,
        };
        let now = match answer {
            Ok(Reply::Recorded(State::Done, _)) => "done",
            Ok(Reply::Recorded(State::Insufficient, _)) => "insufficient",
            Ok(Reply::Recorded(State::Held { .. } | State::Confirmed | State::Expired, _)) => {
                "held"
            }
            Ok(Reply::Recorded(State::Committed(committed), _)) => match committed.capture {
                Some(_) => "held",
                None => "sent",
            },
            Ok(Reply::Recorded(State::Sent { .. } | State::Delivered | State::Returned, _)) => {
                "sent"
            }
            Err(Refusal::TooOld { .. }) => return self.reach("too old"),
            Err(Refusal::Busy { .. }) => return self.reach("frozen"),
            // Of a reservation that was held, or was cancelled before it came.
            _ => return,
        };
        let key = (at.account.clone(), id.clone());
        let first = *self.answers.entry(key).or_insert(now);
        if first != now {
            self.violated(|| format!("{id} was answered {first}, and now {now}"));
        }
        if now == "insufficient" {
            self.reach("insufficient");
        }
    }

    /// Conservation: what is there, in flight, held, and sent and not yet credited, is what was put
    /// in and not taken out; less what was lost, of which loans on their way from there may still land.
    fn whole(&mut self, segments: &Segments) {
        let (all, wholes) = self.sum(segments);
        self.wholes.push(wholes);
        let (books, lost) = (self.books, self.lost);
        if all > books || all + lost < books {
            self.violated(|| {
                format!("there is {all}, and should be {books}, of which {lost} is lost")
            });
        }
    }

    /// What there is, and what each account has that can be spent.
    fn sum(&self, segments: &Segments) -> (i128, BTreeMap<Account, Whole>) {
        let mut wholes: BTreeMap<Account, Whole> = BTreeMap::new();
        let mut all = 0;
        for (at, segment) in segments {
            let (in_flight, to_gone) = self.in_flight(segments, at, segment);
            let available = i128::from(segment.value) + in_flight;
            let held = i128::from(segment.held);
            let whole = wholes.entry(at.account.clone()).or_default();
            whole.available += available;
            whole.held += held;
            all += available + to_gone + held;
            let sent = segment.sent.iter();
            all -= i128::from(sent.map(|id| self.arrived(at, id, segment)).sum::<i64>());
        }
        (all, wholes)
    }

    /// The part of an unfinished transfer that its destinations have.
    fn arrived(&self, at: &At, id: &RequestId, segment: &Segment) -> i64 {
        match &segment.ids[id].state {
            State::Sent { amount, to } if self.has_credit(to, credit_id(&at.account, id)) => {
                amount.get()
            }
            State::Committed(committed) => {
                let credit = leg_id(&at.account, id, committed);
                let legs = committed.legs.iter();
                let arrived = legs.filter(|leg| self.has_credit(&leg.to, credit.clone()));
                arrived.map(|leg| leg.amount.get()).sum()
            }
            _ => 0,
        }
    }

    /// What is on its way from a segment: to segments that there are, and to those that are gone.
    fn in_flight(&self, segments: &Segments, at: &At, segment: &Segment) -> (i128, i128) {
        let (mut there, mut to_gone) = (0, 0);
        for (to, loan) in &segment.out {
            let to = At {
                account: at.account.clone(),
                index: *to,
                place: at.place,
                is_replicated: false,
                hash_key: HashKey::default(),
            };
            let lands =
                |to: &Segment| loan.seq > to.inn.get(&at.index).copied().unwrap_or_default();
            let amount = i128::from(loan.amount);
            let there_is = segments.get(&to).filter(|to| !to.awaits_versions);
            match (there_is, self.gone.get(&to)) {
                (Some(to), _) if lands(to) => there += amount,
                (None, Some(to)) if lands(to) => to_gone += amount,
                _ => {}
            }
        }
        (there, to_gone)
    }

    /// An account was found short by a call: was it ever, during the call?
    fn insufficient(&mut self, account: &Account, refuse: &Refuse) {
        let begun = self
            .begun
            .get(&refuse.caller.call)
            .copied()
            .unwrap_or_default();
        let amount = i128::from(refuse.change.amount().get());
        if !self
            .wholes_since(account, begun)
            .any(|whole| whole.available < amount)
        {
            let id = &refuse.id;
            self.violated(|| format!("{account} always had {amount}, and {id} was insufficient"));
        }
    }

    /// Whatever was begun is finished, once everybody has swept.
    pub(crate) fn finished(&mut self, segments: &Segments) {
        for (at, segment) in segments {
            let open = (segment.sent.len(), segment.pinned.len(), segment.due.len());
            if open != (0, 0, 0) {
                self.violated(|| format!("{at:?} has sent, pinned, held: {open:?}"));
            }
        }
    }

    /// What a destination said is what the source did.
    pub(crate) fn outcome(&mut self, account: &Account, id: &RequestId, outcome: Outcome) {
        let credited = self
            .credited
            .keys()
            .any(|(_, credit)| *credit == credit_id(account, id));
        let may_be_lost = outcome == Outcome::Credited && self.reached.contains_key("segment lost");
        if credited != (outcome == Outcome::Credited) && !may_be_lost {
            self.violated(|| format!("{id}: {outcome:?}, and credited: {credited}"));
        }
    }
}

fn credit_id(from: &Account, id: &RequestId) -> CreditId {
    CreditId {
        id: id.clone(),
        from: from.clone(),
        reservation: None,
    }
}

/// The id by which the destinations know their legs.
fn leg_id(from: &Account, id: &RequestId, committed: &Committed) -> CreditId {
    CreditId {
        id: committed.capture.as_ref().unwrap_or(id).clone(),
        from: from.clone(),
        reservation: committed.capture.as_ref().map(|_| id.clone()),
    }
}
