//! Batches, and the knowledge gained from their answers.

use std::time::Duration;

use ringfence_coordinator::{
    clock::Instant,
    ids::{ClientId, Epoch, MapVersion, Nonce, Token},
    name::Label,
    shard::{Answers, Notification, Op, Proof, Reply, Request, Ticket},
};

use super::{
    pair::{Checked, Pair, lock_key},
    steps::{CLIENTS, Claim, Deed, Verb},
};

impl Pair<'_> {
    /// Applies a batch to both.
    pub(crate) async fn batch(&mut self, map: u64, deeds: &[Deed]) -> Checked {
        // A request that knows of a move has its slots checked.
        let moves = |deed: &Deed| self.away.contains(&lock_key(deed.key).slot());
        let map = match deeds.iter().any(moves) {
            true => MapVersion::UNKNOWN,
            false => MapVersion(map),
        };
        let batch: Vec<_> = deeds.iter().map(|deed| self.request(map, deed)).collect();
        let [redis, memory] = &mut self.locks;
        let expected = redis.call(&batch).await;
        let found = memory.call(&batch).await;
        for _ in deeds {
            self.tally.count("operations");
        }
        let Some((expected, found)) = self.both(expected, found, &batch).await? else {
            return Ok(());
        };
        self.compare(&batch, &expected, &found)?;
        for (deed, reply) in deeds.iter().zip(&expected.replies) {
            self.learn(deed, reply);
        }
        for notification in self.heard().await? {
            self.learn_of(&notification);
        }
        Ok(())
    }

    fn compare(&self, batch: &[Request], expected: &Answers, found: &Answers) -> Checked {
        let alike = |(expected, found): (&Reply, &Reply)| match (expected, found) {
            (
                Reply::Held {
                    remaining: one,
                    label,
                    position,
                },
                Reply::Held {
                    remaining: other,
                    label: its,
                    position: its_position,
                },
                // Redis may not know of a renewal yet when it tells which share ends first.
            ) => {
                let is_sooner = label.as_str().is_empty() && one < other;
                (one == other || is_sooner) && label == its && position == its_position
            }
            (one, other) => one == other,
        };
        // Of a batch of releases, or of removals, it is not asked whether the shard is quiet.
        let looks = batch
            .iter()
            .any(|request| !matches!(request.op, Op::Release { .. } | Op::Remove { .. }));
        let same = expected.replies.iter().zip(&found.replies).all(alike)
            && (expected.quiet == found.quiet || !looks)
            && counters_agree(batch, expected.counter, found.counter);
        if looks {
            self.tally.count(if expected.quiet {
                "quiet batches"
            } else {
                "full batches"
            });
        }
        self.check(same, batch, expected, found)
    }

    /// A message tells of a record that nobody asked for in this batch.
    pub(crate) fn learn_of(&mut self, notification: &Notification) {
        let Notification::Granted(turn) = notification else {
            return self.tally.count("contended by message");
        };
        self.tally.count("turns");
        self.tokens.insert(turn.nonce.sequence, turn.token);
    }

    fn learn(&mut self, deed: &Deed, reply: &Reply) {
        self.learn_of_ticket(deed, reply);
        match reply {
            Reply::Granted {
                token, contended, ..
            } => {
                let before = self.tokens.insert(deed.nonce, *token);
                let again = before == Some(*token);
                self.tally
                    .count(if again { "granted again" } else { "granted" });
                self.count_contended(*contended);
            }
            Reply::Renewed {
                reclaimed,
                contended,
                moving,
            } => {
                self.tally.count(match (&deed.verb, reclaimed) {
                    (Verb::Confirm { .. }, true) => "installed",
                    (Verb::Confirm { .. }, false) => "confirmed",
                    (_, true) => "reclaimed",
                    (_, false) => "renewed",
                });
                if moving.is_some() {
                    self.tally.count("renewed, moving");
                }
                self.count_contended(*contended);
            }
            Reply::Adopted { contended } => {
                self.tally.count("adopted");
                self.count_contended(*contended);
            }
            Reply::Released { held: true } => {
                let removed = matches!(deed.verb, Verb::Remove(_));
                self.tally
                    .count(if removed { "removed" } else { "released" });
            }
            Reply::Released { held: false } => self.tally.count("gone"),
            Reply::Held { .. } => self.tally.count("held"),
            Reply::Lost => self.tally.count("lost"),
            Reply::Moved { .. } => self.tally.count("moved"),
            Reply::Grace { .. } => self.tally.count("grace"),
            Reply::NotAdopted => self.tally.count("not adopted"),
            Reply::Moving { left, .. } => {
                self.tally.count(match left {
                    Some(0) => "absent",
                    Some(_) => "some left",
                    None => "moving",
                });
            }
            Reply::NeedProof { .. } => self.tally.count("need proof"),
            Reply::OtherKind { .. } => self.tally.count("other kind"),
            Reply::TooManyWaiters { .. }
            | Reply::Outdated
            | Reply::NoTokens
            | Reply::OutOfMemory
            | Reply::Foreign => self.tally.count("strange"),
        }
    }

    /// Where a ticket may have been written or renewed.
    fn learn_of_ticket(&self, deed: &Deed, reply: &Reply) {
        let Verb::Acquire {
            ticket: Some(_), ..
        } = deed.verb
        else {
            return;
        };
        match reply {
            Reply::Held { .. } | Reply::Grace { .. } | Reply::NeedProof { .. } => {
                self.tally.count("queued");
            }
            _ => {}
        }
    }

    fn count_contended(&self, contended: bool) {
        if contended {
            self.tally.count("contended by answer");
        }
    }

    fn token(&self, nonce: u64, claim: &Claim) -> Token {
        match claim {
            Claim::Own => self.tokens.get(&nonce).copied().unwrap_or_default(),
            Claim::Other { epoch, counter } => Token::new(Epoch(*epoch), *counter),
        }
    }

    fn request(&self, map: MapVersion, deed: &Deed) -> Request {
        Request {
            key: lock_key(deed.key),
            map,
            declared: MapVersion::UNKNOWN,
            op: self.op(deed),
        }
    }

    fn op(&self, deed: &Deed) -> Op {
        let nonce = nonce(deed.nonce);
        match &deed.verb {
            Verb::Acquire {
                label,
                mode,
                preferred,
                lease,
                tokens,
                ticket,
                proof,
            } => Op::Acquire {
                nonce,
                label: Label::new(label),
                lease: *lease,
                mode: *mode,
                preferred: *preferred,
                tokens: *tokens,
                ticket: ticket.map(ticket_of),
                proof: proof.map(|(when, left)| Proof {
                    epoch: self.known(when),
                    left,
                }),
            },
            Verb::Confirm {
                claim,
                lease,
                tokens,
                install,
            } => Op::Confirm {
                nonce,
                label: Label::new("confirmed"),
                token: self.token(deed.nonce, claim),
                tokens: *tokens,
                lease: *lease,
                install: *install,
            },
            Verb::Renew { claim, mode, lease } => Op::Renew {
                nonce,
                label: Label::new("renewed"),
                token: self.token(deed.nonce, claim),
                mode: *mode,
                lease: *lease,
            },
            Verb::Release => Op::Release { nonce },
            Verb::Adopt {
                own,
                claim,
                tokens,
                mode,
                lease,
                when,
            } => Op::Adopt {
                nonce,
                label: Label::new("adopted"),
                own: self.token(deed.nonce, own),
                token: self.token(deed.nonce, claim),
                tokens: *tokens,
                mode: *mode,
                lease: *lease,
                epoch: self.known(*when),
            },
            Verb::Remove(when) => Op::Remove {
                nonce,
                epoch: self.known(*when),
            },
        }
    }
}

pub(crate) fn nonce(sequence: u64) -> Nonce {
    Nonce {
        client: ClientId(u128::from(sequence % CLIENTS)),
        sequence,
    }
}

/// Redis tells its counter as its last acquires left it. What was passed on after them is not in it, nor the tokens
/// that were put back, adopted or confirmed after them, which may be of a later epoch.
fn counters_agree(batch: &[Request], redis: u64, memory: u64) -> bool {
    let is_acquire = |request: &Request| matches!(request.op, Op::Acquire { .. });
    let after = batch.rsplit(is_acquire).next().unwrap_or_default();
    let raises = |request: &Request| !matches!(request.op, Op::Release { .. } | Op::Remove { .. });
    redis == memory || (!after.is_empty() && (redis < memory || after.iter().any(raises)))
}

fn ticket_of((sent, claim): (u64, Duration)) -> Ticket {
    Ticket {
        sent: Instant::from_nanos(sent),
        claim,
        callers: 1,
    }
}
