//! The accounts of a namespace, page by page.

use std::fmt;

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use ringfence_coordinator::{engine, name::Namespace, shard::ShardError};
use ringfence_ring::ShardId;
use ringfence_segment_lock::{Account, CounterError, Inspection};

use crate::Counters;

/// Accounts that are read at a time.
const AT_A_TIME: usize = 64;

/// A walk through the accounts of a namespace, one shard after the other, one page at a time. Made by [`Counters::list`].
///
/// It is not a snapshot. An account that exists from start to end is listed, perhaps twice, unless its shard and those of
/// its copies have lost it.
#[must_use = "nothing is asked for until the next page is"]
pub struct AccountList(BoxStream<'static, AccountListPage>);

/// Some of the accounts at a shard.
#[derive(Clone, Debug)]
pub struct AccountListPage {
    /// The shard.
    pub shard: ShardId,
    /// The accounts, in no order, perhaps none. After an error there are no more pages of this shard; the other shards go
    /// on.
    pub accounts: Result<Vec<ListedAccount>, ShardError>,
}

/// An account, and what is in it.
#[derive(Clone, Debug)]
pub struct ListedAccount {
    /// Its name.
    pub account: Account,
    /// Its segments, not read at one instant.
    pub found: Result<Inspection, CounterError>,
}

impl AccountList {
    #[cfg(feature = "service")]
    pub(crate) fn of(pages: BoxStream<'static, AccountListPage>) -> Self {
        Self(pages)
    }

    /// Those whose names begin with `prefix`, at the shards.
    pub(crate) fn at_shards(
        names: engine::AccountNames,
        counters: Counters,
        prefix: String,
    ) -> Self {
        let pages = stream::unfold(names, |mut names| async {
            let page = names.next().await?;
            Some((page, names))
        });
        let pages = pages.then(move |engine::AccountNamesPage { shard, accounts }| {
            let (counters, prefix) = (counters.clone(), prefix.clone());
            async move {
                let accounts = match accounts {
                    Ok(accounts) => Ok(counters.look_at(accounts, &prefix).await),
                    Err(error) => Err(error),
                };
                AccountListPage { shard, accounts }
            }
        });
        Self(pages.boxed())
    }

    /// The next page; `None` when the walks through all shards are finished.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no page: the next call goes on with it.
    pub async fn next(&mut self) -> Option<AccountListPage> {
        self.0.next().await
    }
}

impl fmt::Debug for AccountList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AccountList")
    }
}

impl Counters {
    async fn look_at(
        &self,
        accounts: Vec<(Namespace, Account)>,
        prefix: &str,
    ) -> Vec<ListedAccount> {
        let wanted = accounts.into_iter().map(|(_, account)| account);
        let wanted = wanted.filter(|account| account.as_str().starts_with(prefix));
        let looks = stream::iter(wanted).map(|account| async {
            let found = match self.open(account.as_str()) {
                Ok(counter) => counter.inspect().await,
                Err(error) => Err(error),
            };
            ListedAccount { account, found }
        });
        // A transfer to a name that no account has leaves its refusal there.
        let is_one = |found: &Result<_, _>| !matches!(found, Err(CounterError::NoAccount { .. }));
        let looks = looks.buffer_unordered(AT_A_TIME);
        let looks = looks.filter(|listed| std::future::ready(is_one(&listed.found)));
        looks.collect().await
    }
}
