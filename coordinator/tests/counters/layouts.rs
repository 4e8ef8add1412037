//! Segments made, and prepared for layouts.

use ringfence_segment_lock::{
    Terms,
    segment::{Create, Prepare},
};

use super::{names::at, requests::Since};

/// How far ahead a request may come.
const SKEW_MS: u64 = 10_000;

/// The unit and the limits.
fn of_money(terms: u8) -> Terms {
    match terms {
        0..3 => Terms::in_memory(),
        _ => Terms {
            floor: -500,
            ceiling: Some(2_000),
            unit: "EUR".parse().expect("a code"),
            ..Terms::in_memory()
        },
    }
}

/// Creates a segment that was planned a while ago.
pub(crate) fn create(began_ms: u64, generation: u64, terms: u8) -> Create {
    Create {
        prepare: Prepare {
            generation,
            base: 0,
            from_ms: at(began_ms, Since(-90_000)),
            closed: false,
            mark_ms: 0,
            manifest: format!("manifest {generation}").into(),
        },
        terms: Terms {
            idempotency_for_ms: 100_000,
            idempotency_at_least_ms: [20_000, 60_000, 30_000, 60_000][usize::from(terms)],
            skew_ms: SKEW_MS,
            ids_max: [3, 1_000, 1_000, 1_000][usize::from(terms)],
            effects_max: [0, 100_000, 100_000, 100_000][usize::from(terms)],
            ..of_money(terms)
        },
        credit: of_money(terms).credit(),
        planned_ms: began_ms,
    }
}

/// Prepares a segment for a layout.
pub(crate) fn prepare(
    began_ms: u64,
    generation: u64,
    base: u64,
    from: Since,
    closed: bool,
) -> Prepare {
    // Greater ones are kept as this one.
    let from_ms = at(began_ms, from).min((1 << 53) - 1);
    Prepare {
        generation,
        base,
        from_ms,
        closed,
        mark_ms: if generation.is_multiple_of(2) {
            0
        } else {
            from_ms - 1
        },
        manifest: format!("manifest {generation}").into(),
    }
}
