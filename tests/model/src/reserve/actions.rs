//! What may happen, and what then does.

use super::{
    Event, ReserveModel, Rule, World,
    state::{Commit, Document, Reserve, SESSIONS, Session},
};

/// One step. Numbers are sessions.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A session reads the lock.
    Read(usize),
    /// It draws tokens, in the same request.
    Draw(usize),
    /// It sends a commit that grants the lock, by what it knows or presumes.
    Acquire(usize),
    /// The commit arrives, and is answered.
    Commit(usize),
    /// A session releases the lock.
    Release(usize),
    /// A session writes a holder of another shard, with the token from there: the lowest that may be.
    AdoptLow(usize),
    /// The same with a token above all that this shard drew.
    Adopt(usize),
    /// The lock moves to another shard, is granted there, and comes back.
    Move,
    /// The document is forgotten.
    Sweep,
}

impl ReserveModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        let all = [Action::Tick, Action::Move, Action::Sweep];
        let its = [
            Action::Read,
            Action::Draw,
            Action::Acquire,
            Action::Commit,
            Action::Release,
            Action::AdoptLow,
            Action::Adopt,
        ];
        let its = its.iter().flat_map(|its| (0..SESSIONS).map(its));
        let all = all.into_iter().chain(its);
        actions.extend(all.filter(|action| self.after(world, *action).is_some()));
    }

    /// The state after it; `None` if it may not happen.
    pub(super) fn after(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.happened = None;
        self.happen(&mut next, action)?;
        Some(next)
    }

    fn happen(&self, world: &mut World, action: Action) -> Option<()> {
        match action {
            Action::Tick => {
                world.now += 1;
                (world.now <= self.config.ticks).then_some(())
            }
            Action::Read(session) => self.read(world, session),
            Action::Draw(session) => self.draw(world, session),
            Action::Acquire(session) => self.acquire(world, session),
            Action::Commit(session) => self.commit(world, session),
            Action::Release(session) => release(world, session),
            Action::AdoptLow(session) => self.adopt(world, session, world.granted + 1),
            Action::Adopt(session) => self.adopt(world, session, world.last + 1),
            Action::Move => grant_elsewhere(world),
            Action::Sweep => {
                let document = world.document.take()?;
                world.happened = Some(Event::Swept);
                (document.ended? + self.config.forget_after < world.now).then_some(())
            }
        }
    }

    /// What is read is what is there: the commit tells if it has changed.
    fn read(&self, world: &mut World, session: usize) -> Option<()> {
        let document = world.document;
        let its = world.session_mut(session);
        its.is_idle().then_some(())?;
        its.reads = its.reads.checked_sub(1)?;
        its.known = document;
        its.draws = self.holds(Rule::ReadsDraw) || its.reserve.is_none();
        Some(())
    }

    fn draw(&self, world: &mut World, session: usize) -> Option<()> {
        let (now, head, used) = (world.now, world.head, world.last);
        let its = world.session_mut(session);
        its.draws.then_some(())?;
        its.draws = false;
        let end = used + self.config.reserve;
        its.reserve = Some(Reserve {
            used,
            end,
            head,
            drawn: now,
        });
        world.last = end;
        Some(())
    }

    fn acquire(&self, world: &mut World, session: usize) -> Option<()> {
        let (now, head) = (world.now, world.head);
        let its = world.session_mut(session);
        its.is_idle().then_some(())?;
        its.acquires = its.acquires.checked_sub(1)?;
        let reserve = its.reserve.as_mut()?;
        let is_free = |document: Document| document.ended.is_some();
        its.known.is_none_or(is_free).then_some(())?;
        let not_after = match self.holds(Rule::ReservesEnd) {
            true => reserve.drawn + self.config.reserve_for,
            false => u8::MAX,
        };
        let is_its = !self.holds(Rule::ReservesHaveAHead) || reserve.head == head;
        (reserve.used < reserve.end && now <= not_after && is_its).then_some(())?;
        reserve.used += 1;
        its.commit = Some(Commit {
            expects: its.known.map(|known| known.version),
            head,
            token: reserve.used,
            not_after,
        });
        Some(())
    }

    fn commit(&self, world: &mut World, session: usize) -> Option<()> {
        let commit = world.session_mut(session).commit.take()?;
        if world.document.map(|document| document.version) != commit.expects {
            world.happened = Some(Event::Stale);
            let shown = world.document.filter(|_| self.breaks(Rule::RefusalsForget));
            world.session_mut(session).known = shown;
            return Some(());
        }
        if world.now > commit.not_after || world.head != commit.head {
            world.happened = Some(Event::Late);
            return Some(());
        }
        world.happened = Some(match commit.expects {
            Some(_) => Event::Recalled,
            None => Event::Presumed,
        });
        world.grant(commit.token);
        let known = world.write(None);
        world.session_mut(session).known = Some(known);
        Some(())
    }

    /// The last token is raised to this one.
    fn adopt(&self, world: &mut World, session: usize, token: u8) -> Option<()> {
        let document = world.document;
        let its = world.session_mut(session);
        its.is_idle().then_some(())?;
        its.adopts = its.adopts.checked_sub(1)?;
        (its.known == document && document.is_none_or(|its| its.ended.is_some())).then_some(())?;
        if self.holds(Rule::RaisesEndReserves) {
            its.reserve = None;
        }
        world.last = world.last.max(token);
        world.grant(token);
        let known = world.write(None);
        world.session_mut(session).known = Some(known);
        Some(())
    }
}

/// Only by what the session wrote itself.
fn release(world: &mut World, session: usize) -> Option<()> {
    let now = world.now;
    let its = world.session_mut(session);
    let known = its.known.filter(|known| known.ended.is_none())?;
    (its.is_idle() && world.document == Some(known)).then_some(())?;
    let known = world.write(Some(now));
    world.session_mut(session).known = Some(known);
    Some(())
}

/// The slot comes back by a step, which writes the head, and raises the last token.
fn grant_elsewhere(world: &mut World) -> Option<()> {
    world.moves = world.moves.checked_sub(1)?;
    let is_free = |document: Document| document.ended.is_some();
    world.document.is_none_or(is_free).then_some(())?;
    world.head += 1;
    world.last += 1;
    world.grant(world.last);
    Some(())
}

impl Session {
    fn is_idle(&self) -> bool {
        !self.draws && self.commit.is_none()
    }
}
