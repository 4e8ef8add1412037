//! One token for a grant of several shards: confirmations.

use super::{
    Fixture,
    desk::{Desk, FIRST, LONG, PAST_SHORT, QUIET, SHORT, armed_with, nonce},
    movers::{IN_USE, MOVE, adopt},
    shares::permits,
    slots::elsewhere,
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Nonce, Token},
    name::{Label, LockKey},
    shard::{Grace, Mode, Op, Reply},
};

/// Tokens set aside from the confirmed one on.
const BLOCK: u32 = 8;

const CONFIRMED: Reply = Reply::Renewed {
    reclaimed: false,
    contended: false,
    moving: None,
};

fn confirm(nonce: Nonce, token: Token, install: bool) -> Op {
    Op::Confirm {
        nonce,
        label: Label::new("suite"),
        token,
        tokens: BLOCK,
        lease: LONG,
        install,
    }
}

fn above(token: Token, more: u64) -> Token {
    Token::new(token.epoch(), token.counter() + more)
}

impl Desk {
    async fn token_of_a_newcomer(&mut self) -> Token {
        let (key, nonce) = (self.key("newcomer"), nonce());
        let token = self.granted(&key, nonce, LONG).await;
        self.release(&key, nonce).await;
        token
    }

    async fn recorded(&mut self, key: &LockKey) -> Option<Token> {
        self.inspect(key).await.map(|holder| holder.token)
    }
}

/// The replicas of a lock make different tokens, and agree on the greatest.
pub async fn a_confirmation_raises_a_lower_token_and_every_later_one(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder) = (desk.key("key"), nonce());
        let own = desk.granted(&key, holder, LONG).await;
        for agreed in [above(own, 100), Token::new(Epoch(own.epoch().0 + 3), 5)] {
            // The second time it is a repeat.
            for _ in 0..2 {
                let reply = desk.one(&key, confirm(holder, agreed, false)).await;
                assert_eq!(reply, CONFIRMED);
                assert_eq!(desk.recorded(&key).await, Some(agreed));
            }
        }
        assert_eq!(desk.is_quiet().await, desk.map == QUIET);
        let agreed = desk.recorded(&key).await.expect("it is held");
        desk.release(&key, holder).await;
        let next = desk.granted(&key, nonce(), LONG).await;
        assert!(next >= above(agreed, u64::from(BLOCK)));
    }
}

/// A replica may have made a greater token than the majority.
pub async fn a_confirmation_lowers_no_token(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder) = (desk.key("key"), nonce());
        desk.token_of_a_newcomer().await;
        let own = desk.granted(&key, holder, LONG).await;
        for agreed in [own, Token::new(own.epoch(), own.counter() - 1)] {
            let reply = desk.one(&key, confirm(holder, agreed, false)).await;
            assert_eq!(reply, CONFIRMED);
            assert_eq!(desk.recorded(&key).await, Some(own));
        }
        let next = desk.token_of_a_newcomer().await;
        assert_eq!(next, above(own, 1), "nothing is raised");
    }
}

/// A confirmation is no acquire.
pub async fn a_confirmation_of_another_nonce_is_lost(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder, other) = (desk.key("key"), nonce(), nonce());
        let own = desk.granted(&key, holder, LONG).await;
        for install in [false, true] {
            let reply = desk
                .one(&key, confirm(other, above(own, 50), install))
                .await;
            assert_eq!(reply, Reply::Lost);
            assert_eq!(desk.holder(&key).await, Some(holder));
        }
        assert_eq!(
            desk.token_of_a_newcomer().await,
            above(own, 1),
            "nothing is raised"
        );
    }
}

/// Another process goes on with a share, if the shard has it.
pub async fn a_confirmation_extends_a_share_alone(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, modes) = (desk.key("key"), [permits(2, 5), permits(1, 5)]);
        let (holder, own) = desk.shares_for(&key, modes[0], SHORT).await;
        let (other, _) = desk.shares_for(&key, modes[1], SHORT).await;
        for (nonce, expected) in [(holder, CONFIRMED), (nonce(), Reply::Lost)] {
            let reply = desk.one(&key, confirm(nonce, above(own, 50), false)).await;
            assert_eq!(reply, expected);
        }
        fixture.elapse(PAST_SHORT).await;
        let reply = desk.one(&key, confirm(other, own, false)).await;
        assert_eq!(reply, Reply::Lost, "its lease was not extended");
        let kept = desk.inspect(&key).await.expect("it is held");
        assert_eq!((kept.nonce, kept.token, kept.shares), (holder, own, 2));
        desk.has_no_room(&key, permits(4, 5)).await;
        desk.shares(&key, permits(3, 5)).await;
    }
}

