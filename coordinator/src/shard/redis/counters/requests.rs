//! Requests in the form that `lua/counter/segment` takes: a verb, and the arguments of its function after the segment.

use ringfence_segment_lock::{
    Caller, Change, HashKey, RequestId,
    segment::{
        Accept, Cancel, Capture, Collect, Committed, Confirm, Create, CreditId, FinishTransfer,
        Forget, GiveCredit, History, Lend, Loan, Op, Prepare, Refuse, Remove, Replace, Request,
        State,
    },
};

use super::{call::Sums, pack::Pack};
use crate::shard::{
    CounterOp, CounterRequest,
    stored::{
        push_change, reference_text,
        texts::{
            SPLIT, behind_pinned, caller_pieces, content_bytes, credit_key, credit_text,
            durability_text, id_key, id_text, limits_text, open_text, state_text,
        },
    },
};

/// Packed size of a request in bytes, about.
pub(super) const PACKED: usize = 128;

/// Packs a request to the group with that number.
pub(super) fn push(pack: &mut Pack, group: usize, request: &CounterRequest) {
    match &request.op {
        CounterOp::Segment(of) => push_request(pack, group, (of, request.hash_key)),
        CounterOp::ReadManifest => _ = verb(pack, group, "read_manifest", 0),
        CounterOp::SwapManifest {
            expected,
            manifest,
            durability,
        } => {
            let pack = verb(pack, group, "swap_manifest", 3);
            pack.number(*expected).text(manifest.as_bytes());
            pack.text(durability_text(*durability).as_bytes());
        }
    }
}

fn push_request(pack: &mut Pack, group: usize, (request, hash_key): (&Request, HashKey)) {
    match request {
        Request::Op(op) => push_op(verb(pack, group, "op", 12), op, hash_key),
        Request::Lend(lend) => push_lend(verb(pack, group, "lend", 4), lend),
        Request::Land(land) => {
            push_caller(
                push_loan(verb(pack, group, "land", 2), &land.loan),
                land.caller,
            );
        }
        Request::Collect(collect) => push_collect(verb(pack, group, "collect", 3), collect),
        Request::Thaw(thaw) => _ = push_caller(verb(pack, group, "thaw", 1), thaw.caller),
        Request::Refuse(refuse) => push_refuse(verb(pack, group, "refuse", 6), refuse, hash_key),
        Request::Confirm(confirm) => {
            push_confirm(verb(pack, group, "confirm", 6), confirm, hash_key)
        }
        Request::Capture(capture) => {
            push_capture(verb(pack, group, "capture", 6), capture, hash_key)
        }
        Request::Cancel(Cancel {
            id,
            generation,
            caller,
        }) => {
            let pack = push_id(verb(pack, group, "cancel", 5), hash_key, id).number(*generation);
            push_caller(pack, *caller).text(&open_text(hash_key, id));
        }
        Request::Expire(_) => _ = verb(pack, group, "expire", 0),
        Request::Credit(credit) => push_credit(verb(pack, group, "credit", 9), credit, hash_key),
        Request::FinishTransfer(finish) => {
            push_finish_transfer(verb(pack, group, "finish_transfer", 6), finish, hash_key)
        }
        Request::Forget(Forget { id, generation }) => {
            push_credit_id(verb(pack, group, "forget", 4), hash_key, id)
                .number(*generation)
                .text(&credit_text(id));
        }
        Request::Find(find) => {
            _ = push_id(verb(pack, group, "find", 3), hash_key, &find.id).number(find.generation)
        }
        Request::History(history) => push_history(verb(pack, group, "history", 3), history),
        Request::Sent(sent) => push_after(
            verb(pack, group, "sent", 1),
            sent.after.as_ref().map(|after| open_text(hash_key, after)),
        ),
        Request::Pinned(pinned) => {
            push_after(
                verb(pack, group, "pinned", 1),
                pinned.after.as_ref().map(behind_pinned),
            );
        }
        Request::Purge(_) => _ = verb(pack, group, "purge", 0),
        Request::Create(create) => _ = push_create(verb(pack, group, "create", 16), create),
        Request::Replace(replace) => push_replace(verb(pack, group, "replace", 18), replace),
        Request::Prepare(prepare) => _ = push_prepare(verb(pack, group, "prepare", 6), prepare),
        Request::Close(_) => _ = verb(pack, group, "close", 0),
        Request::Remove(remove) => push_remove(verb(pack, group, "remove", 4), remove),
        Request::Inspect(_) => _ = verb(pack, group, "inspect", 0),
        Request::Accept(accept) => push_accept(verb(pack, group, "accept", 9), accept),
        Request::ReadCopy(_) => _ = verb(pack, group, "read_copy", 0),
    }
}

