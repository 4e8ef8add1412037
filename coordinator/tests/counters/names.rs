//! What the requests of random batches are about.

use ringfence_segment_lock::{Account, Amount, Leg, Legs, RequestId, segment::CreditId};

use super::requests::{Id, Since};

pub(crate) fn at(began_ms: u64, Since(since): Since) -> u64 {
    match since {
        i64::MAX => u64::MAX,
        since => began_ms.saturating_add_signed(since),
    }
}

pub(crate) fn id_of(began_ms: u64, (since, name): Id) -> RequestId {
    // Names that begin one another, and hostile ones; and some of which most are of a rush.
    let names = [
        "a",
        "a\0",
        "a\0b",
        "order:7",
        "é\u{10ffff}",
        "x",
        "r",
        "s",
        "t",
        "u",
        "v",
        "w",
    ];
    RequestId::new(at(began_ms, since), names[usize::from(name)]).unwrap()
}

/// A transfer from one of two accounts; from 2 on, a capture.
pub(crate) fn credit_of(began_ms: u64, id: Id, from: u8) -> CreditId {
    let reservation = (Since(0), 1);
    CreditId {
        id: id_of(began_ms, id),
        from: account(from % 2),
        reservation: (from >= 2).then(|| id_of(began_ms, reservation)),
    }
}

/// A leg for each of the two accounts, or for the first one.
pub(crate) fn legs(amounts: &[i64]) -> Legs {
    let legs = (0..).zip(amounts).map(|(to, &amount)| Leg {
        to: account(to),
        amount: money(amount),
    });
    Legs::new(legs.collect()).unwrap()
}

pub(crate) fn account(which: u8) -> Account {
    Account::new(["b\0c", "shop:1"][usize::from(which)]).unwrap()
}

pub(crate) fn money(amount: i64) -> Amount {
    Amount::new(amount).unwrap()
}
