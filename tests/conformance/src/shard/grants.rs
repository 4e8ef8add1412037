//! One key and its holder.

use std::time::Duration;

use super::{
    Fixture,
    desk::{Desk, LONG, PAST_SHORT, SHORT, nonce},
};
use ringfence_coordinator::{
    ids::{Nonce, Token},
    limits::{KEY_BYTES_MAX, LABEL_BYTES_MAX},
    name::{Label, LockKey},
    shard::{Grace, LockMode, Op, Reply},
};

/// Mutual exclusion.
pub async fn a_held_key_refuses_another_nonce(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder, other) = (desk.key("key"), nonce(), nonce());
        desk.granted(&key, holder, LONG).await;

        for _ in 0..2 {
            let reply = desk.acquire(&key, other, LONG).await;
            assert!(
                matches!(reply, Reply::Held { remaining, .. } if remaining <= LONG + fixture.late()),
                "{reply:?}"
            );
        }
        assert_eq!(desk.holder(&key).await, Some(holder));
    }
}

/// A lost reply may be asked for again, and the lease counts from then.
pub async fn a_repeated_acquire_finds_the_same_token_and_a_full_lease(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder) = (desk.key("key"), nonce());
        let token = desk.granted(&key, holder, SHORT).await;
        assert_eq!(desk.granted(&key, holder, LONG).await, token);
        assert_full(&mut desk, &key, (holder, token)).await;
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(
            desk.holder(&key).await,
            Some(holder),
            "its first lease has ended"
        );
    }
}

/// A renewal counts from when it is applied.
pub async fn a_renewal_gives_a_full_lease_and_keeps_the_token(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder) = (desk.key("key"), nonce());
        let token = desk.granted(&key, holder, SHORT).await;
        let renewed = desk.renew(&key, (holder, token), LONG).await;
        assert_eq!(
            renewed,
            Reply::Renewed {
                reclaimed: false,
                contended: false,
                moving: None,
            }
        );
        assert_full(&mut desk, &key, (holder, token)).await;
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(
            desk.holder(&key).await,
            Some(holder),
            "its first lease has ended"
        );
    }
}

/// Checks that a lease of [`LONG`] has hardly begun.
pub(super) async fn assert_full(desk: &mut Desk, key: &LockKey, grant: (Nonce, Token)) {
    let found = desk.inspect(key).await.expect("it is held");
    assert_eq!((found.nonce, found.token), grant);
    assert!(found.remaining <= LONG + desk.late, "{found:?}");
    assert!(found.remaining > LONG - Duration::from_secs(5), "{found:?}");
}

/// Tokens order all grants of a key.
pub async fn tokens_of_a_key_rise_across_releases_and_expiry(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut tokens = [Vec::new(), Vec::new()];
        let (one, other, holder) = (desk.key("one"), desk.key("other"), nonce());
        tokens[0].push(desk.granted(&one, holder, LONG).await);
        tokens[1].push(desk.granted(&other, nonce(), SHORT).await);
        assert_eq!(
            desk.release(&one, holder).await,
            Reply::Released { held: true }
        );
        tokens[0].push(desk.granted(&one, nonce(), LONG).await);
        fixture.elapse(PAST_SHORT).await;
        tokens[1].push(desk.granted(&other, nonce(), LONG).await);
        let rise = |its: &Vec<Token>| its.is_sorted_by(|earlier, later| earlier < later);
        assert!(tokens.iter().all(rise), "{tokens:?}");
    }
}

/// Leases end, and the tokens outlive them.
pub async fn an_expired_lease_is_free_and_the_next_token_is_higher(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, first, second) = (desk.key("key"), nonce(), nonce());
        let earlier = desk.granted(&key, first, SHORT).await;
        fixture.elapse(PAST_SHORT).await;

        assert_eq!(desk.holder(&key).await, None);
        assert!(desk.granted(&key, second, LONG).await > earlier);
        assert_eq!(desk.holder(&key).await, Some(second));
    }
}

/// Only the holder touches the grant.
pub async fn a_stale_nonce_can_neither_renew_nor_release(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, stale, holder) = (desk.key("key"), nonce(), nonce());
        let token = desk.granted(&key, stale, SHORT).await;
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(
            desk.renew(&key, (stale, token), LONG).await,
            Reply::Lost,
            "nobody's"
        );
        desk.granted(&key, holder, LONG).await;

        assert_eq!(desk.renew(&key, (stale, token), LONG).await, Reply::Lost);
        assert_eq!(
            desk.release(&key, stale).await,
            Reply::Released { held: false }
        );
        assert_eq!(desk.holder(&key).await, Some(holder));
    }
}

/// A release may be repeated, and is not for ever.
pub async fn a_second_release_finds_nothing(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder) = (desk.key("key"), nonce());
        desk.granted(&key, holder, LONG).await;

        assert_eq!(
            desk.release(&key, holder).await,
            Reply::Released { held: true }
        );
        assert_eq!(desk.holder(&key).await, None);
        assert_eq!(
            desk.release(&key, holder).await,
            Reply::Released { held: false }
        );
        desk.granted(&key, nonce(), LONG).await;
    }
}

