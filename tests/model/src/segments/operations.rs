//! Operations, by their ids, and the tasks that request them.

/// An operation: one id, with its content.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The verb.
    pub kind: Kind,
    /// Of which account. The first, 0, is the one that gets new layouts.
    pub account: u8,
    /// How much, with the first content; and with the second, under the same id.
    pub amounts: [i8; 2],
    /// When its id was made, from 1.
    pub time: u8,
    /// Its home in the first layout, and in those that came into force before its time.
    pub homes: [u8; 2],
}

/// The verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Money comes in.
    Deposit,
    /// Money goes out.
    Deduct,
    /// Money is held, to be confirmed or cancelled.
    Reserve,
    /// Money goes to another account.
    Transfer {
        /// Its home there, as [`Operation::homes`].
        to: [u8; 2],
    },
    /// The exact balance.
    Read,
}

/// A task: it requests an operation.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Its number.
    pub operation: u8,
    /// Which of its contents.
    pub content: u8,
    /// What with it.
    pub verb: Verb,
}

/// What a task wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The operation.
    Operate,
    /// Its reservation confirmed.
    Confirm,
    /// Its reservation cancelled.
    Cancel,
}

impl Operation {
    /// At home in one segment of the first account, in every layout.
    pub(super) fn new(kind: Kind, amount: i8, home: u8) -> Self {
        Self {
            kind,
            account: 0,
            amounts: [amount; 2],
            time: 1,
            homes: [home; 2],
        }
    }

    /// Its id is of that time, and at home there in the layouts of before it.
    pub(super) fn at(self, time: u8, home: u8) -> Self {
        Self {
            time,
            homes: [self.homes[0], home],
            ..self
        }
    }

    /// Another amount, under the same id.
    pub(super) fn or(self, amount: i8) -> Self {
        Self {
            amounts: [self.amounts[0], amount],
            ..self
        }
    }

    /// The same of a transfer's other end.
    pub(super) fn to(self, time: u8, home: u8) -> Self {
        let kind = match self.kind {
            Kind::Transfer { to } => Kind::Transfer { to: [to[0], home] },
            other => other,
        };
        Self { kind, time, ..self }
    }

    /// From that account.
    pub(super) fn from(self, account: u8) -> Self {
        Self { account, ..self }
    }

    pub(super) fn amount(&self, content: u8) -> i8 {
        self.amounts[usize::from(content)]
    }

    /// Whether it takes money, and may be told that there is not enough.
    pub(super) fn takes(&self) -> bool {
        !matches!(self.kind, Kind::Deposit | Kind::Read)
    }
}

pub(super) fn deposit(amount: i8, home: u8) -> Operation {
    Operation::new(Kind::Deposit, amount, home)
}

pub(super) fn deduct(amount: i8, home: u8) -> Operation {
    Operation::new(Kind::Deduct, amount, home)
}

pub(super) fn reserve(amount: i8, home: u8) -> Operation {
    Operation::new(Kind::Reserve, amount, home)
}

pub(super) fn transfer(amount: i8, home: u8, to: u8) -> Operation {
    Operation::new(Kind::Transfer { to: [to; 2] }, amount, home)
}

pub(super) fn read() -> Operation {
    Operation::new(Kind::Read, 0, 0)
}

/// The tasks that request the operation.
pub(super) const fn calls(operation: u8) -> Caller {
    Caller {
        operation,
        content: 0,
        verb: Verb::Operate,
    }
}

/// The tasks that request it with the other content.
pub(super) const fn differs(operation: u8) -> Caller {
    Caller {
        content: 1,
        ..calls(operation)
    }
}

pub(super) const fn confirms(operation: u8) -> Caller {
    Caller {
        verb: Verb::Confirm,
        ..calls(operation)
    }
}

pub(super) const fn cancels(operation: u8) -> Caller {
    Caller {
        verb: Verb::Cancel,
        ..calls(operation)
    }
}
