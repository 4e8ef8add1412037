//! Why a commit was not done.

use super::{
    super::store::{Commit, Committed, Document},
    text::is_stale,
};
use crate::{ids::Token, shard::ShardError};

/// What came of `commit`, which a request did not do, by the `documents` that are there instead. `None`: nothing that it
/// names is in its way, so another attempt may do it. `last`: the last token. `is_repeated`: a request before gave no
/// answer, and may have done it.
///
/// # Errors
///
/// [`ShardError::NoReply`]: that request may still do it.
pub(crate) fn refusal(
    commit: &Commit,
    documents: &[Option<Document>],
    last: Token,
    is_repeated: bool,
    is_in_time: bool,
) -> Result<Option<Committed>, ShardError> {
    let (mut stale, mut is_done) = (Vec::new(), false);
    for ((name, expected), document) in commit.expectations().zip(documents) {
        let version = document.as_ref().map(|document| document.version);
        is_done |= version == Some(commit.version);
        if is_stale(expected, document.as_ref()) {
            stale.push(name.clone());
        }
    }
    if is_repeated && !commit.writes.is_empty() {
        return match is_done {
            true => Ok(Some(Committed::Done { at_ms: None })),
            false => Err(ShardError::NoReply {
                reason: "the server that was asked first gave no answer".into(),
            }),
        };
    }
    let is_overtaken = commit.tokens.is_overtaken(last);
    let may_be_done = stale.is_empty() && is_in_time && !is_overtaken;
    Ok((!may_be_done).then_some(Committed::Refused { stale }))
}
