//! Two connections of the plain redis crate: one for commands, and one that listens.

use std::sync::Arc;

use redis::{
    AsyncConnectionConfig, IntoConnectionInfo, ProtocolVersion, PushInfo, PushKind,
    aio::MultiplexedConnection, io::tcp::TcpSettings,
};
use tokio::sync::Semaphore;

use crate::Failure;

pub(super) struct Listener {
    pub(super) commands: MultiplexedConnection,
    /// Subscribes; nobody has, so far.
    pub(super) listening: MultiplexedConnection,
    /// Has a permit for each message that no task has used yet.
    pub(super) messages: Arc<Semaphore>,
}

impl Listener {
    pub(super) async fn new(url: &str) -> Result<Self, Failure> {
        let info = url.into_connection_info()?;
        let redis = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let info = info
            .set_redis_settings(redis)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let client = redis::Client::open(info)?;
        let messages = Arc::new(Semaphore::new(0));
        let wake = messages.clone();
        let config = AsyncConnectionConfig::new().set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Message {
                wake.add_permits(1);
            }
            Ok::<(), ()>(())
        });
        Ok(Self {
            commands: client.get_multiplexed_async_connection().await?,
            listening: client
                .get_multiplexed_async_connection_with_config(&config)
                .await?,
            messages,
        })
    }
}
