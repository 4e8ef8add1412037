//! Sends the ring to open pages whenever it changes: server-sent events.
//!
//! The ring is read once for all pages, and only while a page is open.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::HeaderName,
    response::{
        IntoResponse,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;
use ringfence_api::{Error, Reason};
use ringfence_client::{Client, ShardId, ShardStatus};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Dashboard,
    gate::{Refused, Visitor},
    ring::Ring,
};
use crate::access::Call;

/// Open pages; more are refused.
const PAGES_MAX: usize = 64;

/// The ring is read this often.
const READ_EVERY: Duration = Duration::from_millis(500);

/// The pause between two questions to all shards.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// A page without news gets a sign of life this often.
const ALIVE_EVERY: Duration = Duration::from_secs(5);

/// A page that is refused may ask again after this time.
const PLACE_AFTER: Duration = Duration::from_secs(5);

/// Proxies pass events on at once.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// What open pages show.
#[derive(Default)]
pub(super) struct Live {
    pages: Arc<watch::Sender<usize>>,
    /// The ring as JSON; empty while no page is open.
    ring: watch::Sender<Arc<str>>,
    /// The last answers of the shards.
    looks: watch::Sender<BTreeMap<ShardId, ShardStatus>>,
    ended: CancellationToken,
}

/// An open page. It counts until it is dropped.
struct Page(Arc<watch::Sender<usize>>);

impl Live {
    /// Reads the ring while a page is open.
    pub(super) async fn run(&self, client: &Client) {
        let _ends = self.ended.clone().drop_guard();
        tokio::join!(self.ask(client), self.read(client));
    }

    async fn ask(&self, client: &Client) {
        let mut pages = self.pages.subscribe();
        while pages.wait_for(|open| *open > 0).await.is_ok() {
            self.looks.send_replace(client.shards().await);
            sleep(ASK_EVERY).await;
        }
    }

    async fn read(&self, client: &Client) {
        let metrics = client.metrics();
        let (mut pages, mut looks) = (self.pages.subscribe(), self.looks.subscribe());
        while pages.wait_for(|open| *open > 0).await.is_ok() {
            let ring = Ring::of(client, &metrics, &looks.borrow_and_update());
            let ring: Arc<str> = serde_json::to_string(&ring)
                .expect("texts and numbers")
                .into();
            self.ring.send_if_modified(|shown| {
                let changed = *shown != ring;
                *shown = ring;
                changed
            });
            let _ = timeout(READ_EVERY, looks.changed()).await;
            if *pages.borrow() == 0 {
                self.ring.send_replace(Arc::default());
            }
        }
    }

    fn open(&self) -> Result<Page, Error> {
        let opened = self.pages.send_if_modified(|open| {
            let has_place = *open < PAGES_MAX;
            *open += usize::from(has_place);
            has_place
        });
        match opened {
            true => Ok(Page(self.pages.clone())),
            false => Err(Error {
                is_retryable: true,
                retry_after: Some(PLACE_AFTER),
                ..Error::new(
                    Reason::RateLimited,
                    format!("{PAGES_MAX} pages are open, must be fewer: close one"),
                )
            }),
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// The ring, now and whenever it changes.
pub(super) async fn stream(
    State(dashboard): State<Arc<Dashboard>>,
    Visitor(caller): Visitor,
) -> Result<impl IntoResponse, Refused> {
    caller.admit(Call::Admin)?;
    let live = &dashboard.live;
    let (page, mut ring, ended) = (live.open()?, live.ring.subscribe(), live.ended.clone());
    ring.mark_changed();
    let rings = stream::unfold((page, ring, ended), |(page, mut ring, ended)| async {
        let shown = ended.run_until_cancelled(next(&mut ring)).await??;
        let event = Ok::<_, Infallible>(Event::default().data(&*shown));
        Some((event, (page, ring, ended)))
    });
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    Ok(([UNBUFFERED], Sse::new(rings).keep_alive(alive)))
}

/// The next ring. None: there will be none.
async fn next(ring: &mut watch::Receiver<Arc<str>>) -> Option<Arc<str>> {
    loop {
        ring.changed().await.ok()?;
        let shown = ring.borrow_and_update().clone();
        if !shown.is_empty() {
            return Some(shown);
        }
    }
}
