//! The client's side: requests, answers, and when it holds the lock.

use super::{
    Answer, Ask, Event, How, Message, Nonce, RedlockModel, Rule, Token, Verb, World,
    state::{B, Client, LEAD, MAJORITY, Phase, Rank, SHARDS},
};

impl RedlockModel {
    /// A request to one rank. None if it is refused at once.
    pub(super) fn send(
        &self,
        world: &mut World,
        index: u8,
        (rank, shard): (u8, u8),
        verb: Verb,
        how: How,
    ) -> Option<()> {
        let client = world.client_mut(index);
        if verb == Verb::Acquire && !client.is_acquiring() {
            begin(client);
            world.client_mut(index).behind = self.is_behind(world, index);
        }
        let client = world.client_mut(index);
        let message = Message {
            nonce: client.nonce,
            rank,
            shard,
            ask: self.ask(client, rank, verb)?,
            answer: None,
            round: client.round,
            age: 0,
        };
        client.ranks[usize::from(rank)].asked |= verb == Verb::Acquire;
        if how == How::LateRequest {
            world.left.late -= 1;
            world.late.push(message);
            return Some(());
        }
        let Some(answer) = self.answer(world, &message) else {
            return match verb {
                Verb::Renew | Verb::Extend => self.found_gone(world, index, rank),
                Verb::Acquire => self.refused(world, index, rank),
                _ => None,
            };
        };
        if how == How::LateAnswer {
            world.left.late -= 1;
            let answer = Some(answer);
            world.late.push(Message { answer, ..message });
        } else {
            self.answered(world, &message, answer);
        }
        Some(())
    }

    fn ask(&self, client: &Client, rank: u8, verb: Verb) -> Option<Ask> {
        let token = client.token();
        Some(match verb {
            Verb::Acquire => Ask::Acquire {
                replaces: client.replaces,
            },
            Verb::Renew => Ask::Renew(token?),
            Verb::Extend => Ask::Extend(token?),
            Verb::Install => Ask::Install(token?),
            Verb::Adopt => Ask::Adopt {
                own: client.rank(rank).token.or(token)?,
                token: token?,
            },
            Verb::WriteBack => Ask::WriteBack(token?),
        })
    }

    /// A late request or answer arrives.
    pub(super) fn deliver(&self, world: &mut World, message: Message) {
        world.late.retain(|other| *other != message);
        if message.ask == Ask::Release {
            // The requests before it on its connection were processed before, or are lost.
            let before = |other: &Message| {
                other.nonce == message.nonce
                    && other.shard == message.shard
                    && other.answer.is_none()
            };
            world.late.retain(|other| !before(other));
        }
        let answer = message.answer.or_else(|| self.answer(world, &message));
        if let Some(answer) = answer {
            self.answered(world, &message, answer);
        }
    }

    /// The one place where a client judges an answer.
    fn answered(&self, world: &mut World, message: &Message, answer: Answer) {
        let client = world.client(message.nonce.process);
        let awaits = client.nonce == message.nonce && (client.is_acquiring() || client.holds());
        let left = self.config.lease.saturating_sub(message.age);
        if !awaits
            || left == 0
            || self.is_given_back(client, message)
            || self.is_dropped(client, message.shard)
        {
            return;
        }
        let was_acquiring = client.is_acquiring();
        let replaces = client.replaces;
        let client = world.client_mut(message.nonce.process);
        let rank = &mut client.ranks[usize::from(message.rank)];
        let at_b = message.rank == 0 && message.shard == B;
        if let Ask::WriteBack(token) = message.ask {
            rank.written = rank.written.max(token);
        } else if self.counts(rank, message, at_b) {
            rank.left = if rank.moved == at_b {
                rank.left.max(left)
            } else {
                left
            };
            rank.moved = at_b;
            rank.token = answer.token.or(rank.token);
            rank.renewed = self.config.forces;
            rank.held = false;
            rank.gone = false;
        } else {
            return;
        }
        if message.shard == LEAD && matches!(message.ask, Ask::Acquire { .. }) {
            client.replaces = answer.released;
        }
        if matches!(message.ask, Ask::Adopt { .. }) {
            self.remove_adopted(world, message.nonce);
        }
        self.decide(world, message.nonce.process);
        let holds = world.client(message.nonce.process).holds();
        let event = match message.ask {
            Ask::Acquire { .. } if holds && replaces.is_some() => Event::HeldAsSuccessor,
            Ask::Acquire { .. } if holds && at_b => Event::HeldAtNextShard,
            Ask::Renew(_) if was_acquiring && holds => Event::HeldAfterConfirm,
            Ask::Adopt { .. } if was_acquiring && holds => Event::HeldAfterAdopt,
            Ask::Adopt { .. } if holds => Event::Adopted,
            Ask::Install(_) => Event::Installed,
            _ => return,
        };
        self.note(world, event);
    }