/// Packs deposits and deductions at the group with that number: their answers in case all can be done, and the further
/// arguments that each alone would have.
pub(super) fn push_ops(
    pack: &mut Pack,
    (group, hash_key): (usize, HashKey),
    sums: Sums,
    ops: &[&Op],
) {
    let times = ops.iter().map(|op| op.id.time_ms());
    let (first, last) = (times.clone().min(), times.max());
    let generation = ops.iter().map(|op| op.generation).min();
    let pack = verb(pack, group, "ops", 9)
        .number(generation.unwrap_or_default())
        .number(first.unwrap_or_default())
        .number(last.unwrap_or_default());
    push_amount(push_amount(pack, sums.coming), sums.going);
    let keys: Vec<_> = ops.iter().map(|op| id_key(hash_key, &op.id)).collect();
    pack.array(ops.len());
    for key in &keys {
        pack.text(key);
    }
    pack.array(2 * ops.len());
    let done = state_text(&State::Done);
    for (op, key) in ops.iter().zip(&keys) {
        let content = content_bytes(op.change.digest());
        pack.text(key).texts(&[&content, &done]);
    }
    let mut effects = Vec::new();
    for op in ops.iter().filter(|op| op.logged) {
        let is_deposit = matches!(op.change, Change::Deposit { .. });
        let named = (&op.id, op.reference);
        push_change(&mut effects, is_deposit, op.change.amount(), named);
    }
    pack.text(&effects);
    let mut others = Pack::with_capacity(PACKED * ops.len());
    others.array(ops.len());
    for op in ops {
        let kind = kind(&op.change).as_bytes();
        let others = others
            .array(5)
            .number(op.id.time_ms())
            .number(op.generation)
            .text(kind);
        push_caller(push_amount(others, op.change.amount().get()), op.caller);
    }
    pack.text(&others.into_bytes());
}

/// Begins a request with `more` further parts.
fn verb<'a>(pack: &'a mut Pack, group: usize, word: &str, more: usize) -> &'a mut Pack {
    pack.array(2 + more)
        .number(group as u64)
        .text(word.as_bytes())
}

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Deposit { .. } => "deposit",
        Change::Deduct { .. } => "deduct",
        Change::Reserve { .. } => "reserve",
        Change::Transfer { .. } => "transfer",
        Change::TransferLegs { .. } => "legs",
    }
}

fn push_op(pack: &mut Pack, op: &Op, hash_key: HashKey) {
    let (deadline_ms, state) = match &op.change {
        Change::Deposit { .. } | Change::Deduct { .. } => (0, State::Done),
        &Change::Reserve {
            amount,
            deadline_ms,
        } => {
            let held = State::Held {
                amount,
                deadline_ms,
            };
            (deadline_ms, held)
        }
        Change::Transfer { amount, to } => {
            let (amount, to) = (*amount, to.clone());
            (0, State::Sent { amount, to })
        }
        Change::TransferLegs { legs } => {
            let (legs, capture) = (legs.clone(), None);
            (0, State::Committed(Box::new(Committed { legs, capture })))
        }
    };
    push_id(pack, hash_key, &op.id).number(op.generation);
    pack.text(&content_bytes(op.change.digest()));
    push_amount(
        pack.text(kind(&op.change).as_bytes()),
        op.change.amount().get(),
    );
    pack.text(&state_text(&state));
    push_caller(pack, op.caller);
    pack.array(op.lands.len());
    for loan in &op.lands {
        push_loan(pack, loan);
    }
    let is_named = op.logged || !state.is_final();
    let text = is_named.then(|| id_text(&op.id, ""));
    pack.number(deadline_ms).text(&text.unwrap_or_default());
    pack.text(&reference_text(op.reference));
}

fn push_lend(pack: &mut Pack, lend: &Lend) {
    let pack = pack.number(u64::from(lend.to)).number(lend.landed);
    push_caller(push_amount(pack, lend.want.get()), lend.caller);
}

fn push_history(pack: &mut Pack, history: &History) {
    pack.number(history.after)
        .number(history.since_ms)
        .number(u64::from(history.most));
}

fn push_collect(pack: &mut Pack, collect: &Collect) {
    pack.number(collect.generation);
    match collect.freeze {
        None => pack.truth(false).number(0),
        Some(freeze) => push_caller(pack, freeze.caller).number(freeze.for_ms),
    };
}

fn push_refuse(pack: &mut Pack, refuse: &Refuse, hash_key: HashKey) {
    push_id(pack, hash_key, &refuse.id).number(refuse.generation);
    pack.text(&content_bytes(refuse.change.digest()));
    pack.number(refuse.version);
    push_caller(pack, refuse.caller);
}

