//! Batches, and what is learned from their answers.

use std::time::Duration;

use ringfence_coordinator::{
    clock::Instant,
    ids::{ClientId, Epoch, MapVersion, Nonce, Token},
    name::Label,
    shard::{Answers, Op, Reply, Request, Ticket, Wake},
};

use crate::{
    pair::{ANSWER_MS, Checked, Pair, lock_key, wall_ms},
    steps::{CLIENTS, Claim, Deed, KEYS, Verb},
};

impl Pair<'_> {
    /// Applies a batch to both.
    pub(crate) async fn batch(&mut self, map: u64, deeds: &[Deed]) -> Checked {
        let map = MapVersion(map);
        let batch: Vec<_> = deeds.iter().map(|deed| self.request(map, deed)).collect();
        let [redis, memory] = &mut self.links;
        let before = wall_ms();
        let expected = redis.call(&batch).await;
        self.asked_ms = [before, wall_ms()];
        let several = batch
            .windows(2)
            .any(|pair| kind(&pair[0]) != kind(&pair[1]));
        self.skewed = several && wall_ms() - before > ANSWER_MS;
        self.clock.set(
            expected
                .as_ref()
                .map_or(self.asked_ms[1], |answers| answers.now.0),
        );
        let found = memory.call(&batch).await;
        for _ in deeds {
            self.tally.count("operations");
        }
        let Some((expected, found)) = self.both(expected, found, &batch).await? else {
            return Ok(());
        };
        self.compare(&batch, &expected, &found)?;
        for (deed, reply) in deeds.iter().zip(&expected.replies) {
            self.learn(deed, reply, expected.now.0);
        }
        if self.is_near_an_end() {
            return Ok(());
        }
        for wake in self.heard().await? {
            self.learn_of(&wake, expected.now.0);
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
            ) => self.near(*one, *other) && label == its && position == its_position,
            (Reply::Grace { retry_after: one }, Reply::Grace { retry_after: other }) => {
                self.near(*one, *other)
            }
            (one, other) => one == other,
        };
        // A batch of releases looks at no slot: whether the shard is quiet is not asked.
        let looks = batch
            .iter()
            .any(|request| !matches!(request.op, Op::Release { .. }));
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
    fn learn_of(&mut self, wake: &Wake, now_ms: u64) {
        let Wake::Turn(turn) = wake else {
            return self.tally.count("wanted by message");
        };
        self.tally.count("turns");
        self.tokens.insert(turn.nonce.sequence, turn.token);
        let key = (0..KEYS.len()).find(|key| lock_key(*key) == turn.key);
        let end_ms = now_ms + turn.claim.as_millis() as u64;
        self.ends.also(key.expect("a key in play"), end_ms);
    }

    fn learn(&mut self, deed: &Deed, reply: &Reply, now_ms: u64) {
        let lease = match &deed.verb {
            Verb::Acquire { lease, .. } | Verb::Renew { lease, .. } => *lease,
            Verb::Release => Duration::ZERO,
        };
        let end_ms = now_ms + lease.as_millis() as u64;
        if let (
            Verb::Acquire {
                ticket: Some(_), ..
            },
            Reply::Held { .. } | Reply::Grace { .. },
        ) = (&deed.verb, reply)
        {
            self.tally.count("queued");
            self.ends.ticket(now_ms);
        }
        match reply {
            Reply::Granted { token, wanted, .. } => {
                let before = self.tokens.insert(deed.nonce, *token);
                let again = before == Some(*token);
                self.tally
                    .count(if again { "granted again" } else { "granted" });
                self.count_wanted(*wanted);
                self.ends.record(deed.key, Some(end_ms));
            }
            Reply::Renewed {
                reclaimed, wanted, ..
            } => {
                self.tally
                    .count(if *reclaimed { "reclaimed" } else { "renewed" });
                self.count_wanted(*wanted);
                self.ends.record(deed.key, Some(end_ms));
            }
            Reply::Released { held: true } => {
                self.tally.count("released");
                self.ends.record(deed.key, None);
            }
            Reply::Released { held: false } => self.tally.count("gone"),
            Reply::Held { .. } => self.tally.count("held"),
            Reply::Lost => self.tally.count("lost"),
            Reply::Moved { .. } => self.tally.count("moved"),
            Reply::Grace { .. } => self.tally.count("grace"),
            Reply::Adopted { .. }
            | Reply::NotAdopted
            | Reply::Moving { .. }
            | Reply::NeedProof { .. }
            | Reply::TooManyWaiters { .. }
            | Reply::NoTokens
            | Reply::OutOfMemory
            | Reply::Foreign => self.tally.count("strange"),
        }
    }

    fn count_wanted(&self, wanted: bool) {
        if wanted {
            self.tally.count("wanted by answer");
        }
    }

    fn request(&self, map: MapVersion, deed: &Deed) -> Request {
        let nonce = Nonce {
            client: ClientId(u128::from(deed.nonce % CLIENTS)),
            sequence: deed.nonce,
        };
        let op = match &deed.verb {
            Verb::Acquire {
                label,
                lease,
                tokens,
                ticket,
            } => Op::Acquire {
                nonce,
                label: Label::new(label),
                lease: *lease,
                tokens: *tokens,
                ticket: ticket.map(|(sent, claim)| Ticket {
                    sent: Instant::from_nanos(sent),
                    claim,
                }),
                proof: None,
            },
            Verb::Renew { claim, lease } => {
                let own = self.tokens.get(&deed.nonce).copied().unwrap_or_default();
                let token = match claim {
                    Claim::Own => own,
                    Claim::Other { epoch, counter } => Token::new(Epoch(*epoch), *counter),
                };
                Op::Renew {
                    nonce,
                    label: Label::new("renewed"),
                    token,
                    lease: *lease,
                }
            }
            Verb::Release => Op::Release { nonce },
        };
        Request {
            key: lock_key(deed.key),
            map,
            op,
        }
    }
}

/// Redis tells its counter as its last acquires left it; what was passed on after them is not in it.
fn counters_agree(batch: &[Request], redis: u64, memory: u64) -> bool {
    let is_acquire = |request: &Request| matches!(request.op, Op::Acquire { .. });
    redis == memory || (redis < memory && !batch.last().is_some_and(is_acquire))
}

fn kind(request: &Request) -> std::mem::Discriminant<Op> {
    std::mem::discriminant(&request.op)
}
