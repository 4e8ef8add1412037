//! The deletion of documents that ended long ago.

use zookeeper_client::Client;

use super::{
    nodes::{LOCK_DIRS, Op, list, number, read, set, stored, write},
    session::ZookeeperSession,
};
use crate::shard::{ShardError, docs::FORGET_AFTER, rules::millis};

/// Directories, and documents, that a sweep looks at, at most.
const DIRS: usize = 128;
const DOCUMENTS: usize = 1024;

impl ZookeeperSession {
    /// Deletes some of the documents that ended long ago, unless others are deleted, or these written again, meanwhile: then
    /// a later sweep does.
    pub(super) async fn sweep(&mut self) -> Result<(), ShardError> {
        self.made = 0;
        let shared = self.shared.clone();
        let paths = &shared.paths;
        // The last directory has the documents that are no locks.
        let dirs = LOCK_DIRS + 1;
        let some = (0..DIRS).map(|more| match (self.sweep_at + more) % dirs {
            LOCK_DIRS => paths.at("documents"),
            dir => paths.locks(dir),
        });
        let some: Vec<String> = some.collect();
        self.sweep_at = (self.sweep_at + DIRS) % dirs;
        let look = |client: Client| {
            let (some, random) = (&some, &shared.wire.random);
            async move {
                let listed = list(&client, some).await?;
                let found = some.iter().zip(listed);
                let found = found.flat_map(|(dir, names)| {
                    names.into_iter().map(move |name| format!("{dir}/{name}"))
                });
                let mut found: Vec<String> = found.collect();
                if found.len() > DOCUMENTS {
                    let from = random.below(found.len() as u64);
                    found.rotate_left(from as usize);
                    found.truncate(DOCUMENTS);
                }
                found.splice(0..0, [paths.at("clock"), paths.at("swept")]);
                let nodes = read(&client, &found).await?;
                Ok(found.into_iter().zip(nodes).collect::<Vec<_>>())
            }
        };
        let found = shared.wire.ask(look).await?.value;
        let mut found = found.into_iter();
        let mut next = || found.next().and_then(|(_, node)| node);
        let (now_ms, _) = number(next(), "clock")?;
        let swept = next().map_or(0, |node| node.stamp.version);
        let forgotten_ms = now_ms.saturating_sub(millis(FORGET_AFTER));
        let mut ops = vec![
            Op::Check(paths.life(&self.life), None),
            Op::Check(paths.gate(self.id), None),
        ];
        set(&mut ops, paths.at("swept"), Vec::new(), swept);
        let without = ops.len();
        for (path, node) in found {
            let Some(node) = node else { continue };
            let (_, ends_ms) = stored(&node, &path)?;
            if ends_ms.is_some_and(|ends_ms| ends_ms < forgotten_ms) {
                ops.push(Op::Delete(path, Some(node.stamp.version)));
            }
        }
        if ops.len() == without {
            return Ok(());
        }
        let delete = |client: Client| {
            let (acls, ops) = (shared.wire.acls(), &ops);
            async move { write(&client, acls, ops).await }
        };
        shared.wire.ask(delete).await.map(drop)
    }
}
