//! Checks again and again whether a server is set up as required: its settings may change while it
//! runs.

use std::time::Duration;

use tokio::time::sleep;

use super::renewer::LeaseRenewer;
use crate::shard::ShardError;

/// Pause between two checks of one server.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// Shakes hands with the shard of `renewer` again and again. While the handshake finds it unusable,
/// the engine requests no new lock there; held locks are renewed and released.
pub(crate) async fn watch(renewer: &LeaseRenewer) {
    let driver = &renewer.driver;
    let mut refusing = false;
    loop {
        sleep(LOOK_AGAIN).await;
        let refused = match driver.shard().connect_control(None).await {
            Ok(_) => None,
            Err(error @ ShardError::Unusable { .. }) => Some(error),
            // This error does not concern the server's settings.
            Err(_) => continue,
        };
        match &refused {
            Some(error) if !refusing => {
                tracing::warn!(shard = %driver.id(), %error, "no new locks until it is mended");
            }
            None if refusing => tracing::info!(shard = %driver.id(), "grants new locks again"),
            _ => {}
        }
        refusing = refused.is_some();
        driver.refuse_new_locks(refused.as_ref());
    }
}