fn push_credit(pack: &mut Pack, credit: &GiveCredit, hash_key: HashKey) {
    push_credit_id(pack, hash_key, &credit.id).number(credit.generation);
    pack.text(&content_bytes(credit.content));
    push_amount(pack, credit.amount.get());
    push_caller(pack, credit.caller).text(&credit_text(&credit.id));
    pack.text(credit.unit.as_str().as_bytes())
        .truth(credit.is_promise);
}

fn push_confirm(pack: &mut Pack, confirm: &Confirm, hash_key: HashKey) {
    push_id(pack, hash_key, &confirm.id).number(confirm.generation);
    match confirm.amount {
        None => pack.truth(false),
        Some(amount) => push_amount(pack, amount.get()),
    };
    push_caller(pack, confirm.caller).text(&open_text(hash_key, &confirm.id));
}

fn push_capture(pack: &mut Pack, capture: &Capture, hash_key: HashKey) {
    let decided = State::Committed(Box::new(Committed {
        legs: capture.legs.clone(),
        capture: Some(capture.capture.clone()),
    }));
    push_id(pack, hash_key, &capture.id).number(capture.generation);
    push_caller(pack.text(&state_text(&decided)), capture.caller)
        .text(&open_text(hash_key, &capture.id));
}

fn push_finish_transfer(pack: &mut Pack, finish: &FinishTransfer, hash_key: HashKey) {
    push_id(pack, hash_key, &finish.id).number(finish.generation);
    pack.array(finish.refused.len());
    for account in &finish.refused {
        pack.text(account.as_str().as_bytes());
    }
    push_caller(pack, finish.caller).text(&open_text(hash_key, &finish.id));
}

fn push_create<'a>(pack: &'a mut Pack, create: &Create) -> &'a mut Pack {
    let terms = create.terms;
    let pack = push_prepare(pack, &create.prepare)
        .number(terms.idempotency_for_ms)
        .number(terms.idempotency_at_least_ms)
        .number(terms.skew_ms)
        .number(terms.ids_max as u64)
        .number(terms.effects_max as u64)
        .number(terms.effects_for_ms)
        .text(durability_text(terms.durability).as_bytes())
        .text(limits_text(&terms).unwrap_or_default().as_bytes());
    push_amount(pack, create.credit).number(create.planned_ms)
}

fn push_replace(pack: &mut Pack, replace: &Replace) {
    push_create(pack, &replace.create)
        .number(replace.losses)
        .number(replace.at_ms);
}

fn push_remove(pack: &mut Pack, remove: &Remove) {
    push_amount(pack.number(remove.generation), remove.credit)
        .number(remove.mark_ms)
        .number(remove.planned_ms);
}

fn push_accept(pack: &mut Pack, accept: &Accept) {
    let pack = push_prepare(pack, &accept.in_force)
        .number(accept.at_ms)
        .number(accept.version)
        .array(2 * accept.others.len());
    for (&other, &version) in &accept.others {
        pack.number(u64::from(other)).number(version);
    }
}

fn push_prepare<'a>(pack: &'a mut Pack, prepare: &Prepare) -> &'a mut Pack {
    pack.number(prepare.generation)
        .number(prepare.base)
        .number(prepare.from_ms)
        .truth(prepare.closed)
        .number(prepare.mark_ms)
        .text(prepare.manifest.as_bytes())
}

/// An id's key, and its time.
fn push_id<'a>(pack: &'a mut Pack, hash_key: HashKey, id: &RequestId) -> &'a mut Pack {
    pack.text(&id_key(hash_key, id)).number(id.time_ms())
}

fn push_caller(pack: &mut Pack, caller: Caller) -> &mut Pack {
    let (process, call) = caller_pieces(caller);
    pack.texts(&[&process, &call])
}

/// A credit's key, and its time.
fn push_credit_id<'a>(pack: &'a mut Pack, hash_key: HashKey, credit: &CreditId) -> &'a mut Pack {
    pack.text(&credit_key(hash_key, credit))
        .number(credit.id.time_ms())
}

fn push_after(pack: &mut Pack, after: Option<Vec<u8>>) {
    match after {
        None => pack.truth(false),
        Some(after) => pack.text(&after),
    };
}

fn push_loan<'a>(pack: &'a mut Pack, loan: &Loan) -> &'a mut Pack {
    pack.array(3).number(u64::from(loan.from)).number(loan.seq);
    push_amount(pack, loan.amount.get())
}

/// A number; or two, if one would not be exact.
fn push_amount(pack: &mut Pack, amount: i64) -> &mut Pack {
    match amount.unsigned_abs() {
        small @ 0..SPLIT => pack.number(small),
        large => pack.array(2).number(large / SPLIT).number(large % SPLIT),
    }
}
