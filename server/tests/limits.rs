//! Limits, health and reflection.

use std::time::Duration;

use tokio::{net::TcpStream, time::timeout};
use tonic::{Code, Request};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use tonic_reflection::pb::v1alpha;

use super::scene::{Scene, acquire, ask};

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let mut large = ask("key", 1000, None);
    large.label = "x".repeat(64 * 1024);
    let refused = acquire(&mut locks, large).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
    assert!(scene.is_free("key").await);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let scene = Scene::set_with(|config| config.limits.connections = 1).await;
    let mut first = scene.locks().await;
    acquire(&mut first, ask("one", 1000, None)).await.unwrap();
    let url_taken = async {
        let mut second = scene.locks().await;
        acquire(&mut second, ask("two", 1000, None)).await.unwrap();
    };
    tokio::pin!(url_taken);
    assert!(
        timeout(Duration::from_millis(300), &mut url_taken)
            .await
            .is_err()
    );
    drop(first);
    timeout(Duration::from_secs(10), url_taken).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_sends_nothing_makes_room_for_others() {
    let scene = Scene::set_with(|config| config.limits.connections = 1).await;
    let address = scene.url.strip_prefix("http://").unwrap();
    let _silent = TcpStream::connect(address).await.unwrap();
    let next = async {
        let mut locks = scene.locks().await;
        acquire(&mut locks, ask("key", 1000, None)).await.unwrap();
    };
    timeout(Duration::from_secs(20), next).await.unwrap();
}

#[tokio::test]
async fn health_and_reflection_answer() {
    let scene = Scene::set().await;
    let mut health = HealthClient::new(scene.channel().await);
    let check = HealthCheckRequest {
        service: String::new(),
    };
    let answer = health.check(check).await.unwrap().into_inner();
    assert_eq!(answer.status, 1, "serving");

    let mut reflection = ServerReflectionClient::new(scene.channel().await);
    let list = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let asked = futures_util::stream::iter([list]);
    let answers = reflection.server_reflection_info(Request::new(asked));
    let answer = answers.await.unwrap().into_inner().message().await.unwrap();
    let Some(MessageResponse::ListServicesResponse(listed)) = answer.unwrap().message_response
    else {
        panic!("no list");
    };
    let names: Vec<_> = listed
        .service
        .into_iter()
        .map(|service| service.name)
        .collect();
    for name in [
        "ringfence.v1.LockService",
        "ringfence.v1.CounterService",
        "ringfence.v1.LatchService",
        "ringfence.v1.AdminService",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }

    let mut former =
        v1alpha::server_reflection_client::ServerReflectionClient::new(scene.channel().await);
    let list = v1alpha::ServerReflectionRequest::default();
    let asked = futures_util::stream::iter([list]);
    former.server_reflection_info(asked).await.unwrap();
}
