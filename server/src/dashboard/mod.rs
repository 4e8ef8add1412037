//! The dashboard: a page for operators, on the port of the monitor. The page is in the binary; its scripts and its
//! styles come from nowhere else.
//!
//! | file | content |
//! |---|---|
//! | `gate.rs` | the requests that may pass |
//! | `ring.rs` | the ring and its shards |
//! | `live.rs` | sends the ring to the page whenever it changes |
//! | `locks.rs` | lists locks, shows one, takes one from its holder |
//! | `account_list.rs` | lists accounts, by what they need |
//! | `accounts.rs` | the segments of an account |
//! | `page/` | the page |

mod account_list;
mod accounts;
mod gate;
mod live;
mod locks;
mod ring;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::{HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{Redirect, Response},
    routing::{get, post},
};
use ringfence_client::Client;

use self::{live::Live, locks::Scans};
use crate::{access::Authentication, deadline::Deadline};

/// The longest body of a request.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// A request that takes longer is answered with an error.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The page loads nothing from elsewhere, and nobody else shows it in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The state of the dashboard.
pub(crate) struct Dashboard {
    client: Client,
    authentication: Authentication,
    scans: Scans,
    /// Held for a walk through the accounts.
    walks: tokio::sync::Mutex<()>,
    live: Live,
}

impl Dashboard {
    /// Shows the shards of `client` to callers that `authentication` knows. [`run`](Self::run) must run.
    pub(crate) fn new(client: &Client, authentication: Authentication) -> Arc<Self> {
        Arc::new(Self {
            client: client.clone(),
            authentication,
            scans: Scans::default(),
            walks: tokio::sync::Mutex::default(),
            live: Live::default(),
        })
    }

    /// Keeps the open pages up to date. Never ends; when it is dropped, they are told that it has ended.
    pub(crate) async fn run(&self) {
        self.live.run(&self.client).await;
    }

    /// The page and its requests.
    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/dashboard/api/live", get(live::stream))
            .route("/dashboard/api/locks", get(locks::list))
            .route("/dashboard/api/lock", get(locks::show))
            .route("/dashboard/api/release", post(locks::release))
            .route("/dashboard/api/account", get(accounts::show))
            .route("/dashboard/api/accounts", get(account_list::list))
            .with_state(self)
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .merge(page())
            .layer(map_response(secured))
    }
}

/// The answers where there is no dashboard: the reason.
pub(crate) fn off(reason: &'static str) -> Router {
    let answer = (StatusCode::FORBIDDEN, format!("no dashboard: {reason}\n"));
    Router::new().route("/dashboard/", get(move || async move { answer }))
}

/// The page: the same for every caller, without any data.
fn page() -> Router {
    let to_page = || get(|| async { Redirect::temporary("dashboard/") });
    let router = Router::new()
        .route("/", to_page())
        .route("/dashboard", to_page())
        .route(
            "/dashboard/",
            file("text/html", include_str!("page/page.html")),
        )
        .route(
            "/dashboard/page.css",
            file("text/css", include_str!("page/page.css")),
        )
        .route(
            "/dashboard/icon.svg",
            file("image/svg+xml", include_str!("page/icon.svg")),
        );
    let scripts = [
        ("page", include_str!("page/page.js")),
        ("api", include_str!("page/api.js")),
        ("draw", include_str!("page/draw.js")),
        ("shards", include_str!("page/shards.js")),
        ("locks", include_str!("page/locks.js")),
        ("counter", include_str!("page/counter.js")),
    ];
    scripts.into_iter().fold(router, |router, (name, script)| {
        router.route(
            &format!("/dashboard/{name}.js"),
            file("text/javascript", script),
        )
    })
}

fn file(kind: &'static str, content: &'static str) -> axum::routing::MethodRouter {
    let kind = format!("{kind}; charset=utf-8");
    get(move || async move { ([(header::CONTENT_TYPE, kind)], content) })
}

async fn secured(mut response: Response) -> Response {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The deadline of a request of the page.
fn deadline() -> Deadline {
    Deadline::after(ANSWER_WITHIN)
}
