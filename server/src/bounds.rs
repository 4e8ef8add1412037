//! Bounds that hold before a call is looked at: bytes of messages that are not complete, and calls that need no role.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    middleware::Next,
    response::Response,
};
use http_body::{Frame, SizeHint};
use ringfence_api::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::{
    access::{PLACE_AFTER, limited},
    connections::{Places, UNFINISHED_MAX, WITHOUT_ROLE_MAX},
};

/// The services that need no role.
const WITHOUT_ROLE: &str = "/grpc.";

/// The calls by which a caller keeps its locks, and gives them back.
const KEEPS: [&str; 3] = [
    "/ringfence.v1.LockService/Renew",
    "/ringfence.v1.LockService/Release",
    "/ringfence.v1.LockService/Downgrade",
];

/// The calls whose answers are long.
const LISTS: [&str; 2] = [
    "/ringfence.v1.LockService/List",
    "/ringfence.v1.CounterService/ListAccounts",
];

/// Bytes before a message: whether it is compressed, and its length.
const HEAD: usize = 5;

/// Calls that have places of their own at their caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Renewals, releases and downgrades: a caller keeps its locks although it makes all other calls that it may.
    KeepsLock,
    /// Lists and reflection: of each, much waits here until its caller reads it.
    HasLongAnswer,
    Other,
}

/// Keeps the place that a call has at its caller until the end of the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfCaller(pub(crate) Arc<OnceLock<OwnedSemaphorePermit>>);

/// Bounds `request`, if it came over a connection with places.
pub(crate) async fn bound(mut request: Request, next: Next) -> Response {
    let Some(places) = request.extensions().get::<Places>().cloned() else {
        return next.run(request).await;
    };
    let path = request.uri().path();
    let kind = match path {
        path if KEEPS.contains(&path) => Kind::KeepsLock,
        path if LISTS.contains(&path) || path.starts_with(WITHOUT_ROLE) => Kind::HasLongAnswer,
        _ => Kind::Other,
    };
    let needs_place = path.starts_with(WITHOUT_ROLE);
    let place = needs_place.then(|| places.without_role.try_acquire_owned());
    let Ok(place) = place.transpose() else {
        let message = format!(
            "more calls of health and reflection at a time on the connection than {WITHOUT_ROLE_MAX}"
        );
        return Status::from(limited(&message, PLACE_AFTER)).into_http();
    };
    let of_caller = OfCaller::default();
    request.extensions_mut().insert(kind);
    request.extensions_mut().insert(of_caller.clone());
    let message = Some(Unfinished::new(places.unfinished));
    let request = request.map(|body| {
        Body::new(Bounded {
            body,
            message,
            _places: None,
        })
    });
    let answer = next.run(request).await;
    answer.map(|body| {
        Body::new(Bounded {
            body,
            message: None,
            _places: Some((place, of_caller)),
        })
    })
}

/// A body whose messages are bounded, or one that has places until it ends.
struct Bounded {
    body: Body,
    message: Option<Unfinished>,
    _places: Option<(Option<OwnedSemaphorePermit>, OfCaller)>,
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let frame = frame.map(|frame| {
            let frame = frame?;
            if let (Some(message), Some(data)) = (&mut self.message, frame.data_ref()) {
                message.receive(data).map_err(Status::from)?;
            }
            Ok(frame)
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The message of a request that is being received. Its bytes so far have room on its connection.
struct Unfinished {
    room: Arc<Semaphore>,
    taken: usize,
    head: Vec<u8>,
    /// Bytes of the message that are still to come.
    rest: usize,
}

impl Unfinished {
    fn new(room: Arc<Semaphore>) -> Self {
        Self {
            room,
            taken: 0,
            head: Vec::with_capacity(HEAD),
            rest: 0,
        }
    }

    /// Takes room for `data` as far as no message is complete with it.
    fn receive(&mut self, mut data: &[u8]) -> Result<(), Error> {
        let mut has = self.taken;
        while !data.is_empty() {
            let wants = match self.rest {
                0 => HEAD - self.head.len(),
                rest => rest,
            };
            let (part, more) = data.split_at(wants.min(data.len()));
            data = more;
            has += part.len();
            if self.rest > 0 {
                self.rest -= part.len();
            } else {
                self.head.extend_from_slice(part);
                let length = self
                    .head
                    .get(1..HEAD)
                    .and_then(|length| length.try_into().ok());
                let Some(length) = length else {
                    break;
                };
                self.rest = u32::from_be_bytes(length) as usize;
                self.head.clear();
            }
            if self.rest == 0 {
                has = 0;
            }
        }
        let Some(more) = has.checked_sub(self.taken) else {
            self.room.add_permits(self.taken - has);
            self.taken = has;
            return Ok(());
        };
        let taken = self.room.try_acquire_many(more as u32);
        taken
            .map_err(|_| {
                let message = format!(
                    "unfinished messages on the connection have more than {UNFINISHED_MAX} bytes"
                );
                limited(&message, PLACE_AFTER)
            })?
            .forget();
        self.taken = has;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.room.add_permits(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with that many bytes, and its head.
    fn message(bytes: u32) -> Vec<u8> {
        [&[0], &bytes.to_be_bytes()[..], &vec![7; bytes as usize]].concat()
    }

    #[test]
    fn the_bytes_of_unfinished_messages_alone_take_room() {
        let room = Arc::new(Semaphore::new(1000));
        let mut one = Unfinished::new(room.clone());
        let sent = [message(100), message(0), message(300)].concat();
        for (byte, count) in sent.iter().zip(1..) {
            one.receive(&[*byte]).unwrap();
            let begun = [0, 105, 110, 415]
                .into_iter()
                .rfind(|begun| *begun <= count);
            assert_eq!(room.available_permits(), 1000 - (count - begun.unwrap()));
        }
        one.receive(&[sent.clone(), message(500)[..400].to_vec()].concat())
            .unwrap();
        assert_eq!(room.available_permits(), 600);
        let mut other = Unfinished::new(room.clone());
        other.receive(&message(900)[..600]).unwrap();
        assert!(one.receive(&[7]).is_err());
        other.receive(&message(10_000)[..1]).unwrap_err();
        drop((one, other));
        assert_eq!(room.available_permits(), 1000);
    }
}