    /// Whether the rank was given back since the request was sent.
    pub(super) fn is_given_back(&self, client: &Client, message: &Message) -> bool {
        let is_former = message.round < client.round && message.rank != client.lead();
        is_former && self.holds(Rule::GiveBackEndsRequests)
    }

    /// Whether the answer changes anything for the rank.
    fn counts(&self, rank: &Rank, message: &Message, at_b: bool) -> bool {
        let lives = rank.left > 0;
        let at_any_time = self.breaks(Rule::ReclaimBeforeItsDeadline)
            || self.breaks(Rule::ConfirmBeforeItsDeadline);
        match message.ask {
            Ask::Acquire { .. } | Ask::Install(_) => !lives || rank.moved == at_b,
            Ask::Renew(_) | Ask::Extend(_) => lives || at_any_time || self.config.revives,
            Ask::Adopt { .. } => {
                let late = self.breaks(Rule::AdoptedBeforeItsDeadline);
                lives || late || self.breaks(Rule::AdoptTheAcknowledged)
            }
            Ask::WriteBack(_) | Ask::Release => false,
        }
    }

    /// Whether a majority has the same token, and what follows.
    pub(super) fn decide(&self, world: &mut World, index: u8) {
        let client = world.client(index);
        if !client.is_acquiring() || !self.has_turn(world, client) {
            return;
        }
        if let Some(token) = self.held(client) {
            let again = world.ledger.newest != Token::default();
            if !client.taken {
                world.ledger.out_of_order |= token <= world.ledger.newest;
                world.ledger.newest = world.ledger.newest.max(token);
            }
            world.client_mut(index).phase = Phase::Holding(token);
            if again {
                self.note(world, Event::HeldAgain);
            }
            if world.removal.second.is_some() {
                self.note(world, Event::HeldAfterRemoval);
            }
        }
    }

    /// The token with which a majority holds the lock for the client.
    fn held(&self, client: &Client) -> Option<Token> {
        let mut tokens: Vec<Token> = client.live().filter_map(|rank| rank.token).collect();
        tokens.sort();
        if tokens.len() < MAJORITY {
            return None;
        }
        let greatest = tokens.last().copied();
        if self.breaks(Rule::GreatestIsConfirmed) {
            return greatest;
        }
        if self.breaks(Rule::ConfirmOnItsOwnRecord) {
            let wrote = |rank: &&Rank| rank.token.max(Some(rank.written)) >= greatest;
            let written = client.ranks.iter().filter(wrote).count();
            return greatest.filter(|_| written >= MAJORITY);
        }
        if self.config.median {
            let middle = tokens[MAJORITY - 1];
            let least = |token: &&Token| **token >= middle;
            return Some(middle).filter(|_| tokens.iter().filter(least).count() >= MAJORITY);
        }
        let equal = tokens.windows(MAJORITY).find(|pair| pair[0] == pair[1]);
        equal.map(|pair| pair[0])
    }

    /// Belief ends first; then the releases are sent, to every shard.
    pub(super) fn release(&self, world: &mut World, index: u8, late: Option<u8>) {
        let nonce = world.client(index).nonce;
        world.client_mut(index).end();
        for shard in 0..SHARDS {
            self.release_at(world, nonce, shard, late == Some(shard));
        }
    }

    /// The lead has another's record: the other ranks are given back, and the nonce waits.
    pub(super) fn give_back(&self, world: &mut World, index: u8, late: Option<u8>) {
        world.left.give_backs -= u8::from(!self.config.leads);
        let client = world.client_mut(index);
        let (nonce, lead) = (client.nonce, client.lead());
        client.round += 1;
        for (rank, known) in (0..).zip(&mut client.ranks) {
            if rank != lead {
                *known = Rank {
                    passed: known.passed,
                    ..Rank::default()
                };
            }
        }
        for shard in (0..SHARDS).filter(|shard| *shard != lead) {
            self.release_at(world, nonce, shard, late == Some(shard));
        }
    }

    /// A release goes behind the requests under way for its nonce.
    fn release_at(&self, world: &mut World, nonce: Nonce, shard: u8, late: bool) {
        let message = Message {
            nonce,
            rank: if shard == B { 0 } else { shard },
            shard,
            ask: Ask::Release,
            answer: None,
            round: 0,
            age: 0,
        };
        let before = |other: &Message| {
            other.nonce == nonce && other.shard == shard && other.answer.is_none()
        };
        world.left.late -= u8::from(late);
        if late || world.late.iter().any(before) {
            world.late.push(message);
        } else {
            self.answer(world, &message);
        }
    }

    pub(super) fn note(&self, world: &mut World, event: Event) {
        if self.config.reaches.contains(&event) {
            world.ledger.happened = Some(event);
        }
    }
}

/// A new nonce.
fn begin(client: &mut Client) {
    client.end();
    client.acquisitions -= 1;
    client.nonce.sequence += 1;
    client.phase = Phase::Acquiring;
}
