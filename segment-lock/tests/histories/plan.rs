//! What happens in a history.

use proptest::{
    collection::vec,
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Deposit,
    Deduct,
    /// Held for so many ms.
    Reserve(u64),
    Transfer,
    /// To both other accounts.
    Legs,
}

/// A request, that any client may make, at any time and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) account: usize,
    pub(crate) kind: Kind,
    pub(crate) amount: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Make(usize),
    Confirm(usize),
    Cancel(usize),
    /// To both other accounts, or else to one, by ids of their own.
    Capture(usize, bool),
    Exact(usize),
    Resegment(usize, u32),
    Sweep(usize),
    Close(usize),
    /// The account is emptied, closed, and deleted.
    Delete(usize),
    /// The account is created again, if it was deleted.
    Create(usize),
    /// The storage of a segment comes back with nothing.
    Lose(usize, u32),
    Accept(usize),
    /// ms.
    Wait(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) segments: u32,
    /// What one account has to begin with.
    pub(crate) funds: i64,
    pub(crate) wishes: Vec<Wish>,
    /// Each with the number of polls after which the client crashes in it, if it does.
    pub(crate) clients: Vec<Vec<(Step, Option<usize>)>>,
    /// Whether all is old, and purged, before what was begun is finished.
    pub(crate) ages: bool,
    /// In a hundred: how often a request is lost, an answer is lost, an old request comes again.
    pub(crate) harm: (u32, u32, u32),
}

impl Plan {
    /// The credit line of each account: what it has to begin with, in every other plan.
    pub(crate) fn credit(&self) -> i64 {
        match self.seed % 2 {
            0 => self.funds,
            _ => 0,
        }
    }
}

fn wish() -> impl Strategy<Value = Wish> {
    let kind = prop_oneof![
        2 => Just(Kind::Deposit),
        5 => Just(Kind::Deduct),
        2 => (5..300_u64).prop_map(Kind::Reserve),
        2 => Just(Kind::Transfer),
        2 => Just(Kind::Legs),
    ];
    (0..2_usize, kind, 1..9_i64).prop_map(|(account, kind, amount)| Wish {
        account,
        kind,
        amount,
    })
}

fn step(wishes: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..wishes).prop_map(Step::Make),
        1 => (0..wishes).prop_map(Step::Confirm),
        1 => (0..wishes).prop_map(Step::Cancel),
        2 => (0..wishes, any_bool()).prop_map(|(wish, both)| Step::Capture(wish, both)),
        2 => (0..3_usize).prop_map(Step::Exact),
        2 => (0..2_usize, prop_oneof![Just(2), Just(3), Just(1)]).prop_map(|(a, n)| Step::Resegment(a, n)),
        2 => (0..3_usize).prop_map(Step::Sweep),
        1 => prop_oneof![4 => Just(1), 1 => Just(2)].prop_map(Step::Close),
        3 => prop_oneof![1..40_u64, 200..1500_u64].prop_map(Step::Wait),
    ]
}

/// After how many polls the client crashes, if it does.
fn crash(step: &Step) -> impl Strategy<Value = Option<usize>> + use<> {
    let often = match step {
        Step::Resegment(..) => 0.6,
        _ => 0.25,
    };
    proptest::option::weighted(often, 1..40_usize)
}

pub(crate) fn any() -> impl Strategy<Value = Plan> {
    prop_oneof![4 => mixture(), 2 => crowd(), 1 => halted(), 2 => losing(), 2 => ending()]
}

/// How long it is until the segments of an account can be removed, and a little more.
pub(crate) const END_MS: u64 = 60_100;

/// Accounts are deleted, perhaps by several clients at once, and created again. The others go on when that is possible.
fn ending() -> impl Strategy<Value = Plan> {
    let end = (
        any_bool(),
        any_bool(),
        proptest::option::weighted(0.4, 1..60_usize),
    );
    let ends = vec((0..14_usize, end, END_MS - 300..END_MS + 300), 4);
    (mixture(), ends).prop_map(|(mut plan, ends)| {
        for (steps, (at, (deletes, creates, crash), wait_ms)) in plan.clients.iter_mut().zip(ends) {
            let at = at.min(steps.len());
            let mut more = vec![(Step::Wait(wait_ms), None)];
            if deletes {
                more.extend([(Step::Delete(1), crash), (Step::Wait(20), None)]);
            }
            if creates {
                more.extend([(Step::Delete(1), None), (Step::Create(1), crash)]);
            }
            steps.splice(at..at, more);
        }
        plan
    })
}

