//! What a shard says by itself, over a connection of its own: `SUBSCRIBE <prefix>:turn:<client>`.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use redis::{PushInfo, PushKind, RedisResult, Value, cmd};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Connection, RedisOptions, classify, wire::Wire};
use crate::{
    clock::Instant,
    ids::{ClientId, Epoch, Token},
    name::LockKey,
    shard::{ShardError, Turn, Wake, Wakes},
};

/// Messages kept for somebody who does not ask for them. Those that come then are dropped: whoever
/// waits asks the shard again all the same.
const UNREAD_MAX: usize = 4096;

/// How often the server is asked whether it is still there: a peer that vanished says nothing, which
/// here is what a healthy one says too.
const PING_EVERY: Duration = Duration::from_secs(3);

type Answer = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

/// A connection on which a server tells one client whose turn has come, and what is wanted.
pub(super) struct RedisWakes {
    connection: Connection,
    inbox: Arc<Inbox>,
    pings: Interval,
    /// Kept here, so that a call that is dropped takes up where the last one was: else nobody
    /// who asks for less than a time-out would ever see one.
    pong: Option<Answer>,
}

impl RedisWakes {
    /// Shakes hands as every connection does, and subscribes.
    pub(super) async fn open(options: &RedisOptions, client: ClientId) -> Result<Self, ShardError> {
        let inbox = Arc::new(Inbox::default());
        let pushed = inbox.clone();
        let config = Wire::config(options).set_push_sender(move |info| {
            pushed.put(&info);
            Ok::<(), std::convert::Infallible>(())
        });
        let mut connection = Connection::open_with(config, options, "wake", None).await?;
        let channel = format!("{}:turn:{client}", options.prefix);
        let subscribe = cmd("SUBSCRIBE").arg(channel).to_owned();
        connection.query("a subscription", &subscribe).await?;
        let mut pings = interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        Ok(Self {
            connection,
            inbox,
            pings,
            pong: None,
        })
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Wake, ShardError>> {
        loop {
            // First what was said before the connection ended.
            let ended = self.connection.wire.poll_ended(context).is_ready();
            if let Some(wake) = self.inbox.take() {
                return Poll::Ready(Ok(wake));
            }
            if ended {
                let reason = "the connection was closed".into();
                return Poll::Ready(Err(ShardError::NoReply { reason }));
            }
            match self.poll_pong(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Ready whenever the server was asked, or has answered, or has not in time.
    fn poll_pong(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ShardError>> {
        let Some(pong) = &mut self.pong else {
            return self.pings.poll_tick(context).map(|_| {
                self.pong = Some(Box::pin(self.connection.wire.ask(cmd("PING"))));
                Ok(())
            });
        };
        pong.as_mut().poll(context).map(|answer| {
            self.pong = None;
            let answer = answer.and_then(Value::extract_error).map(drop);
            answer.map_err(|error| classify("a ping", &error))
        })
    }
}

#[async_trait]
impl Wakes for RedisWakes {
    async fn next(&mut self) -> Result<Wake, ShardError> {
        poll_fn(|context| self.poll_next(context)).await
    }
}

impl fmt::Debug for RedisWakes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(formatter)
    }
}

/// Messages that came and were not asked for yet.
#[derive(Debug, Default)]
struct Inbox(Mutex<VecDeque<Wake>>);

impl Inbox {
    /// Keeps what `info` says, if it is a message of ours and there is room.
    fn put(&self, info: &PushInfo) {
        let (PushKind::Message, [_, Value::BulkString(text)]) = (&info.kind, &info.data[..]) else {
            return;
        };
        let mut unread = self.0.lock();
        if unread.len() < UNREAD_MAX
            && let Some(wake) = parse(text)
        {
            unread.push_back(wake);
        }
    }

    fn take(&self) -> Option<Wake> {
        self.0.lock().pop_front()
    }
}

/// Reads a message: `turn|nonce|te|ctr|tokens|claim_ms|sent|wanted|key`, or `wanted|nonce|key`. The key
/// is what is left, for it has any bytes. `None` if it is not one of ours.
fn parse(text: &[u8]) -> Option<Wake> {
    let mut rest = text;
    let mut word = || {
        let at = rest.iter().position(|byte| *byte == b'|')?;
        let word = std::str::from_utf8(&rest[..at]).ok()?;
        rest = &rest[at + 1..];
        Some(word)
    };
    let kind = word()?;
    let nonce = word()?.parse().ok()?;
    if kind == "wanted" {
        let key = LockKey::parse(rest)?;
        return Some(Wake::Wanted { key, nonce });
    }
    let mut number = || word()?.parse::<u64>().ok();
    let token = Token::new(Epoch(number()?), number()?);
    let tokens = u32::try_from(number()?).ok()?;
    let claim = Duration::from_millis(number()?);
    let sent = Instant::from_nanos(number()?);
    let wanted = number()? == 1;
    (kind == "turn").then_some(Wake::Turn(Turn {
        key: LockKey::parse(rest)?,
        nonce,
        token,
        tokens,
        claim,
        sent,
        wanted,
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
            let expected = Turn {
                key: key.clone(),
                nonce: nonce(),
                token: Token::new(Epoch(5), 9),
                tokens: 3,
                claim: Duration::from_secs(2),
                sent: Instant::from_nanos(42),
                wanted: true,
            };
            assert_eq!(parse(&turn), Some(Wake::Turn(expected)));
            let wanted = message(&format!("wanted|{}|", nonce()), &key);
            let nonce = nonce();
            assert_eq!(parse(&wanted), Some(Wake::Wanted { key, nonce }));
        }
    }

    #[test]
    fn what_is_not_one_of_ours_is_nothing() {
        let (nonce, key) = (nonce(), key(b"key"));
        for text in [
            message("", &key),
            message("turn|", &key),
            message(&format!("wanted|{nonce}"), &key),
            message(&format!("lost|{nonce}|5|9|3|2000|42|1|"), &key),
            message(&format!("turn|{nonce}|5|9|3|2000|-42|1|"), &key),
            message(&format!("turn|{nonce}|5|9|3|2000|1|"), &key),
            format!("wanted|{nonce}|no key").into_bytes(),
        ] {
            assert_eq!(parse(&text), None, "{}", text.escape_ascii());
        }
    }

    fn pushed(sequence: usize) -> PushInfo {
        let text = format!("wanted|{}:{sequence}|{{1}}:default:key", ClientId(1));
        PushInfo {
            kind: PushKind::Message,
            data: vec![
                Value::BulkString(b"channel".into()),
                Value::BulkString(text.into_bytes()),
            ],
        }
    }

    #[test]
    fn what_is_not_read_is_kept_in_order_and_within_bounds() {
        let inbox = Inbox::default();
        for sequence in 0..2 * UNREAD_MAX {
            inbox.put(&pushed(sequence));
        }
        let unread = std::iter::from_fn(|| inbox.take()).map(|wake| match wake {
            Wake::Wanted { nonce, .. } => nonce.sequence as usize,
            Wake::Turn(turn) => panic!("{turn:?}"),
        });
        assert_eq!(
            unread.collect::<Vec<_>>(),
            (0..UNREAD_MAX).collect::<Vec<_>>()
        );
    }
}
