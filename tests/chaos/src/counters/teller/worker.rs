//! One call after another.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use rand::{RngExt, rngs::StdRng};

use super::super::{Answer, Call, Deed, Desk, Order, latches::Latches};

/// The most an order is about. Little enough that there mostly is as much, and not always.
const AMOUNT_MAX: i64 = 40;
/// The longest that money is set aside.
const RESERVED_MAX: Duration = Duration::from_secs(2);
/// So many orders are kept to be repeated.
const RECENT: usize = 200;

/// What workers of a process share.
#[derive(Debug)]
pub(super) struct Shared {
    desk: Desk,
    process: u32,
    names: AtomicU64,
    /// Calls to be made.
    calls: AtomicUsize,
    /// To be made again: they have no answer.
    again: Mutex<VecDeque<Call>>,
    /// Reservations that somebody may end.
    held: Mutex<VecDeque<Order>>,
    /// Orders that were answered, or not.
    recent: Mutex<VecDeque<Order>>,
    latches: Mutex<Latches>,
}

impl Shared {
    pub(super) fn new(desk: Desk, process: u32, calls: usize, again: VecDeque<Call>) -> Self {
        Self {
            desk,
            process,
            names: AtomicU64::new(0),
            calls: AtomicUsize::new(calls),
            again: Mutex::new(again),
            held: Mutex::default(),
            recent: Mutex::default(),
            latches: Mutex::new(Latches::of(process)),
        }
    }

    /// Whether there still is a call to make, which now is.
    fn one_more(&self) -> bool {
        let less = |calls: usize| calls.checked_sub(1);
        self.calls.fetch_update(Relaxed, Relaxed, less).is_ok()
    }
}

/// Makes one call at a time.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    shared: &'a Shared,
    random: StdRng,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared, random: StdRng) -> Self {
        Self { shared, random }
    }

    /// Goes on while there are calls to make.
    pub(super) async fn run(mut self) {
        while self.shared.one_more() {
            let call = self.choose();
            let answer = self.shared.desk.call(&call).await;
            self.keep(call, &answer);
            if self.random.random_bool(0.001) {
                // What it cannot do, it does the next time.
                let _ = self.shared.desk.sweep().await;
            }
        }
    }

    fn choose(&mut self) -> Call {
        if let Some(call) = self.shared.again.lock().pop_front() {
            return call;
        }
        let account = self.random.random_range(0..self.shared.desk.accounts.len());
        match self.random.random_range(0..100) {
            0..2 => Call::Exact(account),
            2..5 => Call::Fast(account),
            5..9 => self.repeat().map_or(Call::Fast(account), Call::Change),
            9..12 => self.repeat().map_or(Call::Fast(account), Call::Find),
            12..24 => self.end().unwrap_or(Call::Fast(account)),
            24..28 => self.latch().unwrap_or(Call::Fast(account)),
            _ => Call::Change(self.new_order(account)),
        }
    }

    /// An order that was made before.
    fn repeat(&mut self) -> Option<Order> {
        let recent = self.shared.recent.lock();
        let place = self.random.random_range(0..recent.len().max(1));
        recent.get(place).cloned()
    }

    /// The end of a reservation; of some more than once, and in both ways.
    fn end(&mut self) -> Option<Call> {
        let mut held = self.shared.held.lock();
        let order = held.pop_front()?;
        if self.random.random_bool(0.1) {
            held.push_back(order.clone());
        }
        Some(match self.random.random_bool(0.5) {
            true => Call::Confirm(order),
            false => Call::Cancel(order),
        })
    }

    fn latch(&mut self) -> Option<Call> {
        let now_ms = self.shared.desk.counters.new_request().time_ms();
        self.shared.latches.lock().next(now_ms, &mut self.random)
    }

    fn new_order(&mut self, account: usize) -> Order {
        let desk = &self.shared.desk;
        let deed = match self.random.random_range(0..100) {
            0..34 => Deed::Deposit,
            34..65 => Deed::Deduct,
            65..82 => {
                let length = RESERVED_MAX.mul_f64(self.random.random());
                let until_ms = desk.counters.deadline_in(length);
                match desk.accounts.len() > 1 && self.random.random_bool(0.5) {
                    true => Deed::ReserveFor(until_ms, self.two_others(account)[0]),
                    false => Deed::Reserve(until_ms),
                }
            }
            82..88 => Deed::Legs(self.two_others(account)),
            _ => {
                // The last does not exist.
                let all = desk.destinations();
                let further = self.random.random_range(1..all);
                Deed::Transfer((account + further) % all)
            }
        };
        let name = self.shared.names.fetch_add(1, Relaxed);
        let name = format!("{}-{name}", self.shared.process);
        // Halves are whole.
        let amount = 2 * self.random.random_range(1..=AMOUNT_MAX / 2);
        desk.order(name, account, amount, deed)
    }

    /// Two other accounts; of which one may not exist.
    fn two_others(&mut self, account: usize) -> [usize; 2] {
        let accounts = self.shared.desk.accounts.len();
        let first = (account + 1) % accounts;
        let second = match accounts > 2 && self.random.random_bool(0.9) {
            true => (account + 2) % accounts,
            false => self.shared.desk.destinations() - 1,
        };
        [first, second]
    }

    /// Remembers the next step for a call with this answer.
    fn keep(&mut self, call: Call, answer: &Answer) {
        if let Call::Latch(call) = &call {
            self.shared.latches.lock().keep(call, answer);
        }
        if matches!(answer, Answer::Nothing(_) | Answer::Unknown(_)) {
            // Of an order that is forgotten, or on its way, there may never be more to say.
            let again = (!matches!(call, Call::Find(_))).then_some(call);
            return self.shared.again.lock().extend(again);
        }
        let Call::Change(order) = call else { return };
        if matches!(answer, Answer::Held) && self.random.random_bool(0.8) {
            self.shared.held.lock().push_back(order.clone());
        }
        let mut recent = self.shared.recent.lock();
        recent.push_back(order);
        if recent.len() > RECENT {
            recent.pop_front();
        }
    }
}
