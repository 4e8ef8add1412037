//! Pages of locks.

use zookeeper_client::{Client, Error};

use super::{
    nodes::{
        LOCK_DIRS, Node, Op, Paths, Written, dir_of, key_named, list, lock_name, number, read,
        stored, write,
    },
    session::ZookeeperSession,
};
use crate::{
    name::LockKey,
    shard::{ShardError, docs::Page},
};

/// Directories that are listed in one request.
const DIRS_AT_ONCE: usize = 128;

/// Locks that are read in one request.
const READ_AT_ONCE: usize = 512;

/// What a page is made of: the clock, locks after a place, and whether there are more. `None`: the life has ended.
type Leaf = Option<(Option<Node>, Vec<(LockKey, Node)>, bool)>;

impl ZookeeperSession {
    /// Reads at most `limit` documents of locks that say something, after `after`, in the order of directories and names.
    pub(super) async fn page_of_locks(
        &self,
        after: Option<&LockKey>,
        limit: usize,
    ) -> Result<Page, ShardError> {
        let wire = &self.shared.wire;
        let life = Op::Check(self.shared.paths.life(&self.life), None);
        let ask = |client: Client| {
            let (paths, life, acls) = (&self.shared.paths, [life.clone()], wire.acls());
            async move {
                // What follows is no older than this.
                if let Written::Failed(_) = write(&client, acls, &life).await? {
                    return Ok(None);
                }
                leaf(&client, paths, after, limit).await
            }
        };
        let leaf: Leaf = wire.ask(ask).await?.value;
        let (clock, found, more) = leaf.ok_or(ShardError::Unarmed)?;
        let (now_ms, _) = number(clock, "clock")?;
        let mut documents = Vec::new();
        for (key, node) in found {
            let (document, _) = stored(&node, &self.shared.paths.locks(dir_of(&key)))?;
            documents.push((key, document));
        }
        Ok(Page {
            now_ms,
            documents,
            more,
        })
    }
}

async fn leaf(
    client: &Client,
    paths: &Paths,
    after: Option<&LockKey>,
    limit: usize,
) -> Result<Leaf, Error> {
    let clock = read(client, &[paths.at("clock")]).await?.pop().flatten();
    let (first, after) = match after {
        Some(key) => (dir_of(key), Some(lock_name(key))),
        None => (0, None),
    };
    let mut found = Vec::new();
    let dirs: Vec<usize> = (first..LOCK_DIRS).collect();
    for dirs in dirs.chunks(DIRS_AT_ONCE) {
        let listed: Vec<String> = dirs.iter().map(|dir| paths.locks(*dir)).collect();
        let listed = list(client, &listed).await?;
        let mut wanted = Vec::new();
        for (dir, mut names) in dirs.iter().zip(listed) {
            names.sort_unstable();
            let is_later = |name: &String| *dir > first || Some(name) > after.as_ref();
            wanted.extend(names.into_iter().filter(is_later));
        }
        let keys: Vec<LockKey> = wanted.iter().filter_map(|name| key_named(name)).collect();
        for keys in keys.chunks(READ_AT_ONCE) {
            let names: Vec<String> = keys.iter().map(|key| paths.lock(key)).collect();
            let nodes = read(client, &names).await?;
            for (key, node) in keys.iter().zip(nodes) {
                let Some(node) = node.filter(Node::says_something) else {
                    continue;
                };
                if found.len() == limit {
                    return Ok(Some((clock, found, true)));
                }
                found.push((key.clone(), node));
            }
        }
    }
    Ok(Some((clock, found, false)))
}
