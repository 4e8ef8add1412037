//! The keys of a role.

use std::str::FromStr;

use ringfence_client::Namespace;

/// Some keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `*`: the keys of all namespaces.
    All,
    /// `NAMESPACE/NAME`: one key of a namespace.
    Key {
        /// The namespace.
        namespace: Namespace,
        /// The key.
        key: String,
    },
    /// `NAMESPACE/`, `NAMESPACE/START/` or `NAMESPACE/START*`: the keys of a namespace that start so.
    Prefix {
        /// The namespace.
        namespace: Namespace,
        /// The start of the keys. Empty: all.
        prefix: String,
    },
}

impl Scope {
    /// Whether `key` of `namespace` is one of these keys.
    pub(super) fn has(&self, namespace: &str, key: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Key {
                namespace: own,
                key: only,
            } => own.as_str() == namespace && key == only.as_bytes(),
            Self::Prefix {
                namespace: own,
                prefix,
            } => own.as_str() == namespace && key.starts_with(prefix.as_bytes()),
        }
    }

    /// Whether all keys of `namespace`, or of all namespaces, are among these keys.
    pub(super) fn has_all_of(&self, namespace: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Key { .. } => false,
            Self::Prefix {
                namespace: own,
                prefix,
            } => prefix.is_empty() && namespace == Some(own.as_str()),
        }
    }
}

impl FromStr for Scope {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text == "*" {
            return Ok(Self::All);
        }
        let (namespace, rest) = text.split_once('/').ok_or(())?;
        let namespace = Namespace::new(namespace).map_err(|_| ())?;
        let prefix = match rest.strip_suffix('*') {
            Some(start) => start,
            None if rest.is_empty() || rest.ends_with('/') => rest,
            None => {
                let key = rest.to_owned();
                return Ok(Self::Key { namespace, key });
            }
        };
        let prefix = prefix.to_owned();
        Ok(Self::Prefix { namespace, prefix })
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => formatter.write_str("*"),
            Self::Key { namespace, key } => write!(formatter, "{}/{key}", namespace.as_str()),
            Self::Prefix { namespace, prefix } => {
                let ends = prefix.is_empty() || prefix.ends_with('/');
                let more = if ends { "" } else { "*" };
                write!(formatter, "{}/{prefix}{more}", namespace.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        let scope: Scope = text.parse().unwrap();
        assert_eq!(scope.to_string(), text);
        scope
    }

    #[test]
    fn a_prefix_counts_in_its_namespace_only() {
        let orders = scope("shop/order/");
        assert!(orders.has("shop", b"order/42") && orders.has("shop", b"order/"));
        for (namespace, key) in [
            ("shop", "order"),
            ("shop", "orders/42"),
            ("shop", ""),
            ("shops", "order/42"),
            ("default", "order/42"),
            ("default", "shop/order/42"),
        ] {
            assert!(!orders.has(namespace, key.as_bytes()), "{namespace} {key}");
        }
        assert!(scope("shop/").has("shop", b"any") && !scope("shop/").has("shops", b"any"));
        assert!(scope("*").has("any", b"any"));
        assert!(scope("a/b/").has("a", b"b/c/d"));
    }

    #[test]
    fn a_name_is_one_key_and_a_star_says_that_more_follows() {
        let ledger = scope("default/ledger");
        assert!(ledger.has("default", b"ledger") && !ledger.has_all_of(Some("default")));
        for other in ["ledger-evil", "ledger/1", "ledge", ""] {
            assert!(!ledger.has("default", other.as_bytes()), "{other}");
        }
        assert!(!ledger.has("shop", b"ledger"));
        let users = scope("default/user:*");
        assert!(users.has("default", b"user:1") && !users.has("default", b"users"));
        let all: Scope = "shop/*".parse().unwrap();
        assert_eq!(all, scope("shop/"));
    }

    #[test]
    fn a_list_takes_a_whole_namespace() {
        assert!(scope("shop/").has_all_of(Some("shop")));
        assert!(!scope("shop/").has_all_of(Some("default")) && !scope("shop/").has_all_of(None));
        assert!(!scope("shop/order/").has_all_of(Some("shop")));
        assert!(scope("*").has_all_of(None) && scope("*").has_all_of(Some("shop")));
    }

    #[test]
    fn a_scope_names_its_namespace() {
        for refused in ["", "shop", "/order", "Shop/order", "**"] {
            assert!(refused.parse::<Scope>().is_err(), "{refused}");
        }
    }
}
