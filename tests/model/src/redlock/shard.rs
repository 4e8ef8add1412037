//! The shard's side: each request is one atomic step.

use super::{
    Answer, Ask, Event, Message, Nonce, RedlockModel, Rule, Token, World,
    state::{A, LEAD, Mode, Record, Shard},
};

impl RedlockModel {
    /// What a shard does. None if it refuses.
    pub(super) fn answer(&self, world: &mut World, message: &Message) -> Option<Answer> {
        let shard = *world.shard(message.shard);
        if !shard.is_armed() || shard.mode == Mode::Shut {
            return None;
        }
        match message.ask {
            Ask::Acquire { replaces } => self.acquire_at(world, message, shard, replaces),
            Ask::Renew(token) | Ask::Extend(token) => self.renew_at(world, message, shard, token),
            Ask::Install(token) => self.install_at(world, message, shard, token),
            Ask::Adopt { own, token } => self.adopt_at(world, message, shard, own, token),
            Ask::WriteBack(token) => {
                world.shard_mut(message.shard).raise(token);
                Some(Answer {
                    token: None,
                    released: None,
                })
            }
            Ask::Release => {
                self.release_record(world, message);
                None
            }
        }
    }

    fn acquire_at(
        &self,
        world: &mut World,
        message: &Message,
        shard: Shard,
        replaces: Option<Nonce>,
    ) -> Option<Answer> {
        if shard.grace > 0 {
            return None;
        }
        self.pass(world, message.shard, Some(message.nonce));
        let shard = *world.shard(message.shard);
        if let Some(own) = own(&shard, message) {
            self.write(world, message, own.token);
            return answer(Some(own.token));
        }
        let free = (shard.record).is_none_or(|record| Some(record.nonce) == replaces);
        if !free || !may_grant(world, shard.mode) {
            self.enter(world, message);
            return None;
        }
        let token = shard.token.next();
        world.shard_mut(message.shard).raise(token);
        self.write(world, message, token);
        let released = shard.released.filter(|_| message.shard == LEAD);
        Some(Answer {
            token: Some(token),
            released,
        })
    }

    /// Extends its own record, and confirms; puts it back in grace. The shards have one operation for each: if a slot
    /// is not open, a renewal extends, and a confirm writes nothing.
    fn renew_at(
        &self,
        world: &mut World,
        message: &Message,
        shard: Shard,
        token: Token,
    ) -> Option<Answer> {
        if let Some(own) = own(&shard, message) {
            return self.extend(world, message, shard, own, token);
        }
        let fits = (shard.record).is_none_or(|record| record.token < token);
        if shard.grace == 0 || !fits {
            return None;
        }
        self.write(world, message, token);
        if self.holds(Rule::ReclaimRaises) {
            world.shard_mut(message.shard).raise(token);
        }
        self.note(world, Event::Reclaimed);
        answer(Some(token).filter(|_| self.confirms(shard.mode)))
    }

    fn extend(
        &self,
        world: &mut World,
        message: &Message,
        shard: Shard,
        own: Record,
        token: Token,
    ) -> Option<Answer> {
        if matches!(message.ask, Ask::Extend(_)) || !self.confirms(shard.mode) {
            self.write(world, message, own.token);
            return answer(None);
        }
        let token = own.token.max(token);
        self.write(world, message, token);
        world.shard_mut(message.shard).raise(token);
        answer(Some(token))
    }

    /// A confirm counts in an open slot.
    fn confirms(&self, mode: Mode) -> bool {
        let sealed = mode == Mode::Sealed && self.breaks(Rule::ConfirmInAnOpenSlot);
        mode == Mode::Open || sealed
    }

    fn install_at(
        &self,
        world: &mut World,
        message: &Message,
        shard: Shard,
        token: Token,
    ) -> Option<Answer> {
        if let Some(own) = own(&shard, message) {
            return self.extend(world, message, shard, own, token);
        }
        let sealed = shard.mode == Mode::Sealed && self.breaks(Rule::InstallInAnOpenSlot);
        let open = shard.mode == Mode::Open || sealed;
        let in_grace = shard.grace > 0 && self.holds(Rule::InstallAfterGrace);
        if shard.record.is_some() || !open || in_grace {
            return None;
        }
        self.write(world, message, token);
        world.shard_mut(message.shard).raise(token);
        answer(Some(token))
    }

    /// The shard that a rank moves to takes the record over; the former one's goes.
    fn adopt_at(
        &self,
        world: &mut World,
        message: &Message,
        shard: Shard,
        sent: Token,
        token: Token,
    ) -> Option<Answer> {
        let own = own(&shard, message);
        if let (Some(own), Mode::Open) = (own, shard.mode) {
            return self.extend(world, message, shard, own, token);
        }
        let compared = if self.holds(Rule::AdoptComparesItsOwn) {
            sent
        } else {
            token
        };
        let fits = (shard.record).is_none_or(|record| record.token < compared);
        if shard.mode != Mode::Import || (own.is_none() && !fits) {
            return None;
        }
        let token = own.map_or(token, |own| own.token.max(token));
        self.write(world, message, token);
        if self.holds(Rule::AdoptRaises) {
            world.shard_mut(message.shard).raise(token);
        }
        answer(Some(token))
    }

    /// The next shard has the record: the former one's goes, if it is still sealed.
    pub(super) fn remove_adopted(&self, world: &mut World, nonce: Nonce) {
        let shard = world.shard_mut(A);
        if shard.mode == Mode::Sealed {
            shard.record = shard.record.filter(|record| record.nonce != nonce);
        }
    }

    fn release_record(&self, world: &mut World, message: &Message) {
        let names = self.config.supersedes && message.shard == LEAD;
        let shard = world.shard_mut(message.shard);
        if own(shard, message).is_some() {
            shard.record = None;
            shard.released = Some(message.nonce).filter(|_| names);
        }
        shard.ticket = (shard.ticket).filter(|ticket| ticket.nonce != message.nonce);
        self.pass(world, message.shard, None);
    }

    /// A full lease for the record of this nonce.
    fn write(&self, world: &mut World, message: &Message, token: Token) {
        let lease = self.config.lease;
        world.shard_mut(message.shard).record = Some(Record {
            nonce: message.nonce,
            token,
            left: lease,
        });
    }
}

fn may_grant(world: &World, mode: Mode) -> bool {
    match mode {
        Mode::Open => true,
        Mode::Import => world.migration.free && world.migration.imported,
        Mode::Sealed | Mode::Shut => false,
    }
}

fn own(shard: &Shard, message: &Message) -> Option<Record> {
    (shard.record).filter(|record| record.nonce == message.nonce)
}

fn answer(token: Option<Token>) -> Option<Answer> {
    Some(Answer {
        token,
        released: None,
    })
}