/// Segments are lost in between, and that is accepted, perhaps by several at once.
fn losing() -> impl Strategy<Value = Plan> {
    let loss = (0..4_usize, 0..14_usize, 0..3_usize, 0..3_u32, any_bool());
    (mixture(), vec(loss, 1..4)).prop_map(|(mut plan, losses)| {
        for (client, at, account, index, again) in losses {
            let clients = plan.clients.len();
            let steps = &mut plan.clients[client % clients];
            let at = at.min(steps.len());
            let lose = [
                (Step::Lose(account, index), None),
                (Step::Accept(account), None),
            ];
            steps.splice(at..at, lose);
            if again {
                let other = &mut plan.clients[(client + 1) % clients];
                other.insert(at.min(other.len()), (Step::Accept(account), Some(at)));
            }
        }
        plan
    })
}

/// Who plans a layout crashes, and the others go by the one before until long after it was to begin.
fn halted() -> impl Strategy<Value = Plan> {
    let planner = (2..=3_u32, 1..30_usize, 1100..1300_u64);
    (mixture(), planner).prop_map(|(mut plan, (segments, polls, wait_ms))| {
        let resegment = Step::Resegment(0, segments);
        let wait = (Step::Wait(wait_ms), None);
        plan.segments = 1;
        plan.clients[0] = vec![(resegment, Some(polls)), wait, wait, (resegment, None)];
        for (wish, client) in plan.clients[1..].iter_mut().enumerate() {
            client.splice(0..0, [(Step::Make(wish), None), wait]);
        }
        plan
    })
}

/// Many at once who want what is hardly there, of one account with three segments.
fn crowd() -> impl Strategy<Value = Plan> {
    const WISHES: usize = 24;
    let kind = prop_oneof![2 => Just(Kind::Deposit), 3 => Just(Kind::Deduct)];
    let wish = (kind, 1..4_i64).prop_map(|(kind, amount)| Wish {
        account: 0,
        kind,
        amount,
    });
    let made = (0..WISHES).prop_map(|wish| (Step::Make(wish), None));
    let clients = vec(vec(made, 1..6), 4..7);
    (any_seed(), 0..6_i64, vec(wish, WISHES), clients).prop_map(|(seed, funds, wishes, clients)| {
        Plan {
            seed,
            segments: 3,
            funds,
            wishes,
            clients,
            ages: false,
            harm: (0, 0, 0),
        }
    })
}

/// Everything that can happen.
fn mixture() -> impl Strategy<Value = Plan> {
    const WISHES: usize = 16;
    let crashing = step(WISHES).prop_flat_map(|step| (Just(step), crash(&step)));
    let client = vec(crashing, 1..14);
    let harm = prop_oneof![Just((0, 0, 0)), Just((3, 3, 10)), Just((10, 10, 30)),];
    let sizes = (any_seed(), 1..=3_u32, 0..20_i64, any_bool());
    (sizes, vec(wish(), WISHES), vec(client, 2..5), harm).prop_map(
        |((seed, segments, funds, ages), wishes, clients, harm)| Plan {
            seed,
            segments,
            funds,
            wishes,
            clients,
            ages,
            harm,
        },
    )
}

fn any_seed() -> impl Strategy<Value = u64> {
    proptest::num::u64::ANY
}

fn any_bool() -> impl Strategy<Value = bool> {
    proptest::bool::weighted(0.5)
}

/// The same plans every time.
pub(crate) fn some(count: usize) -> impl Iterator<Item = Plan> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let plan = any();
    (0..count).map(move |_| plan.new_tree(&mut runner).unwrap().current())
}
