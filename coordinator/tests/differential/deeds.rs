//! Batches, and what is learned from their answers.

use std::time::Duration;

use ringfence_coordinator::{
    ids::{ClientId, Epoch, MapVersion, Nonce, Token},
    name::Label,
    shard::{Answers, Op, Reply, Request},
};

use crate::{
    pair::{ANSWER_MS, Checked, Pair, lock_key, wall_ms},
    steps::{Claim, Deed, Verb},
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
        Ok(())
    }

    fn compare(&self, batch: &[Request], expected: &Answers, found: &Answers) -> Checked {
        let alike = |(expected, found): (&Reply, &Reply)| match (expected, found) {
            (
                Reply::Held {
                    remaining: one,
                    label,
                },
                Reply::Held {
                    remaining: other,
                    label: its,
                },
            ) => self.near(*one, *other) && label == its,
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
            && expected.counter == found.counter;
        if looks {
            self.tally.count(if expected.quiet {
                "quiet batches"
            } else {
                "full batches"
            });
        }
        self.check(same, batch, expected, found)
    }

    fn learn(&mut self, deed: &Deed, reply: &Reply, now_ms: u64) {
        let lease = match &deed.verb {
            Verb::Acquire { lease, .. } | Verb::Renew { lease, .. } => *lease,
            Verb::Release => Duration::ZERO,
        };
        let end_ms = now_ms + lease.as_millis() as u64;
        match reply {
            Reply::Granted { token } => {
                let before = self.tokens.insert(deed.nonce, *token);
                let again = before == Some(*token);
                self.tally
                    .count(if again { "granted again" } else { "granted" });
                self.ends_ms[deed.key] = end_ms;
            }
            Reply::Renewed { reclaimed } => {
                self.tally
                    .count(if *reclaimed { "reclaimed" } else { "renewed" });
                self.ends_ms[deed.key] = end_ms;
            }
            Reply::Released { held: true } => {
                self.tally.count("released");
                self.ends_ms[deed.key] = 0;
            }
            Reply::Released { held: false } => self.tally.count("gone"),
            Reply::Held { .. } => self.tally.count("held"),
            Reply::Lost => self.tally.count("lost"),
            Reply::Moved { .. } => self.tally.count("moved"),
            Reply::Grace { .. } => self.tally.count("grace"),
            Reply::NoTokens | Reply::OutOfMemory | Reply::Foreign => self.tally.count("strange"),
        }
    }

    fn request(&self, map: MapVersion, deed: &Deed) -> Request {
        let nonce = Nonce {
            client: ClientId(1),
            sequence: deed.nonce,
        };
        let op = match &deed.verb {
            Verb::Acquire { label, lease } => Op::Acquire {
                nonce,
                label: Label::new(label),
                lease: *lease,
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

fn kind(request: &Request) -> std::mem::Discriminant<Op> {
    std::mem::discriminant(&request.op)
}
