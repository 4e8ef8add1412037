//! Records that the whole account had too little, so that every repeat gets that answer.

use super::{Answer, Entry, Refuse, Reply, Segment, State};

impl Segment {
    /// Records [`State::Insufficient`], iff nothing changed here since the caller first read; otherwise returns
    /// [`Reply::Changed`]. The caller has read all other segments twice, and they had not changed either: so at some
    /// instant the whole account had too little.
    ///
    /// A caller with an older layout gets [`Refusal::Layout`](super::Refusal::Layout) for any time of the id: it does
    /// not know every segment that may have money.
    pub fn refuse(&mut self, refuse: &Refuse, now_ms: u64) -> Answer {
        let content = refuse.change.digest();
        if let Some(entry) = self.recorded(&refuse.id)? {
            return self.first_answer(entry, content);
        }
        self.certain()?;
        self.newest_known(refuse.generation)?;
        self.timely(&refuse.id, now_ms)?;
        self.not_frozen(refuse.caller, now_ms)?;
        self.make_room(&refuse.id, now_ms)?;

        self.expire_due(now_ms);
        if self.version != refuse.version {
            return Ok(Reply::Changed);
        }
        let entry = Entry {
            content: Some(content),
            state: State::Insufficient,
        };
        self.record(&refuse.id, entry);
        Ok(self.answer(State::Insufficient))
    }
}
