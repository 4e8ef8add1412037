//! Each line of a schema that keeps a promise of a store, left out: a property of the suite fails then.

mod mariadb;
mod postgresql;

use std::panic::AssertUnwindSafe;

use futures_util::{FutureExt as _, future::LocalBoxFuture};

/// A property by its path, as a value.
macro_rules! property {
    ($path:path) => {
        (stringify!($path), |fixture| Box::pin($path(fixture)))
    };
}
use property;

type Property<F> = for<'a> fn(&'a F) -> LocalBoxFuture<'a, ()>;

/// A line, what takes its place, and the property that fails then.
type Mutant<F> = (&'static str, &'static str, (&'static str, Property<F>));

/// How often a property of requests at the same time is tried.
const ATTEMPTS: u32 = 20;

/// Asserts that each property holds on `whole` schemas, and fails without its line. Some need two requests in the same
/// moment.
async fn assert_needed<F>(
    mutants: &[Mutant<F>],
    whole: impl AsyncFn() -> F,
    mutant: impl AsyncFn(&'static str, &'static str) -> F,
) {
    for (line, instead, (name, property)) in mutants {
        property(&whole().await).await;
        let mut failed = false;
        for _ in 0..ATTEMPTS {
            let mutant = mutant(line, instead).await;
            let outcome = AssertUnwindSafe(property(&mutant)).catch_unwind().await;
            failed = outcome.is_err();
            if failed {
                break;
            }
        }
        assert!(failed, "{name} holds without: {line}");
    }
}
