//! A connection on which a server sends messages: `SUBSCRIBE` to one channel.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use redis::{PushInfo, PushKind, RedisResult, Value, cmd};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Connection, RedisOptions, classify, wire::Wire};
use crate::{ids::Life, shard::ShardError};

/// Most messages kept for a receiver that does not read them. Later ones are dropped: a message only makes a check
/// earlier that happens anyway.
const UNREAD_MAX: usize = 4096;

/// Pause between two pings: a vanished peer sends nothing, and neither does a healthy server without a message.
const PING_EVERY: Duration = Duration::from_secs(3);

type Answer = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

/// A connection to one channel of a server.
pub(crate) struct Channel<T> {
    connection: Connection,
    inbox: Arc<Inbox<T>>,
    pings: Interval,
    /// Kept here, so that the next call continues a dropped one: otherwise a receiver with a wait
    /// shorter than the time-out would never see one.
    pong: Option<Answer>,
}

impl<T: Send + 'static> Channel<T> {
    /// Connects as `lane`, with the handshake of every connection, and subscribes to `channel`. Messages that
    /// `parse` does not know are ignored.
    pub(crate) async fn open(
        options: &RedisOptions,
        lane: &str,
        channel: &str,
        parse: fn(&[u8]) -> Option<T>,
    ) -> Result<Self, ShardError> {
        let inbox = Arc::new(Inbox::new());
        let pushed = inbox.clone();
        let config = Wire::config(options).set_push_sender(move |info| {
            pushed.put(&info, parse);
            Ok::<(), std::convert::Infallible>(())
        });
        let mut connection = Connection::open_with(config, options, lane, None).await?;
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

    /// The server's life, as the handshake found it.
    pub(crate) fn life(&self) -> &Life {
        &self.connection.server.life
    }

    /// Waits for the next message; an error once the connection has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub(crate) async fn next(&mut self) -> Result<T, ShardError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<T, ShardError>> {
        loop {
            // Messages that came before the end of the connection go first.
            let ended = self.connection.wire.poll_ended(context).is_ready();
            if let Some(message) = self.inbox.take() {
                return Poll::Ready(Ok(message));
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

    /// Ready when a ping is sent, when it is answered, and when its answer is late.
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

impl<T> fmt::Debug for Channel<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(formatter)
    }
}

/// Messages that are not read yet.
struct Inbox<T>(Mutex<VecDeque<T>>);

impl<T> Inbox<T> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// Keeps the message in `info`, if it is for this channel and there is room.
    fn put(&self, info: &PushInfo, parse: fn(&[u8]) -> Option<T>) {
        let (PushKind::Message, [_, Value::BulkString(text)]) = (&info.kind, &info.data[..]) else {
            return;
        };
        let mut unread = self.0.lock();
        if unread.len() < UNREAD_MAX
            && let Some(message) = parse(text)
        {
            unread.push_back(message);
        }
    }

    fn take(&self) -> Option<T> {
        self.0.lock().pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(text: &str) -> PushInfo {
        PushInfo {
            kind: PushKind::Message,
            data: vec![
                Value::BulkString(b"channel".into()),
                Value::BulkString(text.into()),
            ],
        }
    }

    fn number(text: &[u8]) -> Option<usize> {
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    #[test]
    fn unread_messages_are_kept_in_order_and_within_bounds() {
        let inbox = Inbox::new();
        inbox.put(&pushed("none of ours"), number);
        for message in 0..2 * UNREAD_MAX {
            inbox.put(&pushed(&message.to_string()), number);
        }
        let unread: Vec<_> = std::iter::from_fn(|| inbox.take()).collect();
        assert_eq!(unread, (0..UNREAD_MAX).collect::<Vec<_>>());
    }
}
