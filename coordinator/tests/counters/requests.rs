//! Random requests of all kinds, to a few segments of a few names, so that they meet.

use proptest::{collection::vec, option, prelude::*, sample::select};
use ringfence_segment_lock::{
    Change, Reference, Unit,
    segment::{
        Accept, Cancel, Capture, Close, Collect, Confirm, Create, Expire, Find, FinishTransfer,
        Forget, Freeze, GiveCredit, History, Inspect, Land, Lend, Loan, Op, Pinned, Purge,
        ReadCopy, Refuse, Remove, Replace, Request, Sent, Thaw,
    },
};

use super::{
    desk::caller,
    layouts::{create, prepare},
    names::{account, at, credit_of, id_of, legs, money},
};

/// How many segments there are.
pub(crate) const SEGMENTS: usize = 3;

/// What is left of a window that was cut.
pub(crate) const AGED_MS: u64 = 30_000;

/// A time, from the server's clock at the beginning: an hour is past the window, and past the skew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since(pub(crate) i64);

/// One request to one of the segments, told as data so that it can be shown and shrunk.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Op(Id, Kind, u64, Vec<(u32, u64, i64)>, u64),
    Lend(u32, u64, i64, u64),
    Land(u32, u64, i64, u64),
    Collect(u64, Option<(u64, u64)>),
    Thaw(u64),
    Refuse(Id, Kind, u64, u64),
    /// With the amount, if it is a part.
    Confirm(Id, Option<i64>, u64, u64),
    /// By the id of that name, for one account or two.
    Capture(Id, u8, Vec<i64>, u64),
    Cancel(Id, u64, u64),
    Expire,
    /// With whether it is a promise.
    Credit(Id, u8, i64, u64, u64, bool),
    /// With the accounts that refused, as bits.
    FinishTransfer(Id, u8, u64, u64),
    Forget(Id, u8, u64),
    Find(Id, u64),
    /// Effects after a number, of this time or later.
    History(u64, Since, u32),
    Sent(Option<Id>),
    Pinned(Option<(Id, u8)>),
    Purge,
    /// Planned at a time.
    Create(u64, u8, Since),
    /// With the losses of before, and the caller's time.
    Replace(u64, u8, u64, Since),
    Prepare(u64, u64, Since, bool),
    Close,
    /// With the credit that it must have, the mark, and the time of the last plan.
    Remove(u64, i64, Since, Since),
    Inspect,
    /// At a time of the caller's clock; whether the segment's version is the present one; with a version of the first.
    Accept(u64, Since, bool, u64),
    /// No request: before its batch is sent, the segment is marked: in doubt, or as one that lost changes.
    Lose(bool),
    /// No request: before its batch is sent, the segment's window is cut to [`AGED_MS`], as if time had passed.
    Age,
    ReadCopy,
}

/// A request's id.
pub(crate) type Id = (Since, u8);

/// What a request asks for.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Deposit(i64),
    Deduct(i64),
    Reserve(i64, Since),
    Transfer(i64, u8),
    /// For one account or two.
    Legs(Vec<i64>),
}

/// A batch: steps, each for one of the segments.
pub(crate) fn batches() -> impl Strategy<Value = Vec<Vec<(usize, Step)>>> {
    let one = (0..SEGMENTS, step()).prop_map(|step| vec![step]);
    let some = prop_oneof![8 => one, 2 => rush(), 1 => life(), 1 => fresh(), 1 => loss(), 1 => age(), 1 => end()];
    let batch = vec(some, 1..20).prop_map(|some| some.concat());
    vec(batch, 1..14)
}

/// What goes together: deposits and deductions at one segment, mostly each of an id of its own.
fn rush() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let kind = prop_oneof![
        2 => (1..50_i64).prop_map(Kind::Deduct),
        1 => (1..50_i64).prop_map(Kind::Deposit),
        1 => amount().prop_map(Kind::Deduct),
        1 => amount().prop_map(Kind::Deposit),
    ];
    let asked = vec((since(), kind, generation(), call()), 2..6);
    (0..SEGMENTS, 4..12_u8, asked).prop_map(|(segment, first, asked)| {
        let names = (first..12).chain(4..first).cycle();
        let ops = names
            .zip(asked)
            .map(|(name, (since, kind, generation, call))| {
                Step::Op((since, name), kind, generation, Vec::new(), call)
            });
        ops.map(|op| (segment, op)).collect()
    })
}

