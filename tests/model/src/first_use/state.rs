//! What the servers keep, and how far each process is.

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) servers: Vec<Server>,
    pub(super) processes: [Process; 2],
    /// Every one there ever was, by its id.
    pub(super) foundings: Vec<Founding>,
    /// Joins under way, sorted: a server, and a founding.
    pub(super) joins: Vec<(u8, u8)>,
    pub(super) crashes: u8,
    pub(super) restarts: u8,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

/// A server.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Server {
    /// Of its memory; another after every restart.
    pub(super) life: u8,
    /// The founding it belongs to.
    pub(super) pointer: Option<u8>,
    pub(super) record: Option<Record>,
    /// The founding for which it was armed. That left a copy of the record, too.
    pub(super) armed: Option<u8>,
}

/// A topology's record at its home.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) founding: u8,
    pub(super) status: Status,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Status {
    Creating,
    Active,
}

/// What a founding began with.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Founding {
    /// As bits.
    pub(super) members: u8,
    pub(super) home: u8,
    /// The lives that may join, and be armed.
    pub(super) lives: [u8; SERVERS],
    /// Whether it ever was active: a process that read that may arm at any later time.
    pub(super) was_active: bool,
}

pub(super) const SERVERS: usize = 3;

/// A process on its way.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Process {
    /// It looks.
    Looking,
    /// It founds: these, as bits, have answered that they joined.
    Founding { id: u8, joined: u8 },
    /// It goes by that topology.
    Joined { id: u8 },
    /// It has ended.
    Dead,
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// A process brought its own founding into use.
    Activated,
    /// … that of another.
    Helped,
    /// A founding was undone.
    Voided,
}

impl World {
    pub(super) fn server(&self, server: u8) -> &Server {
        &self.servers[usize::from(server)]
    }

    pub(super) fn server_mut(&mut self, server: u8) -> &mut Server {
        &mut self.servers[usize::from(server)]
    }

    pub(super) fn founding(&self, id: u8) -> Founding {
        self.foundings[usize::from(id)]
    }

    /// The record of founding `id` at its home, if it is there.
    pub(super) fn status(&self, id: u8) -> Option<Status> {
        let record = self.server(self.founding(id).home).record;
        record
            .filter(|record| record.founding == id)
            .map(|record| record.status)
    }
}

impl Founding {
    pub(super) fn has(&self, server: u8) -> bool {
        self.members >> server & 1 == 1
    }

    /// Its members, in order.
    pub(super) fn each(self) -> impl Iterator<Item = u8> {
        (0..SERVERS as u8).filter(move |server| self.has(*server))
    }

    pub(super) fn knows_life(&self, server: u8, life: u8) -> bool {
        self.lives[usize::from(server)] == life
    }
}
