//! Drops a future under way, at each point where that is possible: for tests of cancel safety.
//!
//! The number of polls says little about a future's progress: others do most of the work it waits
//! for. So the future is polled once per *turn*, in which all other tasks progress a little, and
//! dropped after the number of turns that the test chooses.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// A future that completes sooner was hardly dropped under way: the test would show nothing.
const TURNS_MIN: usize = 6;

/// A future that has not completed by then never will.
const TURNS_MAX: usize = 100_000;

/// Polls `future` before each of `turns` turns, then drops it. Returns its output, if it has
/// completed by then.
pub async fn dropped_after<F: Future>(
    turns: usize,
    turn: impl AsyncFn(),
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..turns {
        if let Poll::Ready(output) =
            poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
        {
            return Some(output);
        }
        turn().await;
    }
    None
}

/// Makes attempts at an operation, called `what`: dropped after 0, 1, 2, … turns, and, for a long
/// one, after steps of a sixteenth more, until one completes in its turns, as `attempt` tells.
/// Returns how many turns that were.
///
/// # Panics
///
/// It took too few turns to be meaningful, or never completes.
pub async fn after_every_turn(what: &str, mut attempt: impl AsyncFnMut(usize) -> bool) {
    let (mut turns, mut dropped) = (0, 0);
    while !attempt(turns).await {
        turns += 1 + turns / 16;
        dropped += 1;
        assert!(turns < TURNS_MAX, "{what}: not done in {turns} turns");
    }
    println!("{what}: done in {turns} turns, dropped {dropped} times before");
    assert!(
        turns >= TURNS_MIN,
        "{what}: done in {turns} turns, and hardly ever dropped"
    );
}
