//! Callers, and the calls that they may make. A call that is refused reaches no shard.

mod calls;
mod certificates;
mod rates;

use std::fs;

use ringfence_api::{
    Error, Reason,
    v1::{AcquireRequest, ReleaseRequest, lock_service_client::LockServiceClient},
};
use ringfence_client::{Client, Coordinators};
use ringfence_server::{Config, Principal, Proof, Roles, token_digest};
use tonic::{Code, Request, Status};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

pub(crate) use rates::limited;

use super::scene::{Scene, ask};

/// A caller whose bearer token is its name.
pub(crate) fn principal(config: &mut Config, name: &str, roles: Roles) {
    let proof = Proof::Token(token_digest(name));
    let principal = Principal {
        proofs: vec![proof],
        roles,
        accounts_per_hour: None,
    };
    config.principals.insert(name.into(), principal);
}

/// `message`, with a bearer token.
pub(crate) fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let header = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", header);
    request
}

#[tokio::test]
async fn a_principal_may_have_several_tokens() {
    let scene = Scene::set_with(|config| {
        principal(config, "old", Roles::all());
        let principal = config.principals.get_mut("old").unwrap();
        principal.proofs.push(Proof::Token(token_digest("new")));
    })
    .await;
    let mut locks = LockServiceClient::new(scene.channel().await);
    let held = locks
        .acquire(with("old", ask("key", 5000, Some(0))))
        .await
        .unwrap();
    // It is the same principal: the handle is its own.
    let release = ReleaseRequest {
        handle: held.into_inner().handle,
    };
    locks.release(with("new", release)).await.unwrap();
    let refused = locks
        .acquire(with("newer", ask("key", 5000, Some(0))))
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn a_token_that_changes_in_its_file_counts_from_the_next_call_on() {
    let scene = Scene::set_with(|config| principal(config, "known", Roles::all())).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "known\n").unwrap();
    let coordinators = Coordinators::new(&scene.url).token_file(file.path());
    let client = Client::builder().coordinators(coordinators);
    let client = client.build().await.unwrap();
    let reads = async |expected: bool| {
        let read = client.lock("key").inspect().await;
        assert_eq!(read.is_ok(), expected, "{read:?}");
    };
    reads(true).await;
    fs::write(&file, "unknown\n").unwrap();
    reads(false).await;
    // As in a rotation: the last one stays.
    fs::write(&file, "").unwrap();
    reads(false).await;
    fs::write(&file, "known\n").unwrap();
    reads(true).await;
    fs::remove_file(&file).unwrap();
    reads(true).await;
}

#[tokio::test]
async fn a_call_without_a_token_reaches_no_shard() {
    let token = "correct-horse-battery-staple";
    let scene = Scene::set_with(|config| principal(config, token, Roles::all())).await;
    let locks = LockServiceClient::new(scene.channel().await);
    let request = |header: Option<&str>| -> Request<AcquireRequest> {
        let mut request = Request::new(ask("key", 1000, Some(0)));
        if let Some(header) = header {
            let header = header.parse().unwrap();
            request.metadata_mut().insert("authorization", header);
        }
        request
    };
    let wrong = format!("Bearer {token}x");
    let other_scheme = format!("Basic {token}");
    let refused = async || {
        for header in [
            None,
            Some(&*wrong),
            Some(token),
            Some(&*other_scheme),
            Some("Bearer"),
        ] {
            let refused = locks.clone().acquire(request(header)).await;
            let refused: Status = refused.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{header:?}");
            let error = Error::from_status(&refused);
            assert_eq!(error.reason, Reason::Unauthenticated);
            assert!(!error.is_retryable && !error.message.contains(token));
        }
    };
    scene.reaches_no_shard(refused).await;
    let before = scene.script_calls().await;
    let bearer = format!("bEARER {token}");
    locks.clone().acquire(request(Some(&bearer))).await.unwrap();
    assert!(scene.script_calls().await > before);

    let mut health = HealthClient::new(scene.channel().await);
    let check = HealthCheckRequest {
        service: String::new(),
    };
    health.check(check).await.unwrap();
}