/// A reservation or a transfer that there is money for, mostly, and what may become of it.
fn life() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let amount = || 1..50_i64;
    let kind = prop_oneof![
        2 => amount().prop_map(|amount| (Since(0), Kind::Reserve(amount, Since(60_000)))),
        2 => amount().prop_map(|amount| (Since(-60_000), Kind::Reserve(amount, Since(-45_000)))),
        2 => (since(), amount(), 0..2_u8).prop_map(|(since, amount, to)| (since, Kind::Transfer(amount, to))),
        2 => (since(), amounts(1..25)).prop_map(|(since, amounts)| (since, Kind::Legs(amounts))),
    ];
    let asked = (0..SEGMENTS, 0..12_u8, kind);
    asked.prop_flat_map(|(segment, name, (since, kind))| {
        let id = (since, name);
        let then = prop_oneof![
            2 => Just(Step::Confirm(id, None, 9, 1)),
            1 => (1..25_i64).prop_map(move |amount| Step::Confirm(id, Some(amount), 9, 1)),
            3 => (amounts(1..25), 4..6_u8).prop_map(move |(amounts, name)| Step::Capture(id, name, amounts, 1)),
            1 => Just(Step::Cancel(id, 9, 1)),
            2 => (0..4_u8).prop_map(move |refused| Step::FinishTransfer(id, refused, 9, 1)),
            1 => Just(Step::Find(id, 9)),
            1 => Just(Step::Expire),
            1 => Just(Step::Sent(None)),
        ];
        let first = Step::Op(id, kind, 9, Vec::new(), 1);
        vec(then, 1..4).prop_map(move |then| {
            let steps = [first.clone()].into_iter().chain(then);
            steps.map(|step| (segment, step)).collect()
        })
    })
}

/// A segment that may have lost its last changes, and in the end is accepted.
fn loss() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let steps = (0..SEGMENTS, any::<bool>(), vec(step(), 1..6), 0..8_u64);
    steps.prop_map(|(segment, doubtful, steps, generation)| {
        let all = [Step::Lose(doubtful)].into_iter().chain(steps);
        let all = all.chain([Step::Accept(generation, Since(0), true, 3)]);
        all.map(|step| (segment, step)).collect()
    })
}

/// What was decided in time is old.
fn age() -> impl Strategy<Value = Vec<(usize, Step)>> {
    (0..SEGMENTS).prop_map(|segment| [Step::Age, Step::Purge].map(|step| (segment, step)).into())
}

/// The third segment, mostly before it has anything.
fn fresh() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let first = prop_oneof![
        (0..3_u32, amount()).prop_map(|(to, want)| Step::Lend(to, 1, want, 1)),
        (id(), kind()).prop_map(|(id, kind)| Step::Refuse(id, kind, 0, 1)),
        (0..6_u8, 1..50_i64).prop_map(|(name, amount)| {
            let old = (Since(-60_000), name);
            Step::Op(old, Kind::Deposit(amount), 9, Vec::new(), 1)
        }),
    ];
    let steps = (0..4_u8, vec(first, 1..4)).prop_map(|(terms, steps)| {
        let all = [Step::Create(0, terms, Since(0))].into_iter().chain(steps);
        all.chain([Step::Purge])
    });
    steps.prop_map(|steps| steps.map(|step| (SEGMENTS - 1, step)).collect())
}

/// A segment that is made, closed and removed, mostly with nothing in it; and what comes after that.
fn end() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let remove = || {
        let credit = select(vec![0_i64, 500, i64::MAX]);
        let mark = prop_oneof![4 => Just(Since(60_000)), 1 => since()];
        let planned = prop_oneof![4 => Just(Since(-3_600_000)), 1 => since()];
        (generation(), credit, mark, planned).prop_map(|(g, c, m, p)| Step::Remove(g, c, m, p))
    };
    let steps = (
        0..4_u8,
        vec(step(), 0..2),
        vec(remove(), 1..3),
        vec(step(), 0..3),
    );
    steps.prop_map(|(terms, before, removes, after)| {
        let made = [Step::Create(0, terms, Since(0))].into_iter().chain(before);
        let all = made.chain([Step::Close]).chain(removes).chain(after);
        all.map(|step| (SEGMENTS - 1, step)).collect()
    })
}

