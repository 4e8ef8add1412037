//! What the proxy was told, and what it knows of its connections.

use std::time::Duration;

use parking_lot::Mutex;
use ringfence_coordinator::random::Random;
use tokio::sync::watch;

use super::{
    frame::Frame,
    rules::{Counts, Deed, Flow, Trap, Whose},
};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Requests,
    Replies,
}

/// How a connection ends, other than by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Cut,
    HalfOpen,
}

/// What becomes of a frame now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Forward,
    Lose,
    /// Forward so many bytes of it, then end so.
    Part(usize, End),
}

/// Shared by the proxy's owner, which sets the faults, and its connections.
#[derive(Debug)]
pub(super) struct Shared {
    /// The server speaks another protocol than RESP.
    pub(super) is_raw: bool,
    state: Mutex<State>,
    changed: watch::Sender<()>,
    random: Random,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) upstream: u16,
    pub(super) refusing: bool,
    /// In the order they were given: the last that fits counts.
    pub(super) flows: Vec<(Whose, Way, Flow)>,
    pub(super) traps: Vec<Trap>,
    pub(super) sprung: u64,
    /// Every connection there was.
    pub(super) lines: Vec<Line>,
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) counts: Counts,
    /// Told to end so.
    pub(super) end: Option<End>,
    /// Ways on which something was thrown away.
    lost: [bool; 2],
    /// Requests let through: each has a reply.
    admitted: u64,
    /// Replies that came for them.
    answered: u64,
    /// A trap has sprung: what to do with the reply of this number.
    sprung: Option<(u64, Deed)>,
}

impl Shared {
    pub(super) fn new(upstream: u16, seed: u64, is_raw: bool) -> Self {
        Self {
            is_raw,
            state: Mutex::new(State {
                upstream,
                ..State::default()
            }),
            changed: watch::Sender::new(()),
            random: Random::seeded(seed),
        }
    }

    /// Looks something up.
    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    /// Changes what connections have to know of.
    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.send_replace(());
    }

    /// Told of every change from now on.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Registers a connection; `None` if it is to be refused.
    pub(super) fn accept(&self) -> Option<usize> {
        let mut state = self.state.lock();
        if state.refusing {
            return None;
        }
        let mut line = Line::default();
        line.counts.connections = 1;
        state.lines.push(line);
        Some(state.lines.len() - 1)
    }

    pub(super) fn flow(&self, line: usize, way: Way) -> Flow {
        self.state.lock().flow(line, way)
    }

    /// Counts a frame that came.
    pub(super) fn read(&self, line: usize, way: Way) {
        let counts = &mut self.state.lock().lines[line].counts;
        counts.requests_read += u64::from(way == Way::Requests);
    }

    /// How long the next frame of a connection is to be kept.
    pub(super) fn delay(&self, line: usize, way: Way) -> Duration {
        match self.flow(line, way) {
            Flow::Delay(range) => {
                let width = range.end.saturating_sub(range.start);
                let width = u64::try_from(width.as_nanos()).unwrap_or(u64::MAX);
                range.start + Duration::from_nanos(self.random.below(width))
            }
            _ => Duration::ZERO,
        }
    }

    /// Whether something was thrown away on this way: then its end is not told either.
    pub(super) fn has_lost(&self, line: usize, way: Way) -> bool {
        let state = self.state.lock();
        state.lines[line].lost[way as usize] || state.flow(line, way) == Flow::Lose
    }

    /// What to do with `frame`, to be asked just before it is forwarded.
    pub(super) fn judge(&self, line: usize, way: Way, frame: &Frame) -> Verdict {
        let mut state = self.state.lock();
        match way {
            Way::Requests => state.judge_request(line, frame),
            Way::Replies => state.judge_reply(line, frame),
        }
    }

    /// Counts a frame that was forwarded.
    pub(super) fn forwarded(&self, line: usize, way: Way, frame: &Frame) {
        let counts = &mut self.state.lock().lines[line].counts;
        match way {
            Way::Requests => counts.requests += 1,
            Way::Replies => counts.replies += u64::from(!frame.is_push()),
        }
    }
}

impl State {
    /// Tells connections to end so. Those that have ended do not mind.
    pub(super) fn end(&mut self, whose: &Whose, end: End) {
        let lines = self.lines.iter_mut();
        for line in lines.filter(|line| whose.is(&line.name)) {
            line.end = Some(end);
        }
    }

    fn flow(&self, line: usize, way: Way) -> Flow {
        let name = &self.lines[line].name;
        let mut latest = self.flows.iter().rev();
        let flow = latest.find(|(whose, of, _)| *of == way && whose.is(name));
        flow.map_or(Flow::Pass, |(_, _, flow)| flow.clone())
    }

    fn judge_request(&mut self, at: usize, frame: &Frame) -> Verdict {
        let words = frame.words();
        if let Some(name) = name_given(&words) {
            self.lines[at].name = String::from_utf8_lossy(name).into_owned();
        }
        if self.loses(at, Way::Requests) {
            self.lines[at].counts.requests_lost += 1;
            return Verdict::Lose;
        }
        let line = &mut self.lines[at];
        let fits = |trap: &Trap| trap.is_for(&line.name, &words);
        for trap in self.traps.iter_mut().filter(|trap| fits(trap)) {
            trap.nth -= 1;
        }
        if let Some(sprung) = self.traps.iter().position(|trap| trap.nth == 0) {
            line.sprung = Some((line.admitted, self.traps.remove(sprung).deed));
            self.sprung += 1;
        }
        line.admitted += 1;
        Verdict::Forward
    }

    fn judge_reply(&mut self, at: usize, frame: &Frame) -> Verdict {
        let line = &mut self.lines[at];
        let mut deed = None;
        if !frame.is_push() {
            deed = line.sprung.filter(|(number, _)| *number == line.answered);
            line.answered += 1;
        }
        match deed {
            Some((_, Deed::Cut { reply_bytes })) => {
                return Verdict::Part(reply_bytes.min(frame.bytes().len()), End::Cut);
            }
            Some((_, Deed::HalfOpen)) => return Verdict::Part(0, End::HalfOpen),
            Some((_, Deed::LoseReplies)) => line.lost[Way::Replies as usize] = true,
            None => {}
        }
        if self.loses(at, Way::Replies) {
            self.lines[at].counts.replies_lost += 1;
            return Verdict::Lose;
        }
        Verdict::Forward
    }

    fn loses(&mut self, at: usize, way: Way) -> bool {
        let now = self.flow(at, way) == Flow::Lose;
        let lost = &mut self.lines[at].lost[way as usize];
        *lost |= now;
        *lost
    }
}

/// The name that a request gives its connection.
fn name_given<'a>(words: &[&'a [u8]]) -> Option<&'a [u8]> {
    let is = |index: usize, word: &str| {
        words
            .get(index)
            .is_some_and(|own| own.eq_ignore_ascii_case(word.as_bytes()))
    };
    let before = if is(0, "CLIENT") && is(1, "SETNAME") {
        1
    } else if is(0, "HELLO") {
        (1..words.len()).find(|&index| is(index, "SETNAME"))?
    } else {
        return None;
    };
    words.get(before + 1).copied()
}
