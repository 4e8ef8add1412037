//! What the accounts have, and how far each process is.

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) source: Source,
    pub(super) destinations: [Destination; LEGS],
    pub(super) callers: Vec<Caller>,
    /// Requests that were sent: each may arrive at any later time, and again.
    pub(super) sent: Vec<Request>,
    pub(super) crashes: u8,
    /// Promises that may still be lost.
    pub(super) losses: u8,
    /// Money that was spent at destinations, or deposited there, by others.
    pub(super) others: i8,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

/// How many legs there are, of one coin each.
pub(super) const LEGS: usize = 2;

/// How much there is in the source; a reservation is of all of it.
pub(super) const FUNDS: u8 = 3;

/// The account that pays.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) value: u8,
    pub(super) entry: Entry,
}

/// The record of the request at its source.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Entry {
    /// A transfer that was not decided.
    Unseen,
    /// A reservation.
    Held,
    /// It is decided to pay the legs of that attempt.
    Committed(u8),
    /// They are paid, but for the refused ones, as bits.
    Paid { attempt: u8, refused: u8 },
    /// It ended without paying.
    Over,
}

/// An account that receives.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) value: u8,
    /// How many coins more it may have.
    pub(super) room: i8,
    pub(super) closed: bool,
    /// It has forgotten what is final, and refuses ids that it does not know.
    pub(super) forgetful: bool,
    /// The record of each attempt.
    pub(super) credits: [Credit; ATTEMPTS],
    /// How often each attempt was paid: nothing that an account knows.
    pub(super) paid: [u8; ATTEMPTS],
}

/// How many ids a reservation may be captured by.
pub(super) const ATTEMPTS: usize = 2;

#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) enum Credit {
    #[default]
    Unknown,
    Promised,
    /// Paid, and remembered.
    Pinned,
    /// Paid, and may be forgotten.
    Forgettable,
    Refused,
}

/// A request to an account.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    /// To a destination, about an attempt.
    Promise(u8, u8),
    /// The same: pay.
    Give(u8, u8),
    /// The same: it is over at the source.
    Forget(u8, u8),
    /// To the source, to pay the legs of an attempt.
    Commit(u8),
    /// To the source: which legs were refused, as bits.
    Finish(u8),
    /// To the source: decide nothing from now on.
    Cancel,
}

/// An answer.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Answer {
    Promised,
    Paid,
    Refused,
    Entry(Entry),
    Done,
}

/// A process on its way.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Caller {
    Idle,
    /// It waits for the answer to a request about an attempt; with the legs that were refused so far, as bits.
    Waits {
        request: Request,
        attempt: u8,
        refused: u8,
    },
    /// A destination refused, and it asks the source what it decided.
    Asks {
        attempt: u8,
    },
    Dead,
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// All legs were paid.
    Paid,
    /// Promises were taken back after a refusal.
    TakenBack,
    /// A process goes on with the decision of another.
    Continued,
    /// A promise was kept in a closed account.
    KeptThoughClosed,
    /// A leg came back, because its promise was lost.
    CameBack,
    /// The reservation expired while something was promised.
    ExpiredWhilePromised,
}

impl World {
    pub(super) fn destination(&self, leg: u8) -> &Destination {
        &self.destinations[usize::from(leg)]
    }

    pub(super) fn destination_mut(&mut self, leg: u8) -> &mut Destination {
        &mut self.destinations[usize::from(leg)]
    }

    pub(super) fn credit(&self, leg: u8, attempt: u8) -> Credit {
        self.destination(leg).credits[usize::from(attempt)]
    }

    pub(super) fn send(&mut self, request: Request) {
        if let Err(at) = self.sent.binary_search(&request) {
            self.sent.insert(at, request);
        }
    }

    /// How many legs of an attempt have their money.
    pub(super) fn arrived(&self, attempt: u8) -> u8 {
        let paid = self.destinations.iter();
        let paid = paid.filter(|destination| destination.paid[usize::from(attempt)] > 0);
        paid.count() as u8
    }
}