/// A replica that lost the grant, or never had it, is repaired while a guard lives.
pub async fn a_grant_is_installed_only_when_asked_and_raises_every_later_token(
    fixture: &dyn Fixture,
) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder) = (desk.key("key"), nonce());
        let agreed = above(desk.token_of_a_newcomer().await, 70);
        let reply = desk.one(&key, confirm(holder, agreed, false)).await;
        assert_eq!((reply, desk.holder(&key).await), (Reply::Lost, None));
        let reply = desk.one(&key, confirm(holder, agreed, true)).await;
        let installed = Reply::Renewed {
            reclaimed: true,
            contended: false,
            moving: None,
        };
        assert_eq!(reply, installed);
        assert_eq!(desk.recorded(&key).await, Some(agreed));
        assert_eq!(
            desk.release(&key, holder).await,
            Reply::Released { held: true }
        );
        let next = desk.granted(&key, nonce(), LONG).await;
        assert!(next >= above(agreed, u64::from(BLOCK)));
    }
}

/// A sealed slot has told the mover its last token; an arriving one has not heard of it.
pub async fn a_confirmation_counts_in_no_slot_that_moves(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let own = desk.granted(&key, holder, LONG).await;
    for (epoch, mode) in [(9, Mode::Sealed), (10, Mode::Import), (11, Mode::Shut)] {
        let epoch = Epoch(MOVE.0 + epoch);
        desk.becomes(&key, epoch, mode).await;
        let expected = match mode {
            Mode::Shut => Reply::Moved { epoch },
            _ => Reply::Moving { epoch, left: None },
        };
        for (nonce, install) in [(holder, false), (holder, true), (nonce(), true)] {
            let reply = desk
                .one(&key, confirm(nonce, above(own, 50), install))
                .await;
            assert_eq!(reply, expected, "{mode:?}, install: {install}");
        }
        let beside = desk.beside(&key);
        let reply = desk
            .one(&beside, confirm(nonce(), above(own, 50), true))
            .await;
        assert_eq!(reply, expected, "{mode:?}, a key without a record");
        assert_eq!(desk.holder(&beside).await, None);
        assert_eq!(desk.recorded(&key).await, Some(own));
    }
}

/// A lease of an earlier life may still run.
pub async fn nothing_is_confirmed_in_grace(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(LONG)).await;
    let (key, holder) = (desk.key("key"), nonce());
    let agreed = Token::new(Epoch(FIRST), 50);
    for install in [false, true] {
        let reply = desk.one(&key, confirm(holder, agreed, install)).await;
        assert!(matches!(reply, Reply::Grace { .. }), "{reply:?}");
    }
    assert_eq!(desk.holder(&key).await, None);
}

/// What was granted elsewhere, and is put back or brought here, is below every later token.
pub async fn what_is_put_back_or_adopted_raises_every_later_token(fixture: &dyn Fixture) {
    armed_with(fixture, FIRST, Grace::Full(SHORT))
        .await
        .expect("it was not armed");
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = Token::new(Epoch(FIRST + 1), 30);
    let reply = desk.renew(&key, (holder, token), LONG).await;
    assert!(
        matches!(
            reply,
            Reply::Renewed {
                reclaimed: true,
                ..
            }
        ),
        "{reply:?}"
    );
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(desk.token_of_a_newcomer().await, above(token, 1));

    let moved = desk.key("moved");
    desk.becomes(&moved, MOVE, Mode::Import).await;
    let token = Token::new(Epoch(MOVE.0 + 1), 40);
    let reply = desk.one(&moved, adopt(nonce(), token, MOVE)).await;
    assert!(matches!(reply, Reply::Adopted { .. }), "{reply:?}");
    let other = elsewhere(&desk, &moved);
    let next = above(token, u64::from(IN_USE));
    assert_eq!(desk.granted(&other, nonce(), LONG).await, next);
}
