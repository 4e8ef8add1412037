//! The tokens that the ranks are to grant.

use crate::{ids::Token, sync::Mutex};

/// How far the floors go at once.
const STEP_MAX: u64 = 1024;

/// The least token of each acquisition. The shards count on their own, and the ranks of a lock grant the same token only
/// if none of them is past its floor. So each acquisition has a floor above those of all earlier ones of this process.
///
/// A floor that is too low costs a second round trip, as does one of another epoch.
#[derive(Debug, Default)]
pub(super) struct Floors(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The next floor.
    next: Token,
    /// The first floor since a shard was seen to be past one.
    ahead_from: Token,
}

impl Floors {
    /// For an acquisition that needs so many tokens.
    pub(super) fn allot(&self, tokens: u32) -> Token {
        let mut state = self.0.lock();
        let floor = state.next;
        state.next = after(floor, tokens.into());
        floor
    }

    /// A rank granted so many tokens from `first` to an acquisition with `floor`.
    pub(super) fn learn(&self, floor: Token, first: Token, tokens: u32) {
        let mut state = self.0.lock();
        if first.epoch() != floor.epoch() {
            state.next = state.next.max(after(first, tokens.into()));
        } else if first > floor && floor >= state.ahead_from {
            // A shard is past the floors, by as much for those on their way.
            let by = first.get() - floor.get();
            state.next = after(state.next, (2 * by).min(STEP_MAX));
            state.ahead_from = state.next;
        }
    }
}

fn after(token: Token, tokens: u64) -> Token {
    Token::from_number(token.get() + tokens)
}
