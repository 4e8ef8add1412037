//! The move of the first rank from A to B, by any mover.

use super::{
    Action, RedlockModel, Token, World,
    state::{A, B, MOVE_EPOCH, Mode},
};

impl RedlockModel {
    pub(super) fn enabled_steps(&self, world: &World, actions: &mut Vec<Action>) {
        let migration = world.migration;
        if !self.config.moves || migration.finished {
            return;
        }
        let (a, b) = (world.shard(A), world.shard(B));
        if a.is_armed() && migration.sealed.is_none() {
            actions.push(Action::Seal);
        }
        if b.is_armed() && migration.sealed.is_some() && !migration.imported {
            actions.push(Action::Import);
        }
        if b.is_armed() && migration.free && migration.imported && b.mode == Mode::Import {
            actions.push(Action::Open);
        }
        if a.is_armed() && migration.opened {
            actions.push(Action::Finish);
        }
    }

    /// A answers its last token.
    pub(super) fn seal(&self, world: &mut World) {
        let shard = world.shard_mut(A);
        shard.mode = Mode::Sealed;
        world.migration.sealed = Some(shard.token);
    }

    /// B grants nothing below it.
    pub(super) fn import(&self, world: &mut World) {
        let sealed = world.migration.sealed.unwrap_or_default();
        let shard = world.shard_mut(B);
        shard.mode = Mode::Import;
        shard.raise(sealed.max(Token::none_of(MOVE_EPOCH)));
        world.migration.imported = true;
    }

    pub(super) fn open(&self, world: &mut World) {
        world.shard_mut(B).mode = Mode::Open;
        world.migration.opened = true;
    }

    pub(super) fn finish(&self, world: &mut World) {
        world.shard_mut(A).mode = Mode::Shut;
        world.shard_mut(A).record = None;
        world.migration.finished = true;
    }

    /// A sealed slot never grants: once it has no record, it can have none again.
    pub(super) fn observe(&self, world: &mut World) {
        let shard = world.shard(A);
        let empty = shard.mode == Mode::Sealed && shard.grace == 0 && shard.record.is_none();
        world.migration.free |= empty && shard.is_armed();
    }
}
