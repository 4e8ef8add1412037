//! A resize that runs while its caller listens to the progress.

use std::pin::Pin;

use futures_util::{Stream, StreamExt, stream};
use ringfence_api::{
    Error,
    v1::{ResizeEnd, ResizeProgress},
};
use ringfence_client::{Progress, Resize, Resized, ShardId, TopologyError, Weight};
use tonic::Status;

use crate::{access::Admitted, errors, fields::to_length};

/// The progress, as answers of type `T`.
pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A state of a resize.
enum Step {
    Moves(Progress),
    Ends(Result<Resized, TopologyError>),
}

/// Runs `resize` while the stream is read. The last answer tells the end.
pub(super) fn run<T: Send + 'static>(
    resize: Resize,
    admitted: Admitted,
    answer: fn(ResizeProgress) -> T,
) -> Answers<T> {
    let progress = resize.progress();
    let last = progress.clone();
    let moves = stream::unfold(progress, |mut progress| async {
        progress.changed().await.ok()?;
        let step = Step::Moves(progress.borrow_and_update().clone());
        Some((step, progress))
    });
    let ends = stream::once(async move { Step::Ends(resize.run().await) });
    let steps = stream::select(moves, Box::pin(ends));
    let state = (Box::pin(steps), false, admitted);
    let answers = stream::unfold(state, move |(mut steps, ended, admitted)| {
        let last = last.clone();
        async move {
            if ended {
                return None;
            }
            let step = steps.next().await?;
            let (result, ended) = match step {
                Step::Moves(progress) => (Ok(told(&progress, ResizeEnd::Unspecified)), false),
                Step::Ends(Ok(resized)) => (Ok(end(&last.borrow(), &resized)), true),
                Step::Ends(Err(error)) => (Err(errors::topology(&error).into()), true),
            };
            Some((result, (steps, ended, admitted)))
        }
    });
    Box::pin(answers.map(move |told| told.map(answer)))
}

fn told(progress: &Progress, end: ResizeEnd) -> ResizeProgress {
    ResizeProgress {
        slots_moved: progress.slots_moved,
        slots_to_move: progress.slots_to_move,
        slots_migrating: progress.migrating,
        locks_carried: progress.locks_carried,
        counters_carried: progress.counters_carried,
        left: progress.left.map(to_length),
        waiting_for: progress
            .waiting_for
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        end: end.into(),
    }
}

fn end(progress: &Progress, resized: &Resized) -> ResizeProgress {
    let end = match resized.reached {
        true => ResizeEnd::Reached,
        false => ResizeEnd::TurnedBack,
    };
    ResizeProgress {
        slots_moved: resized.slots_moved,
        slots_to_move: progress.slots_to_move.max(resized.slots_moved),
        slots_migrating: 0,
        left: None,
        ..told(progress, end)
    }
}

/// The shard called `id`.
pub(super) fn shard_id(id: &str) -> Result<ShardId, Error> {
    ShardId::new(id).map_err(|error| errors::ring("id", format!("{id:?}"), &error))
}

pub(super) fn weight(number: u32) -> Result<Weight, Error> {
    Weight::new(number).map_err(|error| errors::ring("weight", number, &error))
}