fn amount() -> impl Strategy<Value = i64> {
    const SPLIT: i64 = 1_000_000_000_000_000;
    let edges = vec![
        1,
        SPLIT - 1,
        SPLIT,
        SPLIT + 1,
        9 * SPLIT,
        (1 << 53) + 1,
        i64::MAX - 1,
        i64::MAX,
    ];
    prop_oneof![4 => 1..1000_i64, 2 => select(edges), 1 => 1..i64::MAX]
}

/// Near ones lie a minute apart; the others are out of the window, or of the skew.
fn since() -> impl Strategy<Value = Since> {
    let near = (-1..=0_i64).prop_map(|minutes| minutes * 60_000);
    let far = select(vec![-3_600_000, 3_600_000, i64::MAX]);
    prop_oneof![12 => near, 1 => far].prop_map(Since)
}

fn id() -> impl Strategy<Value = Id> {
    (since(), 0..6_u8)
}

fn generation() -> impl Strategy<Value = u64> {
    prop_oneof![8 => Just(9_u64), 2 => 0..6_u64]
}

fn call() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(1_u64), 1 => Just(2)]
}

fn kind() -> impl Strategy<Value = Kind> {
    let deadline = prop_oneof![
        4 => Just(Since(60_000)),
        3 => Just(Since(-1)),
        // Past, and near enough to an old id.
        2 => Just(Since(-45_000)),
        1 => Just(Since(3_600_000)),
        1 => Just(Since(i64::MAX)),
    ];
    prop_oneof![
        3 => amount().prop_map(Kind::Deposit),
        2 => amount().prop_map(Kind::Deduct),
        3 => (amount(), deadline).prop_map(|(amount, deadline)| Kind::Reserve(amount, deadline)),
        2 => (amount(), 0..2_u8).prop_map(|(amount, to)| Kind::Transfer(amount, to)),
        1 => amounts(1..2_000_000_000_000_000).prop_map(Kind::Legs),
    ]
}

fn amounts(range: std::ops::Range<i64>) -> impl Strategy<Value = Vec<i64>> {
    vec(range, 1..3)
}

fn loan() -> impl Strategy<Value = (u32, u64, i64)> {
    (0..3_u32, 0..4_u64, amount())
}

