//! Keys, namespaces, prefixes and labels.

use proptest::{collection::vec, prelude::*};
use ringfence_coordinator::{
    limits::LABEL_BYTES_MAX,
    name::{KeyPrefix, Label, LockKey, Namespace},
};
use ringfence_ring::SlotCount;

use super::REASON_BYTES_MAX;

proptest! {
    #[test]
    fn names_are_taken_as_they_are_or_refused_by_name(
        key in prop_oneof![vec(any::<u8>(), 0..80), vec(any::<u8>(), 500..1100)],
        name in prop_oneof!["[a-z][a-z0-9_-]{0,70}", "\\PC{0,80}", any::<String>()],
        log2 in 1_u32..=16,
    ) {
        let namespace = Namespace::new(&name);
        match &namespace {
            Ok(namespace) => prop_assert_eq!(namespace.as_str(), &name),
            Err(error) => {
                let reason = error.to_string();
                prop_assert!(reason.starts_with("namespace ") && reason.len() <= REASON_BYTES_MAX, "{reason}");
            }
        }
        match KeyPrefix::new(&name) {
            Ok(prefix) => prop_assert_eq!(prefix.as_str(), &name),
            Err(error) => {
                let reason = error.to_string();
                prop_assert!(reason.starts_with("prefix ") && reason.len() <= REASON_BYTES_MAX, "{reason}");
            }
        }
        let label = Label::new(&name);
        prop_assert!(label.as_str().len() <= LABEL_BYTES_MAX);
        prop_assert_eq!(&Label::new(label.as_str()), &label);
        let (namespace, slots) = (namespace.unwrap_or_default(), SlotCount::new(1 << log2).unwrap());
        match LockKey::new(&namespace, &key, slots) {
            Ok(made) => {
                prop_assert_eq!((made.namespace(), made.key()), (namespace.as_str(), &*key));
                prop_assert!(made.slot().index() < 1 << log2);
            }
            Err(error) => {
                let reason = error.to_string();
                prop_assert!(reason.starts_with("key ") && reason.len() <= REASON_BYTES_MAX, "{reason}");
            }
        }
    }

    #[test]
    fn no_two_keys_have_one_text(
        one in ("[a-c]{1,2}", vec(prop_oneof![Just(b':'), Just(b'{'), Just(b'}'), Just(b'a')], 1..4)),
        two in ("[a-c]{1,2}", vec(prop_oneof![Just(b':'), Just(b'{'), Just(b'}'), Just(b'a')], 1..4)),
    ) {
        let text = |(name, key): &(String, Vec<u8>)| {
            let namespace = Namespace::new(name).unwrap();
            LockKey::new(&namespace, key, SlotCount::new(2).unwrap()).unwrap().text().to_vec()
        };
        prop_assert_eq!(text(&one) == text(&two), one == two);
    }
}
