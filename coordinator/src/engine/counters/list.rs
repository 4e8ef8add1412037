//! The accounts of a namespace, shard by shard, page by page.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use futures_util::future::join_all;
use ringfence_ring::{ShardId, Slot};
use ringfence_segment_lock::Account;

use super::manifests::{copied_from, is_of_locks};
use crate::{
    engine::Engine,
    ids::{Epoch, Life},
    limits::SLOTS_PER_PAGE,
    name::Namespace,
    shard::{AskGroups, ControlLink, Cursor, Group, Shard, ShardError, When},
};

/// A walk through the accounts of one namespace or of all: shards serve other requests in between.
///
/// It is not a snapshot. An account that exists from start to end is listed, perhaps twice; also one whose manifest is
/// lost, if a copy of it is left. A name that a transfer was refused for, because no account has it, may be listed.
#[must_use = "nothing is asked for until the next page is"]
#[derive(Debug)]
pub struct AccountNames {
    engine: Engine,
    /// None: all.
    namespace: Option<Namespace>,
    /// The shards with an unfinished walk.
    walks: VecDeque<Walk>,
}

/// Some of the accounts at a shard.
#[derive(Clone, Debug)]
pub struct AccountNamesPage {
    /// The shard that has their manifests, or copies of them.
    pub shard: ShardId,
    /// The accounts and their namespaces, in no order, perhaps none. After an error there are no more pages of this shard.
    pub accounts: Result<Vec<(Namespace, Account)>, ShardError>,
}

/// A walk through one shard.
#[derive(Debug)]
struct Walk {
    id: ShardId,
    shard: Arc<dyn Shard>,
    /// The slots of each request that is left.
    slots: VecDeque<Vec<Slot>>,
    /// None before the first page, during a request, and after an error.
    link: Option<Box<dyn ControlLink>>,
    /// Valid in one life only.
    after: Option<(Life, Cursor)>,
}

impl Engine {
    /// The accounts of `namespace`, or of all namespaces, page by page. Sends no request yet.
    pub fn accounts(&self, namespace: Option<&Namespace>) -> AccountNames {
        let topology = self.topology();
        let (table, view) = (&topology.table, self.0.routing.view());
        let walk = |id: &ShardId, shard: &Arc<dyn Shard>| {
            // On its way, an account is at the former shard or at the next one.
            let comes = |slot: &Slot| {
                let migration = topology.migration_of(*slot);
                migration.is_some_and(|migration| migration.to.0 == *id)
            };
            let here = |slot: &Slot| table.owner(*slot) == id || comes(slot);
            let slots: Vec<Slot> = table.all_slots().filter(here).collect();
            Walk {
                id: id.clone(),
                shard: shard.clone(),
                slots: slots.chunks(SLOTS_PER_PAGE).map(<[Slot]>::to_vec).collect(),
                link: None,
                after: None,
            }
        };
        let renewers = view.renewers.iter();
        let walks = renewers.map(|renewer| walk(renewer.driver.id(), renewer.driver.shard()));
        AccountNames {
            engine: self.clone(),
            namespace: namespace.cloned(),
            walks: walks.filter(|walk| !walk.slots.is_empty()).collect(),
        }
    }
}

impl AccountNames {
    /// The next page; `None` when the walks through all shards are finished.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no page: the next call requests the same page again.
    pub async fn next(&mut self) -> Option<AccountNamesPage> {
        let walk = self.walks.front_mut()?;
        let shard = walk.id.clone();
        let names = walk.page(self.namespace.as_ref()).await;
        if names.is_err() || walk.slots.is_empty() {
            self.walks.pop_front();
        }
        let accounts = match names {
            Ok(names) => Ok(accounts_of(&self.engine, names).await),
            Err(error) => Err(error),
        };
        Some(AccountNamesPage { shard, accounts })
    }
}

/// The accounts whose manifests have these names, or whose copies have, if the manifest is not where it should be.
async fn accounts_of(
    engine: &Engine,
    names: BTreeMap<Namespace, Vec<String>>,
) -> Vec<(Namespace, Account)> {
    let of_namespace = async |(namespace, names): (Namespace, Vec<String>)| {
        let stored = engine.stored(&namespace);
        let account = async |name: String| {
            let Some(of) = copied_from(&name) else {
                return Account::new(&name).ok();
            };
            let has_manifest = stored.has_manifest(of).await;
            Account::new(of).ok().filter(|_| !has_manifest)
        };
        let names = names.into_iter().filter(|name| !is_of_locks(name));
        let accounts = join_all(names.map(account)).await.into_iter().flatten();
        let accounts = accounts.map(|account| (namespace.clone(), account));
        accounts.collect::<Vec<_>>()
    };
    join_all(names.into_iter().map(of_namespace)).await.concat()
}

impl Walk {
    /// The names of the manifests on the next page.
    async fn page(
        &mut self,
        namespace: Option<&Namespace>,
    ) -> Result<BTreeMap<Namespace, Vec<String>>, ShardError> {
        let mut names = BTreeMap::<_, Vec<_>>::new();
        let Some(slots) = self.slots.front() else {
            return Ok(names);
        };
        // Taken out: a late answer must not be read as the next one.
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.shard.connect_control(None).await?,
        };
        let after = self.after.as_ref();
        let after = after.filter(|(life, _)| life == link.life());
        let ask = AskGroups {
            epoch: Epoch(0),
            slots: slots.clone(),
            when: When::Here(after.map(|(_, cursor)| cursor.clone())),
        };
        let found = link.groups(&ask).await?;
        self.after = found.next.map(|next| (link.life().clone(), next));
        if self.after.is_none() {
            self.slots.pop_front();
        }
        self.link = Some(link);
        for Group { key, .. } in found.groups {
            let is_asked = namespace.is_none_or(|namespace| namespace.as_str() == key.namespace());
            if let Ok(its) = Namespace::new(key.namespace())
                && let Ok(name) = String::from_utf8(key.key().to_vec())
                && is_asked
            {
                names.entry(its).or_default().push(name);
            }
        }
        Ok(names)
    }
}
