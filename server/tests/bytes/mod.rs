//! Requests of any bytes: every call is answered, or refused with a short reason, and the coordinator goes on.

mod messages;
mod raw;

use std::time::Duration;

use futures_util::{StreamExt, future::join_all, stream};
use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    test_runner::{Config, TestCaseError, TestRunner},
};
use ringfence_api::{Error, Reason};
use ringfence_test_support::{Damage, damaged, damages};
use tokio::time::timeout;
use tonic::{Code, Request, Status, transport::Channel};

use self::{messages::Messages, raw::Raw};
use super::scene::{Scene, acquire, ask};

/// The deadline of each call. Some wait for a lock until then.
const CALL: Duration = Duration::from_millis(60);

/// A call that is not answered by then hangs.
const SOON: Duration = Duration::from_secs(120);

/// The most bytes of a reason, with its details.
const REASON_BYTES_MAX: usize = 2500;

/// Calls at a time. Enough for the same names to meet.
const CALLS: usize = 24;

/// A call: the method, what decides on its messages, and their damage.
type Call = (Index, Vec<Vec<u8>>, Vec<Damage>);

fn call() -> impl Strategy<Value = Call> {
    let message = || vec(any::<u8>(), 0..96);
    let damages = prop_oneof![1 => Just(Vec::new()), 1 => damages()];
    (any::<Index>(), vec(message(), 1..5), damages)
}

#[test]
fn every_message_is_answered_or_refused_with_a_short_reason() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (scene, channel) = runtime.block_on(async {
        let scene = Scene::set().await;
        let channel = scene.channel().await;
        (scene, channel)
    });
    let messages = Messages::new();
    let mut config = Config::default();
    config.cases = config.cases.div_ceil(CALLS as u32 / 2);
    let run = TestRunner::new(config).run(&vec(call(), CALLS), |calls| {
        runtime.block_on(async {
            let made = calls.iter().map(|call| make(&channel, &messages, call));
            join_all(made).await.into_iter().collect()
        })
    });
    run.unwrap_or_else(|failed| panic!("{failed}"));
    runtime.block_on(async {
        let granted = acquire(&mut scene.locks().await, ask("after", 1000, None)).await;
        granted.unwrap();
    });
}

async fn make(
    channel: &Channel,
    messages: &Messages,
    (method, choices, damages): &Call,
) -> Result<(), TestCaseError> {
    let method = method.get(&messages.methods[..]);
    let mut sent: Vec<_> = choices
        .iter()
        .map(|choices| messages.make(&method.input, choices))
        .collect();
    if let Some(last) = sent.last_mut() {
        *last = damaged(last, damages);
    }
    if !method.takes_many {
        sent.drain(..sent.len() - 1);
    }
    let mut request = Request::new(stream::iter(sent));
    request.set_timeout(CALL);
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let answered = async {
        let answers = grpc
            .streaming(request, method.path.parse().unwrap(), Raw)
            .await;
        let mut answers = answers?.into_inner();
        while let Some(answer) = answers.next().await {
            answer?;
        }
        Ok(())
    };
    match timeout(SOON, answered).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(status)) => check(&method.path, &status),
        Err(_) => Err(TestCaseError::fail(format!("{} hangs", method.path))),
    }
}

fn check(path: &str, status: &Status) -> Result<(), TestCaseError> {
    let error = Error::from_status(status);
    let is_understood = match status.code() {
        // The decoder's, which names the message and the field.
        Code::Internal => status
            .message()
            .starts_with("failed to decode Protobuf message"),
        Code::InvalidArgument => {
            let input = error.input.as_ref();
            error.reason == Reason::InvalidInput
                && input.is_some_and(|input| !input.field.is_empty() && !input.limit.is_empty())
        }
        Code::Unknown | Code::DataLoss | Code::Unimplemented => false,
        _ => true,
    };
    prop_assert!(is_understood, "{path}: {status:?}");
    let length = status.message().len() + status.details().len();
    prop_assert!(
        length <= REASON_BYTES_MAX,
        "{path}: {length} bytes: {status:?}"
    );
    Ok(())
}