fn step() -> impl Strategy<Value = Step> {
    let lands = prop_oneof![4 => Just(Vec::new()), 1 => vec(loan(), 1..3)];
    let version = prop_oneof![1 => Just(0_u64), 3 => 0..30_u64];
    prop_oneof![
        12 => (id(), kind(), generation(), lands, call()).prop_map(|(i, k, g, l, c)| Step::Op(i, k, g, l, c)),
        2 => (0..3_u32, 0..30_u64, amount(), call()).prop_map(|(t, l, w, c)| Step::Lend(t, l, w, c)),
        2 => (loan(), call()).prop_map(|((f, s, a), c)| Step::Land(f, s, a, c)),
        2 => (generation(), option::of((call(), select(vec![0_u64, 500, 9_000])))).prop_map(|(g, f)| Step::Collect(g, f)),
        1 => call().prop_map(Step::Thaw),
        3 => (id(), kind(), version, call()).prop_map(|(i, k, v, c)| Step::Refuse(i, k, v, c)),
        4 => (id(), option::of(amount()), generation(), call()).prop_map(|(i, a, g, c)| Step::Confirm(i, a, g, c)),
        2 => (id(), 4..6_u8, amounts(1..1000), call()).prop_map(|(i, n, a, c)| Step::Capture(i, n, a, c)),
        4 => (id(), generation(), call()).prop_map(|(i, g, c)| Step::Cancel(i, g, c)),
        1 => Just(Step::Expire),
        5 => (id(), 0..4_u8, amount(), generation(), call(), any::<bool>())
            .prop_map(|(i, f, a, g, c, p)| Step::Credit(i, f, a, g, c, p)),
        4 => (id(), 0..4_u8, generation(), call()).prop_map(|(i, r, g, c)| Step::FinishTransfer(i, r, g, c)),
        4 => (id(), 0..4_u8, generation()).prop_map(|(i, f, g)| Step::Forget(i, f, g)),
        2 => (id(), generation()).prop_map(|(i, g)| Step::Find(i, g)),
        2 => (0..30_u64, since(), 1..30_u32).prop_map(|(n, s, m)| Step::History(n, s, m)),
        1 => option::of(id()).prop_map(Step::Sent),
        1 => option::of((id(), 0..4_u8)).prop_map(Step::Pinned),
        1 => Just(Step::Purge),
        1 => (0..3_u64, 0..4_u8, since()).prop_map(|(g, t, s)| Step::Create(g, t, s)),
        1 => (0..8_u64, 0..4_u64, prop_oneof![since(), Just(Since(30_000))], prop::bool::weighted(0.2))
            .prop_map(|(g, b, f, c)| Step::Prepare(g, b, f, c)),
        1 => prop::bool::weighted(0.25).prop_map(|close| if close { Step::Close } else { Step::Expire }),
        1 => Just(Step::Inspect),
        1 => (0..8_u64, since(), prop::bool::weighted(0.9), 0..9_u64)
            .prop_map(|(g, s, v, n)| Step::Accept(g, s, v, n)),
        1 => (0..3_u64, 0..4_u8, 0..9_u64, since()).prop_map(|(g, t, n, s)| Step::Replace(g, t, n, s)),
        1 => Just(Step::ReadCopy),
    ]
}

impl Kind {
    fn change(&self, began_ms: u64) -> Change {
        match *self {
            Self::Deposit(amount) => Change::Deposit {
                amount: money(amount),
            },
            Self::Deduct(amount) => Change::Deduct {
                amount: money(amount),
            },
            Self::Reserve(amount, deadline) => Change::Reserve {
                amount: money(amount),
                deadline_ms: at(began_ms, deadline),
            },
            Self::Transfer(amount, to) => Change::Transfer {
                amount: money(amount),
                to: account(to),
            },
            Self::Legs(ref amounts) => Change::TransferLegs {
                legs: legs(amounts),
            },
        }
    }
}

fn unit_of(call: u64) -> Unit {
    match call {
        1 => Unit::NONE,
        _ => "EUR".parse().expect("a code"),
    }
}

fn loan_of((from, seq, amount): (u32, u64, i64)) -> Loan {
    Loan {
        from,
        seq,
        amount: money(amount),
    }
}

impl Step {
    /// Whether it may remove the segment.
    pub(crate) fn removes(&self) -> bool {
        matches!(self, Self::Remove(..))
    }

    /// The request, where the run began at `began_ms` on the server's clock, and the segment has `version`.
    pub(crate) fn request(&self, began_ms: u64, version: u64) -> Request {
        let id = |id: &Id| id_of(began_ms, *id);
        match self {
            Self::Op(of, kind, generation, lands, call) => Request::Op(Op {
                id: id(of),
                change: kind.change(began_ms),
                generation: *generation,
                lands: lands.iter().copied().map(loan_of).collect(),
                logged: true,
                // Bytes that stand for something elsewhere.
                reference: (of.1 % 5 == 4).then_some(Reference(*b"~:+1:\0\n \xff~45:789")),
                caller: caller(*call),
            }),
            Self::Refuse(of, kind, version, call) => Request::Refuse(Refuse {
                id: id(of),
                change: kind.change(began_ms),
                generation: 9,
                version: *version,
                caller: caller(*call),
            }),
            &Self::Lend(to, landed, want, call) => Request::Lend(Lend {
                to,
                landed,
                want: money(want),
                caller: caller(call),
            }),
            &Self::Land(from, seq, amount, call) => Request::Land(Land {
                loan: loan_of((from, seq, amount)),
                caller: caller(call),
            }),
            &Self::Collect(generation, freeze) => Request::Collect(Collect {
                generation,
                freeze: freeze.map(|(call, for_ms)| Freeze {
                    caller: caller(call),
                    for_ms,
                }),
            }),
            &Self::Thaw(call) => Request::Thaw(Thaw {
                caller: caller(call),
            }),
            Self::Confirm(of, amount, generation, call) => Request::Confirm(Confirm {
                id: id(of),
                amount: amount.map(money),
                generation: *generation,
                caller: caller(*call),
            }),
            Self::Cancel(of, generation, call) => Request::Cancel(Cancel {
                id: id(of),
                generation: *generation,
                caller: caller(*call),
            }),
            _ => self.of_legs(began_ms, version),
        }
    }

