//! What the requests of random batches are about.

use ringfence_segment_lock::{Account, Amount, RequestId, segment::CreditId};

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

pub(crate) fn credit_of(began_ms: u64, id: Id, from: u8) -> CreditId {
    let id = id_of(began_ms, id);
    CreditId {
        id,
        from: account(from),
    }
}

pub(crate) fn account(which: u8) -> Account {
    Account::new(["b\0c", "shop:1"][usize::from(which)]).unwrap()
}

pub(crate) fn money(amount: i64) -> Amount {
    Amount::new(amount).unwrap()
}
