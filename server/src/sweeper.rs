//! Sweeps all accounts in the background, one coordinator at a time: reservations expire, transfers are finished, and old
//! answers are forgotten without a person or a cron job.

use std::{future::pending, time::Duration};

use futures_util::{StreamExt as _, stream};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use ringfence_client::{
    Client, Namespace,
    counter::{Account, CounterError, Inspection, Swept},
};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// The namespace and the key of the lock that the coordinator has which sweeps.
const LOCK: (&str, &str) = ("ringfence", "sweep");

/// The pause before each account: other work at the shards goes first.
const PAUSE: Duration = Duration::from_millis(2);

/// Accounts that are swept at a time.
const AT_A_TIME: usize = 32;

/// Sweeps all accounts, and counts what it found.
#[derive(Clone, Debug)]
pub(crate) struct Sweeper {
    client: Client,
    /// From the begin of a round to that of the next. Zero: there are none.
    every: Duration,
    numbers: Numbers,
}

/// Numbers of rounds by this coordinator.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// The accounts of the last round; none unless this coordinator sweeps.
    accounts: Family<Condition, Gauge>,
    /// How far back the account that remembers least still knows every id, in seconds.
    horizon: Gauge,
    done: Family<Work, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Condition {
    condition: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Work {
    work: &'static str,
}

/// How many accounts a round found, by condition.
#[derive(Debug, Default)]
struct Round {
    all: u64,
    in_doubt: u64,
    lost: u64,
    held: u64,
    unfinished: u64,
    hot: u64,
    /// The least time since which every id is known, in ms.
    horizon_ms: Option<u64>,
    /// Accounts that could not be read.
    unread: u64,
    /// Pages of names that could not be read.
    unlisted: u64,
}

impl Sweeper {
    pub(crate) fn new(client: Client, every: Duration) -> Self {
        Self {
            client,
            every,
            numbers: Numbers::default(),
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let Numbers {
            accounts,
            horizon,
            done,
        } = &self.numbers;
        registry.register(
            "accounts",
            "Accounts that the last sweep found, by condition, at the coordinator that sweeps",
            accounts.clone(),
        );
        registry.register(
            "idempotency_horizon_seconds",
            "How far back every id is remembered, by the account that remembers least; 0: none forgets yet",
            horizon.clone(),
        );
        registry.register("swept", "Work of sweeps, by kind", done.clone());
    }

    /// Sweeps until `stopping`. Does not end.
    pub(crate) async fn run(self, stopping: CancellationToken) {
        tokio::select! {
            () = stopping.cancelled() => self.numbers.accounts.clear(),
            () = self.rounds() => {}
        }
        pending::<()>().await;
    }

    async fn rounds(&self) {
        if self.every.is_zero() {
            return;
        }
        let lock = self.client.lock(LOCK.1).namespace(LOCK.0);
        sleep(self.every).await;
        loop {
            let next = Instant::now() + self.every;
            // Another coordinator sweeps, or a shard does not answer: it is tried again.
            if let Ok(guard) = lock.try_acquire().await {
                tokio::select! {
                    () = self.round() => {
                        // Nobody else begins before it is time.
                        tokio::select! {
                            () = sleep_until(next) => {}
                            () = guard.lost() => {}
                        }
                        guard.release().await;
                        continue;
                    }
                    () = guard.lost() => {
                        tracing::warn!("lost the lock of sweeps: another coordinator sweeps");
                    }
                }
            }
            self.numbers.accounts.clear();
            sleep(self.every).await;
        }
    }

    /// Sweeps every account once.
    async fn round(&self) {
        let (begun, mut round) = (Instant::now(), Round::default());
        let mut names = self.client.accounts();
        while let Some(page) = names.next().await {
            let accounts = match page.accounts {
                Ok(accounts) => accounts,
                Err(error) => {
                    tracing::warn!(shard = %page.shard, %error, "accounts are not swept");
                    round.unlisted += 1;
                    continue;
                }
            };
            let page = Instant::now();
            let sweeps = stream::iter(accounts.into_iter().zip(0..));
            let sweeps = sweeps.map(|((namespace, account), place)| async move {
                sleep_until(page + PAUSE * place).await;
                let swept = self.sweep(&namespace, &account).await;
                (namespace, account, swept)
            });
            let mut sweeps = std::pin::pin!(sweeps.buffer_unordered(AT_A_TIME));
            while let Some((namespace, account, swept)) = sweeps.next().await {
                self.count(&mut round, (&namespace, &account), swept);
            }
        }
        if round.all > 0 {
            let Round { all, unread, .. } = round;
            tracing::debug!(accounts = all, unread, took = ?begun.elapsed(), "swept");
        }
        self.numbers.tell(&round);
    }

    async fn sweep(&self, namespace: &Namespace, account: &Account) -> Result<Swept, CounterError> {
        let counters = self.client.counters_of(namespace.as_str());
        let counters = counters.expect("the name of a namespace that has an account");
        counters.open(account.as_str())?.sweep().await
    }

    fn count(
        &self,
        round: &mut Round,
        (namespace, account): (&Namespace, &Account),
        swept: Result<Swept, CounterError>,
    ) {
        let swept = match swept {
            // A name that a transfer was refused for.
            Err(CounterError::NoAccount { .. }) => return,
            Err(error) => {
                tracing::warn!(%namespace, %account, %error, "an account is not swept");
                round.all += 1;
                round.unread += 1;
                return;
            }
            Ok(swept) => swept,
        };
        round.add(swept.found.as_ref());
        if let Some(found) = swept.found.as_ref().filter(|found| found.is_hot()) {
            let rate = found.changes_per_s.values().max();
            tracing::info!(%namespace, %account, changes_per_s = ?rate, "a segment is hot: resegment the account");
        }
        for error in &swept.errors {
            // Those that last are numbers: they are in `accounts`.
            tracing::debug!(%namespace, %account, %error, "an account is swept in part");
        }
        self.numbers.add(&swept);
    }
}

impl Round {
    fn add(&mut self, found: Option<&Inspection>) {
        self.all += 1;
        let Some(found) = found else {
            self.unread += 1;
            return;
        };
        self.in_doubt += u64::from(found.is_in_doubt());
        self.lost += u64::from(!found.lost.0.is_empty());
        self.held += u64::from(found.has_held());
        self.unfinished += u64::from(found.has_unfinished());
        self.hot += u64::from(found.is_hot());
        let views = found.views.values().filter(|view| view.mark_ms > 0);
        let least = views
            .map(|view| view.now_ms.saturating_sub(view.mark_ms))
            .min();
        self.horizon_ms = self.horizon_ms.into_iter().chain(least).min();
    }
}

impl Numbers {
    fn add(&self, swept: &Swept) {
        let Swept {
            expired,
            delivered,
            returned,
            unpinned,
            purged,
            found: _,
            errors,
        } = swept;
        for (work, count) in [
            ("expired", *expired),
            ("delivered", *delivered),
            ("returned", *returned),
            ("unpinned", *unpinned),
            ("purged", *purged),
            ("failed", errors.len()),
        ] {
            self.done.get_or_create(&Work { work }).inc_by(count as u64);
        }
    }

    fn tell(&self, round: &Round) {
        for (condition, count) in [
            ("all", round.all),
            ("in_doubt", round.in_doubt),
            ("lost", round.lost),
            ("held", round.held),
            ("unfinished", round.unfinished),
            ("hot", round.hot),
            ("unread", round.unread + round.unlisted),
        ] {
            let gauge = self.accounts.get_or_create(&Condition { condition });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let seconds = round.horizon_ms.unwrap_or_default() / 1000;
        self.horizon.set(i64::try_from(seconds).unwrap_or(i64::MAX));
    }
}
