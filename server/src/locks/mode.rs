//! Which share of a key a caller asks for, and which one a holder has.

use ringfence_api::{
    Error,
    v1::{self, AcquireRequest},
};
use ringfence_client::{LockKind, LockMode, limits::PERMITS_MAX};

/// What `ask` asks for.
pub(super) fn of(ask: &AcquireRequest) -> Result<LockMode, Error> {
    let Ok(mode) = v1::LockMode::try_from(ask.mode) else {
        return Err(Error::invalid("mode", ask.mode, "one of LockMode"));
    };
    if ask.preferred && !matches!(mode, v1::LockMode::Read | v1::LockMode::Write) {
        let limit = "false without LOCK_MODE_READ and LOCK_MODE_WRITE";
        return Err(Error::invalid("preferred", true, limit));
    }
    if mode == v1::LockMode::Permits {
        return permits(ask.permits.max(1), ask.capacity);
    }
    for (field, value) in [("permits", ask.permits), ("capacity", ask.capacity)] {
        if value > 0 {
            let limit = "0 without LOCK_MODE_PERMITS";
            return Err(Error::invalid(field, value, limit));
        }
    }
    Ok(match mode {
        v1::LockMode::Read => LockMode::Read,
        v1::LockMode::Write => LockMode::Write,
        _ => LockMode::Exclusive,
    })
}

fn permits(count: u32, capacity: u32) -> Result<LockMode, Error> {
    if !(1..=PERMITS_MAX).contains(&capacity) {
        let limit = format!("1 to {PERMITS_MAX}");
        return Err(Error::invalid("capacity", capacity, limit));
    }
    if count > capacity {
        let limit = format!("at most {capacity}, the capacity");
        return Err(Error::invalid("permits", count, limit));
    }
    Ok(LockMode::Permits { count, capacity })
}

/// The kind of the lock of a holder.
pub(super) fn kind(kind: LockKind) -> v1::LockKind {
    match kind {
        LockKind::Mutex => v1::LockKind::Mutex,
        LockKind::Semaphore => v1::LockKind::Semaphore,
        LockKind::ReadWrite => v1::LockKind::ReadWrite,
    }
}

/// The number of permits among `shares` of a lock of `kind`.
pub(super) fn permits_of(kind: LockKind, shares: u32) -> u32 {
    match kind {
        LockKind::Semaphore => shares,
        LockKind::Mutex | LockKind::ReadWrite => 1,
    }
}

/// Whether `shares` of a lock of `kind` are had alone.
pub(super) fn is_exclusive(kind: LockKind, shares: u32) -> bool {
    match kind {
        LockKind::Mutex => true,
        LockKind::Semaphore => false,
        LockKind::ReadWrite => shares == LockMode::Write.shares(),
    }
}
