//! Counts the calls, by method and code.

use axum::{
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tonic::{Code, Status, service::Routes};

use crate::{bounds, counters::Changes};

/// The answers to calls, and to the changes of accounts in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    answers: Family<Answer, Counter>,
    pub(crate) changes: Changes,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    method: String,
    code: String,
}

impl Calls {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "calls",
            "Answered calls. A stream counts when it is opened.",
            self.answers.clone(),
        );
        self.changes.register(registry);
    }

    /// `routes`, whose calls are bounded and counted.
    pub(crate) fn of(&self, routes: Routes) -> Routes {
        let counted = middleware::from_fn_with_state(self.clone(), count);
        let bounded = middleware::from_fn(bounds::bound);
        let routes = routes.into_axum_router().layer(bounded);
        routes.layer(counted).into()
    }
}

async fn count(State(calls): State<Calls>, request: Request, next: Next) -> Response {
    let method = request.uri().path().trim_start_matches('/').to_owned();
    let answer = next.run(request).await;
    // An answer without a code has it at its end, after the messages.
    let code = Status::from_header_map(answer.headers()).map_or(Code::Ok, |status| status.code());
    let method = match code {
        // Any text of a caller.
        Code::Unimplemented => "unknown".into(),
        _ => method,
    };
    let code = format!("{code:?}");
    let answered = Answer { method, code };
    calls.answers.get_or_create(&answered).inc();
    answer
}