/// Of two in one call, too.
pub async fn of_two_releases_at_once_the_second_finds_nothing(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, other, holder) = (desk.key("key"), desk.key("other"), nonce());
        desk.granted(&key, holder, LONG).await;
        desk.granted(&other, holder, LONG).await;

        let batch =
            [&key, &other, &key].map(|key| desk.request(key, Op::Release { nonce: holder }));
        let expected = [true, true, false].map(|held| Reply::Released { held });
        assert_eq!(desk.batch(&batch).await.replies, expected);
        assert_eq!(desk.holder(&key).await, None);
    }
}

/// Nonces are compared whole.
pub async fn a_nonce_that_another_begins_with_releases_nothing(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, beginning) = (desk.key("key"), nonce());
        let holder = Nonce {
            sequence: beginning.sequence * 10,
            ..beginning
        };
        desk.granted(&key, holder, LONG).await;

        assert_eq!(
            desk.release(&key, beginning).await,
            Reply::Released { held: false }
        );
        assert_eq!(desk.holder(&key).await, Some(holder));
    }
}

/// However a record came to be, it expires.
pub async fn every_record_has_an_end(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let keys = ["granted", "repeated", "renewed", "shortened"].map(|name| desk.key(name));
        let [granted, repeated, renewed, shortened] = &keys;
        desk.granted(granted, nonce(), SHORT).await;
        let holder = nonce();
        desk.granted(repeated, holder, SHORT).await;
        desk.granted(repeated, holder, SHORT).await;
        let token = desk.granted(renewed, holder, SHORT).await;
        desk.renew(renewed, (holder, token), SHORT).await;
        let token = desk.granted(shortened, holder, LONG).await;
        desk.renew(shortened, (holder, token), SHORT).await;

        for key in &keys {
            let found = desk.inspect(key).await.expect("its lease has hardly begun");
            assert!(
                found.remaining <= SHORT + fixture.late(),
                "{key}: {found:?}"
            );
        }
        fixture.elapse(PAST_SHORT).await;
        for key in &keys {
            assert_eq!(desk.inspect(key).await, None, "{key}");
        }
    }
}

/// Labels are text for people, and never taken for anything else.
pub async fn labels_come_back_as_they_were_sent(fixture: &dyn Fixture) {
    let long = "\u{20ac}".repeat(LABEL_BYTES_MAX);
    let labels = [
        "",
        "a|b|1|2|3",
        "host/1:2 {3}",
        "\r\n$-1\r\n",
        "%s %1 \\",
        "\u{1f512}",
        &long,
    ];
    for mut desk in Desk::both_ways(fixture).await {
        for label in labels.map(Label::new) {
            let (key, holder) = (desk.key("key"), nonce());
            let op = Op::Acquire {
                nonce: holder,
                label: label.clone(),
                lease: LONG,
                mode: LockMode::Exclusive,
                preferred: false,
                tokens: 1,
                ticket: None,
                proof: None,
            };
            let request = desk.request(&key, op);
            desk.batch(&[request]).await;

            let reply = desk.acquire(&key, nonce(), LONG).await;
            assert!(
                matches!(&reply, Reply::Held { label: its, .. } if *its == label),
                "{reply:?}"
            );
            assert_eq!(desk.inspect(&key).await.expect("it is held").label, label);
            desk.release(&key, holder).await;
        }
    }
}

/// A key is bytes: no byte has a meaning, and none is lost.
pub async fn keys_with_hostile_bytes_do_not_touch_each_other(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    for [one, other] in hostile_pairs(&desk) {
        let (holder, its_holder) = (nonce(), nonce());
        desk.granted(&one, holder, LONG).await;
        desk.granted(&other, its_holder, LONG).await;
        assert_eq!(desk.holder(&one).await, Some(holder), "{one:?}");
        assert_eq!(
            desk.release(&one, holder).await,
            Reply::Released { held: true },
            "{one:?}"
        );
        assert_eq!(desk.holder(&other).await, Some(its_holder), "{other:?}");
        assert_eq!(desk.inspect(&one).await, None, "{one:?}");
    }
}

/// Pairs of keys in one slot that a careless treatment of a byte would confuse.
pub(super) fn hostile_pairs(desk: &Desk) -> Vec<[LockKey; 2]> {
    let longest = [b'x'; KEY_BYTES_MAX - 8];
    let pairs: [[&[u8]; 2]; 16] = [
        [b"a", b"A"],
        [b"a", b"a "],
        [b"a", b"a\0"],
        [b"a\0", b"a\0\0"],
        [b"a", b"a\r\n"],
        [b"a\n", b"a\r\n"],
        [b"*", b"?"],
        [b"[a]", b"a"],
        [b"{1}", b"{1}{1}"],
        [b"}:{", b":"],
        [b"a|b", b"a"],
        [b"a:b", b"a"],
        [b"\xff", b"\xff\xff"],
        [b"\xff", b"\xfe"],
        [b"%s", b"%d"],
        [&longest, &longest[1..]],
    ];
    pairs.map(|pair| in_one_slot(desk, pair)).into()
}

/// Both names with a number before them, the same one, that puts both into one slot.
fn in_one_slot(desk: &Desk, names: [&[u8]; 2]) -> [LockKey; 2] {
    let numbered =
        |number: u32| names.map(|name| desk.key([number.to_string().as_bytes(), name].concat()));
    let mut pairs = (0..).map(numbered);
    pairs
        .find(|[one, other]| one.slot() == other.slot())
        .expect("keys spread over slots")
}
