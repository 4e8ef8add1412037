//! The keys of a set of locks, in the order of acquisition.

use std::iter;

use ringfence_coordinator::{
    engine::Guard,
    limits::MULTI_LOCK_KEYS_MAX,
    name::{LockKey, Namespace},
};

use super::{MultiGuard, MultiLockError};

/// Different keys, in the order that all callers share.
pub(super) struct KeySet {
    keys: Vec<(LockKey, Namespace)>,
    /// For each key as it was given, its index.
    given: Vec<usize>,
}

impl KeySet {
    pub(super) fn new(given: Vec<(LockKey, Namespace)>) -> Result<Self, MultiLockError> {
        let mut keys = given.clone();
        keys.sort_by(|(one, _), (other, _)| rank(one).cmp(&rank(other)));
        keys.dedup();
        match keys.len() {
            0 => return Err(MultiLockError::NoKeys),
            1..=MULTI_LOCK_KEYS_MAX => {}
            count => return Err(MultiLockError::TooManyKeys(count)),
        }
        let index = |(key, _): &_| {
            let found = keys.binary_search_by(|(other, _)| rank(other).cmp(&rank(key)));
            found.expect("it is one of the keys")
        };
        let given = given.iter().map(index).collect();
        Ok(Self { keys, given })
    }

    pub(super) fn keys(&self) -> &[(LockKey, Namespace)] {
        &self.keys
    }

    /// The guard of the whole set, if all of it is held now.
    pub(super) fn guard(self, held: Vec<Guard>) -> Result<MultiGuard, MultiLockError> {
        let mut guards = iter::zip(&self.keys, &held);
        if let Some(((key, _), _)) = guards.find(|(_, guard)| !guard.is_held()) {
            let key = key.clone();
            return Err(MultiLockError::Lost { key });
        }
        Ok(MultiGuard::new(held, self.given))
    }
}

/// The place of a key in the order.
fn rank(key: &LockKey) -> impl Ord {
    (key.slot(), key.namespace(), key.key())
}

#[cfg(test)]
mod tests {
    use ringfence_ring::SlotCount;

    use super::*;

    fn key(namespace: &str, key: &str) -> (LockKey, Namespace) {
        let namespace = Namespace::new(namespace).unwrap();
        let key = LockKey::new(&namespace, key.as_bytes(), SlotCount::MAX);
        (key.unwrap(), namespace)
    }

    #[test]
    fn all_callers_share_one_order_of_keys() {
        let namespaces = ["a", "bb", "b"];
        let names = (0..20).map(|number| number.to_string());
        let keys = names.flat_map(|name| namespaces.map(|namespace| key(namespace, &name)));
        let keys: Vec<_> = keys.collect();
        let forth = KeySet::new(keys.clone()).unwrap();
        let back = KeySet::new(keys.iter().rev().cloned().collect()).unwrap();
        assert_eq!(forth.keys, back.keys);
        assert!(forth.keys.is_sorted_by_key(|(key, _)| key.slot()));
    }

    #[test]
    fn a_key_that_is_given_twice_is_one_lock() {
        let set = KeySet::new(["b", "a", "b"].map(|name| key("ns", name)).into()).unwrap();
        assert_eq!(set.keys.len(), 2);
        let given: Vec<_> = set.given.iter().map(|at| set.keys[*at].0.key()).collect();
        assert_eq!(given, [b"b", b"a", b"b"]);
    }

    #[test]
    fn a_set_has_bounds() {
        let set = |count: usize| {
            let keys = (0..count).map(|number| key("ns", &number.to_string()));
            KeySet::new(keys.collect())
        };
        assert!(matches!(set(0), Err(MultiLockError::NoKeys)));
        assert!(set(MULTI_LOCK_KEYS_MAX).is_ok());
        let Err(error) = set(MULTI_LOCK_KEYS_MAX + 1) else {
            panic!("too many")
        };
        assert!(!error.is_retryable());
        assert_eq!(
            error.to_string(),
            "65 different keys: a multi-lock has at most 64"
        );
    }
}