    /// Those about other accounts.
    fn of_legs(&self, began_ms: u64, version: u64) -> Request {
        let id = |id: &Id| id_of(began_ms, *id);
        match self {
            Self::Capture(of, name, amounts, call) => Request::from(Capture {
                id: id(of),
                capture: id(&(Since(0), *name)),
                legs: legs(amounts),
                generation: 9,
                caller: caller(*call),
            }),
            &Self::Credit(of, from, amount, generation, call, is_promise) => {
                Request::from(GiveCredit {
                    id: credit_of(began_ms, of, from),
                    content: amount.unsigned_abs() % 3,
                    amount: money(amount),
                    unit: unit_of(call),
                    is_promise,
                    generation,
                    caller: caller(call),
                })
            }
            &Self::FinishTransfer(of, refused, generation, call) => {
                Request::FinishTransfer(FinishTransfer {
                    id: id(&of),
                    refused: (0..2)
                        .filter(|to| refused >> to & 1 == 1)
                        .map(account)
                        .collect(),
                    generation,
                    caller: caller(call),
                })
            }
            _ => self.plain(began_ms, version),
        }
    }

    /// Those that take little.
    fn plain(&self, began_ms: u64, version: u64) -> Request {
        match self {
            &Self::Create(generation, terms, planned) => Request::from(Create {
                planned_ms: at(began_ms, planned).min((1 << 53) - 1),
                ..create(began_ms, generation, terms)
            }),
            &Self::Remove(generation, credit, mark, planned) => Request::Remove(Remove {
                generation,
                credit,
                mark_ms: at(began_ms, mark).min((1 << 53) - 1),
                planned_ms: at(began_ms, planned).min((1 << 53) - 1),
            }),
            &Self::Replace(generation, terms, number, since) => Request::from(Replace {
                create: Create {
                    credit: 0,
                    ..create(began_ms, generation, terms)
                },
                losses: number,
                at_ms: at(began_ms, since),
            }),
            &Self::Forget(of, from, generation) => Request::Forget(Forget {
                id: credit_of(began_ms, of, from),
                generation,
            }),
            Self::Find(of, generation) => Request::Find(Find {
                id: id_of(began_ms, *of),
                generation: *generation,
            }),
            &Self::History(after, since, most) => Request::History(History {
                after,
                since_ms: at(began_ms, since).min((1 << 53) - 1),
                most,
            }),
            Self::Sent(after) => Request::Sent(Sent {
                after: after.map(|after| id_of(began_ms, after)),
            }),
            Self::Pinned(after) => Request::Pinned(Pinned {
                after: after.map(|(after, from)| credit_of(began_ms, after, from)),
            }),
            &Self::Prepare(generation, base, from, closed) => {
                prepare(began_ms, generation, base, from, closed).into()
            }
            &Self::Accept(generation, since, is_as_read, number) => Request::from(Accept {
                version: if is_as_read { version } else { version + 1 },
                others: [(0, number), (1, number)].into(),
                in_force: prepare(began_ms, generation, generation, Since(0), false),
                at_ms: at(began_ms, since),
            }),
            Self::Expire => Request::Expire(Expire),
            Self::Purge => Request::Purge(Purge),
            Self::Close => Request::Close(Close),
            Self::ReadCopy => Request::ReadCopy(ReadCopy),
            _ => Request::Inspect(Inspect),
        }
    }
}
