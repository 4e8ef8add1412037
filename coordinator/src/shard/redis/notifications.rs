//! Notifications from a server, over a connection of their own: `SUBSCRIBE <prefix>:turn:<client>`.

use std::time::Duration;

use async_trait::async_trait;

use super::{Channel, RedisOptions};
use crate::{
    clock::Instant,
    ids::{ClientId, Epoch, Life, Token},
    name::LockKey,
    shard::{Notification, QueuedGrant, ShardError, Subscription},
};

/// A connection on which a server notifies one client of its turns, and of waiters for its locks.
#[derive(Debug)]
pub(super) struct RedisSubscription(Channel<Notification>);

impl RedisSubscription {
    /// Connects, with the handshake of every connection, and subscribes.
    pub(super) async fn open(options: &RedisOptions, client: ClientId) -> Result<Self, ShardError> {
        let name = format!("{}:turn:{client}", options.prefix);
        let channel = Channel::open(options, "notify", &name, parse).await?;
        Ok(Self(channel))
    }
}

#[async_trait]
impl Subscription for RedisSubscription {
    fn life(&self) -> &Life {
        self.0.life()
    }

    async fn next(&mut self) -> Result<Notification, ShardError> {
        self.0.next().await
    }
}

/// Reads a message: `turn|nonce|te|ctr|tokens|claim_ms|sent|contended|key`, or `contended|nonce|key`. The
/// key is the rest, because it may contain any bytes. `None` if it is not one of these.
fn parse(text: &[u8]) -> Option<Notification> {
    let mut rest = text;
    let mut word = || {
        let at = rest.iter().position(|byte| *byte == b'|')?;
        let word = std::str::from_utf8(&rest[..at]).ok()?;
        rest = &rest[at + 1..];
        Some(word)
    };
    let kind = word()?;
    let nonce = word()?.parse().ok()?;
    if kind == "contended" {
        let key = LockKey::parse(rest)?;
        return Some(Notification::Contended { key, nonce });
    }
    let mut number = || word()?.parse::<u64>().ok();
    let token = Token::new(Epoch(number()?), number()?);
    let tokens = u32::try_from(number()?).ok()?;
    let claim = Duration::from_millis(number()?);
    let sent = Instant::from_nanos(number()?);
    let contended = number()? == 1;
    (kind == "turn").then_some(Notification::Granted(QueuedGrant {
        key: LockKey::parse(rest)?,
        nonce,
        token,
        tokens,
        claim,
        sent,
        contended,
    }))
}

#[cfg(test)]
mod tests {
    use ringfence_ring::SlotCount;

    use super::*;
    use crate::{ids::Nonce, name::Namespace};

    const HOSTILE: [&[u8]; 4] = [b"a|b||", b"\r\nturn|x", b"\0|\0", b"{7}:\xff:|"];

    fn nonce() -> Nonce {
        Nonce {
            client: ClientId(0xfeed),
            sequence: 12,
        }
    }

    fn key(name: &[u8]) -> LockKey {
        LockKey::new(&Namespace::default(), name, SlotCount::default()).unwrap()
    }

    fn message(head: &str, key: &LockKey) -> Vec<u8> {
        [head.as_bytes(), key.text()].concat()
    }

    #[test]
    fn a_key_may_have_any_bytes() {
        for name in HOSTILE {
            let key = key(name);
            let turn = message(&format!("turn|{}|5|9|3|2000|00042|1|", nonce()), &key);
            let expected = QueuedGrant {
                key: key.clone(),
                nonce: nonce(),
                token: Token::new(Epoch(5), 9),
                tokens: 3,
                claim: Duration::from_secs(2),
                sent: Instant::from_nanos(42),
                contended: true,
            };
            assert_eq!(parse(&turn), Some(Notification::Granted(expected)));
            let contended = message(&format!("contended|{}|", nonce()), &key);
            let nonce = nonce();
            assert_eq!(
                parse(&contended),
                Some(Notification::Contended { key, nonce })
            );
        }
    }

    #[test]
    fn other_messages_are_ignored() {
        let (nonce, key) = (nonce(), key(b"key"));
        for text in [
            message("", &key),
            message("turn|", &key),
            message(&format!("contended|{nonce}"), &key),
            message(&format!("lost|{nonce}|5|9|3|2000|42|1|"), &key),
            message(&format!("turn|{nonce}|5|9|3|2000|-42|1|"), &key),
            message(&format!("turn|{nonce}|5|9|3|2000|1|"), &key),
            format!("contended|{nonce}|no key").into_bytes(),
        ] {
            assert_eq!(parse(&text), None, "{}", text.escape_ascii());
        }
    }
}
