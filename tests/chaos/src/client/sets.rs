//! Takes sets of locks that overlap with those of others, works for a while, gives them back; again and again.

use std::{io, iter, pin::pin, sync::Arc, time::Duration};

use rand::{RngExt, rngs::StdRng, seq::IndexedRandom};
use ringfence_client::{AcquireError, Effect, MultiGuard, MultiLockError, ReleaseAnswer};
use tokio::time::{Instant, sleep, timeout};

use super::{
    Holder,
    holder::Abandoned,
    worker::{PAUSE, WAITS, WRITE_EVERY, WRITE_TAKES, part},
};
use crate::{
    history::{Answer, Deed, Kind, Phase, Recorder},
    resource::Resource,
};

/// How many keys are taken together.
const TOGETHER: std::ops::RangeInclusive<usize> = 2..=4;
/// Most critical sections are a small part of the longest one: a process that waits for a set delays those that wait for
/// the keys it has already.
const SHORT: u32 = 20;
/// The others are so much shorter than the longest one, which outlasts renewals and faults.
const LONG: u32 = 2;
/// A pause between two sets.
const REST: Duration = Duration::from_millis(400);

/// How long a set is waited for.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// Not at all.
    Try,
    /// For so long.
    For(Duration),
    /// Until it is granted.
    Endless,
}

/// A set of locks that was taken. Its drop gives it back in the background, and is recorded, also at the end of the process.
#[derive(Debug)]
pub struct AskedSet {
    guard: Option<MultiGuard>,
    /// Recorded with every operation on a lock of the set.
    of_grants: Vec<Deed>,
    recorder: Arc<Recorder>,
}

/// Works until dropped.
pub(super) async fn run(
    holder: Holder,
    mut resource: Resource,
    section_max: Duration,
    keys: &[String],
    mut random: StdRng,
) -> io::Result<()> {
    loop {
        let count = random.random_range(TOGETHER);
        // In an order of their own.
        let set: Vec<_> = keys.sample(&mut random, count).cloned().collect();
        let patience = match random.random_range(0..10) {
            0..3 => Patience::Try,
            3..6 => Patience::For(WAITS[random.random_range(0..WAITS.len())]),
            // Two that wait for each other never end.
            _ => Patience::Endless,
        };
        let asking = holder.take_set(&set, patience);
        let asked = if random.random_bool(0.1) {
            let abandoned = timeout(part(PAUSE, &mut random), asking).await;
            abandoned.ok().flatten()
        } else {
            asking.await
        };
        match asked {
            Some(asked) => {
                let is_short = random.random_bool(0.8);
                let longest = section_max / if is_short { SHORT } else { LONG };
                let length = part(longest, &mut random);
                section(&holder, asked, length, &mut resource, &mut random).await?;
                sleep(part(REST, &mut random)).await;
            }
            None => sleep(part(PAUSE, &mut random)).await,
        }
    }
}

async fn section(
    holder: &Holder,
    asked: AskedSet,
    length: Duration,
    resource: &mut Resource,
    random: &mut StdRng,
) -> io::Result<()> {
    let until = Instant::now() + length;
    while holder
        .write_set(&asked, resource, part(WRITE_TAKES, random))
        .await?
    {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if random.random_bool(0.8) {
                holder.release_set(asked).await;
            }
            return Ok(());
        }
        tokio::select! {
            () = asked.guard().lost() => {}
            () = sleep(left.min(part(WRITE_EVERY, random))) => {}
        }
    }
    // One of them is lost, and the guard does not say which.
    holder.notice(&asked.of_grants[0], Answer::Lost);
    Ok(())
}

impl Holder {
    /// Asks for all `keys` together.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the acquisition, and records that.
    pub async fn take_set(&self, keys: &[String], patience: Patience) -> Option<AskedSet> {
        let set = Some(self.recorder.next_op());
        let wait_ms = match patience {
            Patience::Try => Some(0),
            Patience::For(wait) => Some(wait.as_millis() as u64),
            Patience::Endless => None,
        };
        let of_key = |key: &String| Deed {
            set,
            wait_ms,
            ..self.asking(key)
        };
        let invoked: Vec<Deed> = keys.iter().map(of_key).collect();
        for invoked in &invoked {
            self.recorder.record(invoked.clone());
        }
        let lock = self.client.multi_lock(keys).lease(self.lease);
        let asking = async {
            match patience {
                Patience::Try => lock.try_acquire().await,
                Patience::For(wait) => lock.wait(wait).acquire().await,
                Patience::Endless => lock.acquire().await,
            }
        };
        let mut asking = pin!(asking);
        // Dropped before what it tells of: nobody is granted in its place before that is recorded.
        let abandoned = Abandoned::of(&self.recorder, invoked.clone());
        let asked = asking.as_mut().await;
        abandoned.not();
        match asked {
            Ok(guard) => {
                let granted = iter::zip(invoked, guard.tokens());
                let of_grants = granted.map(|(invoked, token)| self.granted(invoked, token));
                Some(AskedSet {
                    of_grants: of_grants.collect(),
                    guard: Some(guard),
                    recorder: self.recorder.clone(),
                })
            }
            Err(error) => {
                let refused = invoked.into_iter().map(|invoked| refused(invoked, &error));
                refused.for_each(|refused| self.recorder.record(refused));
                None
            }
        }
    }

