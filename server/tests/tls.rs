//! TLS, and certificates of callers.

use std::fs;

use ringfence_api::v1::lock_service_client::LockServiceClient;
use ringfence_client::{Client, Coordinators};
use ringfence_server::{Config, PemFile, Tls};
use ringfence_test_support::{Secured, eventually};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::scene::{Coordinator, Scene, acquire, ask};

fn pem(secured: &Secured, name: &str) -> PemFile {
    let path = secured.path(name);
    PemFile {
        pem: std::fs::read(&path).unwrap(),
        path: path.into(),
    }
}

/// The certificates of `secured`; `mutual`: callers need one too.
pub(crate) fn tls(config: &mut Config, secured: &Secured, mutual: bool) {
    config.tls = Some(Tls {
        cert: pem(secured, "server.pem"),
        key: pem(secured, "server.key"),
        client_ca: mutual.then(|| pem(secured, "ca.pem")),
    });
}

/// A connection that trusts the authority of `trusts`, with the certificate that is named so in `own`.
pub(crate) fn channel(
    coordinator: &Coordinator,
    trusts: &Secured,
    own: Option<(&Secured, &str)>,
) -> Channel {
    let url = coordinator.url.replace("http:", "https:");
    let authority = Certificate::from_pem(pem(trusts, "ca.pem").pem);
    let mut tls = ClientTlsConfig::new().ca_certificate(authority);
    if let Some((own, name)) = own {
        let [cert, key] = ["pem", "key"].map(|of| pem(own, &format!("{name}.{of}")).pem);
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    let endpoint = Endpoint::from_shared(url).unwrap().tls_config(tls).unwrap();
    endpoint.connect_lazy()
}

/// A caller that trusts the authority of `trusts`, with the certificate of `own`.
fn locks(scene: &Scene, trusts: &Secured, own: Option<&Secured>) -> LockServiceClient<Channel> {
    let own = own.map(|own| (own, "client"));
    LockServiceClient::new(channel(scene, trusts, own))
}

#[tokio::test]
async fn a_caller_checks_the_certificate_of_the_coordinator() {
    let (secured, other) = (Secured::default(), Secured::default());
    let scene = Scene::set_with(|config| tls(config, &secured, false)).await;
    let mut caller = locks(&scene, &secured, None);
    acquire(&mut caller, ask("key", 1000, Some(0)))
        .await
        .unwrap();
    let mut distrusts = locks(&scene, &other, None);
    let refused = acquire(&mut distrusts, ask("free", 1000, Some(0))).await;
    refused.unwrap_err();
    let plain = Endpoint::from_shared(scene.url.clone()).unwrap();
    let mut plain = LockServiceClient::new(plain.connect_lazy());
    acquire(&mut plain, ask("free", 1000, Some(0)))
        .await
        .unwrap_err();
    assert!(scene.is_free("free").await);
}

#[tokio::test]
async fn a_caller_without_a_certificate_reaches_no_shard() {
    let (secured, other) = (Secured::default(), Secured::default());
    let scene = Scene::set_with(|config| tls(config, &secured, true)).await;
    let refused = async || {
        for own in [None, Some(&other)] {
            let mut caller = locks(&scene, &secured, own);
            let refused = acquire(&mut caller, ask("key", 1000, Some(0))).await;
            refused.unwrap_err();
        }
    };
    scene.reaches_no_shard(refused).await;
    let before = scene.script_calls().await;
    let mut caller = locks(&scene, &secured, Some(&secured));
    acquire(&mut caller, ask("key", 1000, Some(0)))
        .await
        .unwrap();
    assert!(scene.script_calls().await > before);
}

/// They are of another authority, so a caller sees which it got.
#[tokio::test]
async fn new_certificates_count_without_a_restart() {
    let (secured, renewed) = (Secured::default(), Secured::default());
    let scene = Scene::set_with(|config| tls(config, &secured, false)).await;
    let mut caller = locks(&scene, &secured, None);
    let held = acquire(&mut caller, ask("held", 10_000, Some(0))).await;
    held.unwrap();
    for name in ["server.pem", "server.key"] {
        fs::copy(renewed.path(name), secured.path(name)).unwrap();
    }
    eventually("the new one is shown", async || {
        let mut caller = locks(&scene, &renewed, None);
        acquire(&mut caller, ask("new", 1000, None)).await.is_ok()
    })
    .await;
    let mut former = locks(&scene, &secured, None);
    let refused = acquire(&mut former, ask("free", 1000, Some(0))).await;
    refused.unwrap_err();
    assert!(!scene.is_free("held").await, "it stays with its holder");
}

#[tokio::test]
async fn the_library_shows_a_certificate_and_says_what_is_wrong_with_its_absence() {
    let (secured, other) = (Secured::default(), Secured::default());
    let scene = Scene::set_with(|config| tls(config, &secured, true)).await;
    let url = scene.url.replace("http:", "https:");
    let read = |of: &Secured, name| pem(of, name).pem;
    let trusts = || Coordinators::new(&*url).authorities(read(&secured, "ca.pem"));
    let shows = |of: &Secured| (read(of, "client.pem"), read(of, "client.key"));
    let build = async |at: Coordinators| Client::builder().coordinators(at).build().await;

    let (pem, key) = shows(&secured);
    let client = build(trusts().certificate(pem, key)).await.unwrap();
    let held = client.lock("key").acquire().await.unwrap();
    assert!(!scene.is_free("key").await);
    held.release().await;
    assert!(scene.is_free("key").await);

    let (pem, key) = shows(&other);
    for (at, says) in [
        (trusts(), " (without a client certificate): "),
        (trusts().certificate(pem, key), ": "),
        (
            Coordinators::new(&*url).authorities(read(&other, "ca.pem")),
            "invalid peer certificate: BadSignature",
        ),
        (
            Coordinators::new(&*url),
            "invalid peer certificate: UnknownIssuer",
        ),
    ] {
        let error = build(at).await.unwrap_err().to_string();
        assert!(error.contains(&url) && error.contains(says), "{error}");
    }
}
