//! Bearer tokens: a call without one reaches no shard.

use ringfence_api::{
    Error, Reason,
    v1::{AcquireRequest, lock_service_client::LockServiceClient},
};
use ringfence_server::{Token, token_digest};
use tonic::{Code, Request, Status};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use super::scene::{Scene, ask};

const TOKEN: &str = "correct-horse-battery-staple";

/// An acquisition with this header.
fn with(header: Option<&str>) -> Request<AcquireRequest> {
    let mut request = Request::new(ask("key", 1000, Some(0)));
    if let Some(header) = header {
        let header = header.parse().unwrap();
        request.metadata_mut().insert("authorization", header);
    }
    request
}

#[tokio::test]
async fn a_call_without_a_token_reaches_no_shard() {
    let scene = Scene::set_with(|config| {
        let token = Token {
            sha256: token_digest(TOKEN),
            admin: false,
        };
        config.tokens.insert("billing".into(), token);
    })
    .await;
    let mut locks = LockServiceClient::new(scene.channel().await);
    let before = scene.script_calls().await;
    let bearer = format!("Bearer {TOKEN}");
    let wrong = format!("Bearer {TOKEN}x");
    let other_scheme = format!("Basic {TOKEN}");
    for header in [
        None,
        Some(&*wrong),
        Some(TOKEN),
        Some(&*other_scheme),
        Some("Bearer"),
    ] {
        let refused: Status = locks.acquire(with(header)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{header:?}");
        let error = Error::from_status(&refused);
        assert_eq!(error.reason, Reason::Unauthenticated);
        assert!(!error.is_retryable && !error.message.contains(TOKEN));
    }
    assert_eq!(scene.script_calls().await, before);
    locks.acquire(with(Some(&bearer))).await.unwrap();
    assert!(scene.script_calls().await > before);

    let mut health = HealthClient::new(scene.channel().await);
    let check = HealthCheckRequest {
        service: String::new(),
    };
    health.check(check).await.unwrap();
}