    /// Writes to `resource` under each lock of the set, if all are held; the writes are under way for `takes`. Whether all were
    /// held.
    async fn write_set(
        &self,
        asked: &AskedSet,
        resource: &mut Resource,
        takes: Duration,
    ) -> io::Result<bool> {
        let begun = self.recorder.now();
        if !asked.guard().is_held() {
            return Ok(false);
        }
        let of_grants = asked.of_grants.iter();
        let writes: Vec<_> = of_grants
            .map(|of_grant| self.of(of_grant, Kind::Write, Phase::Invoke))
            .collect();
        for invoked in &writes {
            self.recorder.record_at(begun, invoked.clone());
        }
        sleep(takes).await;
        for invoked in writes {
            let answer = resource.write(&invoked).await?;
            self.recorder.record(Deed {
                phase: match answer {
                    Answer::Accepted => Phase::Ok,
                    _ => Phase::Fail,
                },
                answer: Some(answer),
                ..invoked
            });
        }
        Ok(true)
    }

    /// Gives the set back and waits for the answer.
    async fn release_set(&self, mut asked: AskedSet) {
        let Some(guard) = asked.guard.take() else {
            return;
        };
        let of_grants = asked.of_grants.iter();
        let releases: Vec<_> = of_grants
            .map(|of_grant| {
                let invoked = self.of(of_grant, Kind::Release, Phase::Invoke);
                self.recorder.record(invoked.clone());
                (self.shard_at_rest(of_grant), invoked)
            })
            .collect();
        let (phase, answer) = match guard.release().await {
            // The record may be kept for the next waiter.
            ReleaseAnswer::Held if self.lingers => (Phase::Info, Some(Answer::Released)),
            ReleaseAnswer::Held => (Phase::Ok, Some(Answer::Released)),
            // One of them, and the answer does not say which.
            ReleaseAnswer::Lost => (Phase::Info, Some(Answer::NotThere)),
            ReleaseAnswer::Unknown => (Phase::Info, None),
        };
        for (shard, invoked) in releases {
            self.recorder.record(Deed {
                phase,
                answer,
                shard,
                ..invoked
            });
        }
    }
}

impl AskedSet {
    fn guard(&self) -> &MultiGuard {
        self.guard.as_ref().expect("there until it is given back")
    }
}

impl Drop for AskedSet {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else {
            return;
        };
        let of_grants = self.of_grants.iter();
        let releases: Vec<_> = of_grants
            .map(|of_grant| Deed {
                op: self.recorder.next_op(),
                kind: Kind::Release,
                phase: Phase::Invoke,
                lease_ms: None,
                reason: Some("dropped".into()),
                ..of_grant.clone()
            })
            .collect();
        for invoked in &releases {
            self.recorder.record(invoked.clone());
        }
        drop(guard);
        for invoked in releases {
            let phase = Phase::Info;
            self.recorder.record(Deed { phase, ..invoked });
        }
    }
}

/// The end of an acquisition in a set that was not granted.
fn refused(invoked: Deed, error: &MultiLockError) -> Deed {
    let held = match error {
        MultiLockError::NotAcquired { key, error } => {
            let because = match error {
                AcquireError::TimedOut { because, .. } => because,
                error => error,
            };
            let is_it = invoked.key.as_deref().map(str::as_bytes) == Some(key.key());
            is_it && matches!(because, AcquireError::Held { .. })
        }
        _ => false,
    };
    Deed {
        phase: match error.effect() {
            Effect::Unknown => Phase::Info,
            Effect::None => Phase::Fail,
        },
        answer: held.then_some(Answer::Held),
        reason: Some(error.to_string()),
        ..invoked
    }
}
