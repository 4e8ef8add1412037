//! URLs of servers.

use proptest::{prelude::*, sample::select};
use ringfence_coordinator::shard::{ServerAddress, ServerAddressError};
use ringfence_test_support::{damaged, damages};

use super::REASON_BYTES_MAX;

/// Damage makes none of it by chance.
const PASSWORD: &str = "pAssw0rd";

const URLS: [&str; 20] = [
    "redis://user:pAssw0rd@db.example:7000/2",
    "redis://127.0.0.1",
    "rediss://user:pAssw0rd@[::1]:6380/0?ca=/nowhere/ca.pem&cert=/nowhere/c&key=/nowhere/k",
    "unix:///run/redis.sock?db=1&user=u&pass=pAssw0rd",
    "redis+sentinel://user:pAssw0rd@a,b:7,[::1]/bank.eu-1/2?sentinel_user=u&sentinel_pass=pAssw0rd",
    "rediss+sentinel://a:1/bank",
    "postgres://coin:pAssw0rd@db:6543/locks",
    "postgresql:///locks?host=/run/postgresql&port=5433&user=coin&password=pAssw0rd",
    "mysql://coin:pAssw0rd@db:3307/locks",
    "mariadb://coin:pAssw0rd@[::1]/locks",
    "postgres://coin:pAssw0rd@db/locks?sslmode=verify-full&sslrootcert=/nowhere/ca.pem&sslcert=/nowhere/c",
    "mysql://coin:pAssw0rd@db/locks?ssl-mode=VERIFY_IDENTITY&ssl-ca=/nowhere/ca.pem&ssl-key=/nowhere/k",
    "postgres://coin:pAssw0rd@pool:6432/locks?direct=[::1]:6543",
    "postgres://coin:pAssw0rd@a:1,b:2,[::1]:3/locks?sslmode=require&cert=/nowhere/c&key=/nowhere/k",
    "postgres://coin:pAssw0rd@a,b/locks?target_session_attrs=read-write&sslmode=verify-full&ca=/nowhere/ca.pem",
    "etcd://coin:pAssw0rd@a:1,b,[::1]:3",
    "etcds://coin:pAssw0rd@a?ca=/nowhere/ca.pem&cert=/nowhere/c&key=/nowhere/k",
    "zookeeper://coin:pAssw0rd@a:1,b,[::1]:3/apps/locks",
    "http://user:pAssw0rd@db",
    "",
];

fn check(url: &str) -> Result<(), TestCaseError> {
    let (has_password, read) = (url.contains(PASSWORD), url.parse::<ServerAddress>());
    let said = match &read {
        Ok(address) => format!("{address} {address:?}"),
        Err(error) => error.to_string(),
    };
    // In a place for something else, such as the host, a password is none.
    let is_login = URLS.contains(&url);
    prop_assert!(
        !(has_password && is_login && said.contains(PASSWORD)),
        "{said}"
    );
    match read {
        Ok(address) => {
            let again = address.as_str().parse::<ServerAddress>();
            prop_assert_eq!(again.as_ref(), Ok(&address), "{} of {:?}", address, url);
        }
        Err(_) => prop_assert!(said.len() <= REASON_BYTES_MAX + url.len(), "{said}"),
    }
    Ok(())
}

#[test]
fn an_address_of_no_kind_is_refused_with_the_kinds_that_there_are() {
    for url in ["zk://a", "http://b", "a:6379", ""] {
        let refused = url.parse::<ServerAddress>();
        assert_eq!(refused, Err(ServerAddressError::Unknown), "{url}");
    }
    let refused = "redis://a:b".parse::<ServerAddress>();
    assert!(matches!(refused, Err(ServerAddressError::Redis(_))));
}

#[test]
fn no_url_shows_its_password() {
    for url in URLS {
        check(url).unwrap();
    }
}

proptest! {
    #[test]
    fn damaged_urls_are_read_as_they_are_shown_or_refused(url in select(&URLS[..]), damages in damages()) {
        check(&String::from_utf8_lossy(&damaged(url.as_bytes(), &damages)))?;
    }

    #[test]
    fn texts_of_any_kind_are_read_as_urls_or_refused(
        scheme in select(&["redis://", "rediss://", "unix://", "redis+sentinel://", "postgres://", "mysql://", "etcd://", "zookeeper://", ""][..]),
        rest: String,
    ) {
        check(&format!("{scheme}{rest}"))?;
    }
}
