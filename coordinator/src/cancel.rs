//! Dropping a future under way, at each point where it can be: for tests of cancel safety.
//!
//! How often a future is woken says little of where it is: most of what it waits for is done by
//! others. So it is polled once a *turn*, in which everybody else gets on a little, and dropped
//! after as many turns as the test says.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// A future that is done sooner was hardly dropped under way: the test would show nothing.
const TURNS_MIN: usize = 6;

/// A future that is not done by then never will be.
const TURNS_MAX: usize = 100_000;

/// Polls `future` before each of `turns` turns, then drops it. Its output, if it was done by then.
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

/// Makes attempts at something, called `what`, dropped after 0, 1, 2, … turns, and of a long one
/// after each sixteenth part more, until one is done in its turns, as `attempt` answers. Says how
/// many that were.
///
/// # Panics
///
/// It took too few turns for the attempts to show anything, or is never done.
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
