//! What the store keeps, and what the sessions know.

pub(super) const SESSIONS: usize = 2;

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) now: u8,
    /// The last token that was drawn.
    pub(super) last: u8,
    /// The version of the head.
    pub(super) head: u8,
    /// The lock's document.
    pub(super) document: Option<Document>,
    /// The versions of it so far.
    pub(super) versions: u8,
    /// The greatest token that the lock had.
    pub(super) granted: u8,
    /// It was granted with a token that is not above all earlier ones.
    pub(super) fell: bool,
    pub(super) sessions: [Session; SESSIONS],
    /// How often the lock may yet be granted elsewhere.
    pub(super) moves: u8,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) version: u8,
    /// When the lock was released. `None`: it is held.
    pub(super) ended: Option<u8>,
}

/// A session, and its budget.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Session {
    /// The document as it was last read or written. `None`: nothing is known.
    pub(super) known: Option<Document>,
    pub(super) reserve: Option<Reserve>,
    /// It has read, and is about to draw.
    pub(super) draws: bool,
    /// A commit that grants the lock, on its way.
    pub(super) commit: Option<Commit>,
    pub(super) reads: u8,
    pub(super) acquires: u8,
    pub(super) adopts: u8,
}

/// Tokens drawn ahead.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Reserve {
    /// The last one that was used.
    pub(super) used: u8,
    pub(super) end: u8,
    pub(super) head: u8,
    pub(super) drawn: u8,
}

/// It is done if document and head are as expected, and it is in time.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Commit {
    /// The document's version. `None`: there is none.
    pub(super) expects: Option<u8>,
    pub(super) head: u8,
    pub(super) token: u8,
    pub(super) not_after: u8,
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// The lock was granted by a document that the session wrote itself.
    Recalled,
    /// It was granted by a session that expected no document.
    Presumed,
    /// A commit was refused: the document is another.
    Stale,
    /// A commit was refused: it is late, or the head is another.
    Late,
    /// The document was forgotten.
    Swept,
}

impl World {
    pub(super) fn session_mut(&mut self, session: usize) -> &mut Session {
        &mut self.sessions[session]
    }

    /// Writes the document. Returns it.
    pub(super) fn write(&mut self, ended: Option<u8>) -> Document {
        self.versions += 1;
        let version = self.versions;
        *self.document.insert(Document { version, ended })
    }

    /// The lock has this token.
    pub(super) fn grant(&mut self, token: u8) {
        self.fell |= token <= self.granted;
        self.granted = self.granted.max(token);
    }
}
