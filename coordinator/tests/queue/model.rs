//! One key and its waiters: the simplest correct model.

use std::time::Duration;

use ringfence_coordinator::{
    ids::{ClientId, Epoch, Nonce, Token},
    limits::TICKET_KEEP,
    name::{Label, LockKey},
    shard::{LockMode, Notification, Op, QueuedGrant, Reply, Ticket},
};

/// The holder of the key.
#[derive(Clone, Debug)]
struct Holder {
    nonce: Nonce,
    label: Label,
    token: Token,
    tokens: u32,
    told: bool,
    ends_ms: u64,
}

/// A waiter for it.
#[derive(Clone, Debug)]
struct Waiter {
    nonce: Nonce,
    label: Label,
    tokens: u32,
    ticket: Ticket,
    ends_ms: u64,
}

/// One key at an open shard after its grace.
#[derive(Debug)]
pub(crate) struct Model {
    key: LockKey,
    epoch: Epoch,
    counter: u64,
    now_ms: u64,
    holder: Option<Holder>,
    line: Vec<Waiter>,
    /// When the line ends as a whole: with the last ticket that came, be that still there or not.
    line_ends_ms: u64,
    /// Not heard yet.
    said: Vec<(ClientId, Notification)>,
}

impl Model {
    pub(crate) fn new(key: LockKey, epoch: Epoch, counter: u64) -> Self {
        Self {
            key,
            epoch,
            counter,
            now_ms: 0,
            holder: None,
            line: Vec::new(),
            line_ends_ms: 0,
            said: Vec::new(),
        }
    }

    /// The messages since the last call, with their receivers.
    pub(crate) fn said(&mut self) -> Vec<(ClientId, Notification)> {
        std::mem::take(&mut self.said)
    }

    /// The answer to `op`, at that time. Of how long another's lease goes on it says nothing.
    pub(crate) fn apply(&mut self, op: &Op, now_ms: u64) -> Reply {
        self.now_ms = now_ms;
        if self
            .holder
            .as_ref()
            .is_some_and(|holder| holder.ends_ms < now_ms)
        {
            self.holder = None;
        }
        if self.line_ends_ms < now_ms {
            self.line.clear();
        }
        match op {
            Op::Acquire { nonce, tokens, .. } => {
                let token = self.take(*tokens);
                self.pass(Some(*nonce));
                self.acquire(op, token)
            }
            Op::Renew { nonce, lease, .. } => self.renew(*nonce, *lease),
            Op::Release { nonce } => {
                self.line.retain(|waiter| waiter.nonce != *nonce);
                let held = self.holder.take_if(|holder| holder.nonce == *nonce);
                self.pass(None);
                Reply::Released {
                    held: held.is_some(),
                }
            }
            Op::Confirm { .. } | Op::Adopt { .. } | Op::Remove { .. } => {
                unreachable!("no slot moves here, and no lock has replicas")
            }
        }
    }

    fn take(&mut self, tokens: u32) -> Token {
        let first = Token::new(self.epoch, self.counter + 1);
        self.counter += u64::from(tokens);
        first
    }

    fn end(&self, length: Duration) -> u64 {
        self.now_ms + length.as_millis() as u64
    }

    fn pass(&mut self, asking: Option<Nonce>) {
        if self.holder.is_some() {
            return;
        }
        let ended = |waiter: &Waiter| waiter.ends_ms < self.now_ms;
        let dead = self.line.iter().take_while(|waiter| ended(waiter)).count();
        self.line.drain(..dead);
        if self.line.is_empty() {
            return;
        }
        let Waiter {
            nonce,
            label,
            tokens,
            ticket,
            ..
        } = self.line.remove(0);
        let (token, contended) = (self.take(tokens), !self.line.is_empty());
        self.holder = Some(Holder {
            nonce,
            label,
            token,
            tokens,
            told: contended,
            ends_ms: self.end(ticket.claim),
        });
        if asking != Some(nonce) {
            let turn = QueuedGrant {
                key: self.key.clone(),
                nonce,
                token,
                tokens,
                claim: ticket.claim,
                sent: ticket.sent,
                contended,
            };
            self.said.push((nonce.client, Notification::Granted(turn)));
        }
    }

    fn acquire(&mut self, op: &Op, token: Token) -> Reply {
        let Op::Acquire {
            nonce,
            label,
            lease,
            mode: LockMode::Exclusive,
            preferred: false,
            tokens,
            ticket,
            proof: _,
        } = op
        else {
            unreachable!("an acquire");
        };
        let ends_ms = self.end(*lease);
        if let Some(holder) = self.holder.clone().filter(|holder| holder.nonce != *nonce) {
            let position = ticket.map(|ticket| {
                let waiter = Waiter {
                    nonce: *nonce,
                    label: label.clone(),
                    tokens: *tokens,
                    ticket,
                    ends_ms: self.end(TICKET_KEEP),
                };
                self.queue(waiter, &holder)
            });
            return Reply::Held {
                remaining: Duration::ZERO,
                label: holder.label,
                position,
            };
        }
        self.line.retain(|waiter| waiter.nonce != *nonce);
        let holder = self.holder.get_or_insert_with(|| Holder {
            nonce: *nonce,
            label: label.clone(),
            token,
            tokens: *tokens,
            told: false,
            ends_ms,
        });
        holder.ends_ms = ends_ms;
        Reply::Granted {
            token: holder.token,
            tokens: holder.tokens,
            contended: !self.line.is_empty(),
        }
    }

    fn queue(&mut self, mut waiter: Waiter, holder: &Holder) -> u32 {
        let nonce = waiter.nonce;
        self.line_ends_ms = waiter.ends_ms;
        let is_first = self.line.first().is_none_or(|first| first.nonce == nonce);
        let known = self.line.iter_mut().find(|known| known.nonce == nonce);
        if is_first && (known.is_some() || !holder.told) {
            let contended = Notification::Contended {
                key: self.key.clone(),
                nonce: holder.nonce,
            };
            self.said.push((holder.nonce.client, contended));
        }
        match known {
            Some(known) => {
                waiter.ticket.sent = waiter.ticket.sent.max(known.ticket.sent);
                *known = waiter;
            }
            None => self.line.push(waiter),
        }
        let position = self.line.iter().position(|waiter| waiter.nonce == nonce);
        position.expect("just queued") as u32
    }

    fn renew(&mut self, nonce: Nonce, lease: Duration) -> Reply {
        let ends_ms = self.end(lease);
        match &mut self.holder {
            Some(holder) if holder.nonce == nonce => {
                holder.ends_ms = ends_ms;
                Reply::Renewed {
                    reclaimed: false,
                    contended: !self.line.is_empty(),
                    moving: None,
                }
            }
            _ => {
                self.pass(None);
                Reply::Lost
            }
        }
    }
}
