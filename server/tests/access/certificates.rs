//! Callers that a certificate names.

use ringfence_api::{
    Error, Reason,
    v1::{
        InspectRequest, RenewRequest, SessionRequest, lock_service_client::LockServiceClient,
        session_service_client::SessionServiceClient,
    },
};
use ringfence_server::{Config, Principal, Proof, Roles};
use ringfence_test_support::Secured;
use tonic::{Request, Status, transport::Channel};

use super::with;
use crate::{
    scene::{Scene, acquire, ask, release},
    tls,
};

const BILLING: &str = "billing.example.org";
const AUDIT: &str = "spiffe://example.org/audit";

/// A caller with the alternative name `san`.
fn principal(config: &mut Config, name: &str, san: &str, roles: Roles) {
    let proof = Proof::Certificate(san.into());
    let principal = Principal {
        proofs: vec![proof],
        roles,
        accounts_per_hour: None,
    };
    config.principals.insert(name.into(), principal);
}

async fn scene(secured: &Secured) -> Scene {
    Scene::set_with(|config| {
        tls::tls(config, secured, true);
        let acquire = vec!["default/invoice/".parse().unwrap()];
        let billing = Roles {
            acquire,
            ..Roles::default()
        };
        principal(config, "billing", BILLING, billing);
        let read = vec!["*".parse().unwrap()];
        let audit = Roles {
            read,
            ..Roles::default()
        };
        principal(config, "audit", AUDIT, audit);
    })
    .await
}

fn reason(refused: &Status) -> Reason {
    Error::from_status(refused).reason
}

/// The refusals of an acquisition, a renewal, a look and a session.
async fn refusals(channel: &Channel, key: &str) -> Vec<Reason> {
    let mut locks = LockServiceClient::new(channel.clone());
    let mut sessions = SessionServiceClient::new(channel.clone());
    let inspect = InspectRequest {
        key: key.into(),
        ..InspectRequest::default()
    };
    let asks = futures_util::stream::empty::<SessionRequest>();
    let refused = [
        acquire(&mut locks, ask(key, 1000, Some(0))).await.err(),
        locks.renew(RenewRequest::default()).await.err(),
        locks.inspect(inspect).await.err(),
        sessions.session(asks).await.err(),
    ];
    refused.iter().flatten().map(reason).collect()
}

#[tokio::test]
async fn a_certificate_has_the_roles_of_its_principal() {
    let secured = Secured::default();
    secured.issue("billing", BILLING);
    secured.issue("audit", AUDIT);
    let scene = scene(&secured).await;
    let [billing, audit] = ["billing", "audit"].map(|own| {
        let channel = tls::channel(&scene, &secured, Some((&secured, own)));
        LockServiceClient::new(channel)
    });
    let inspect = InspectRequest {
        key: "invoice/1".into(),
        ..InspectRequest::default()
    };
    let refused = async || {
        let beyond = acquire(&mut billing.clone(), ask("coins/1", 1000, Some(0))).await;
        let read = billing.clone().inspect(inspect.clone()).await;
        let write = acquire(&mut audit.clone(), ask("invoice/1", 1000, Some(0))).await;
        for refused in [beyond.map(drop), read.map(drop), write.map(drop)] {
            assert_eq!(reason(&refused.unwrap_err()), Reason::NotAllowed);
        }
    };
    scene.reaches_no_shard(refused).await;
    let asked = ask("invoice/1", 30_000, Some(0));
    let held = acquire(&mut billing.clone(), asked).await.unwrap();
    let seen = audit.clone().inspect(inspect.clone()).await.unwrap();
    assert_eq!(seen.into_inner().holder.unwrap().first_token, held.token);
    // The handle is of the principal that acquired the lock.
    let taken = release(&mut audit.clone(), &held.handle).await;
    assert_eq!(reason(&taken.unwrap_err()), Reason::InvalidInput);
    release(&mut billing.clone(), &held.handle).await.unwrap();
}

#[tokio::test]
async fn a_certificate_of_no_principal_reaches_no_shard() {
    let secured = Secured::default();
    // The common name is no proof, nor is a part of a name.
    for (of, name) in [
        ("billing", "example.org"),
        (BILLING, "other.example.org"),
        ("longer", "billing.example.org.example.com"),
        ("wildcard", "*.example.org"),
        ("parent", "spiffe://example.org/"),
        ("address", "127.0.0.1"),
    ] {
        secured.issue(of, name);
    }
    secured.issue("right", BILLING);
    let scene = scene(&secured).await;
    let refused = async || {
        for of in [
            "billing", BILLING, "longer", "wildcard", "parent", "address",
        ] {
            let channel = tls::channel(&scene, &secured, Some((&secured, of)));
            let refused = refusals(&channel, "invoice/1").await;
            assert_eq!(refused, [Reason::Unauthenticated; 4], "{of}");
        }
        // Who sends a token is known by that alone.
        let channel = tls::channel(&scene, &secured, Some((&secured, "right")));
        let asked: Request<_> = with("wrong", ask("invoice/1", 1000, Some(0)));
        let refused = LockServiceClient::new(channel).acquire(asked).await;
        assert_eq!(reason(&refused.unwrap_err()), Reason::Unauthenticated);
    };
    scene.reaches_no_shard(refused).await;
    let foreign = Secured::default();
    foreign.issue("right", BILLING);
    let channel = tls::channel(&scene, &secured, Some((&foreign, "right")));
    let refused = refusals(&channel, "invoice/1").await;
    assert_eq!(refused, [Reason::Unspecified; 4], "its handshake fails");
    assert!(scene.is_free("invoice/1").await);
}
