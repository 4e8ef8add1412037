//! `--coordinator https://…`: certificates and tokens, from files; and addresses of something else.

use std::fs;

use ringfence_server::token_digest;
use ringfence_test_support::{Secured, database::free_port, eventually};

use crate::{
    binary::{Output, ringfence},
    serve::{Coordinator, founded},
};

const TOKEN: &str = "correct-horse-battery-staple";

/// The settings of a coordinator that requires certificates of `secured`, and a token or the right certificate.
fn settings(secured: &Secured) -> String {
    let [cert, key, ca] = ["server.pem", "server.key", "ca.pem"].map(|name| secured.path(name));
    let digest = token_digest(TOKEN)
        .map(|byte| format!("{byte:02x}"))
        .concat();
    format!(
        "[tls]\ncert = {cert:?}\nkey = {key:?}\nclient_ca = {ca:?}\n\
         [principals.worker]\nsha256 = {digest:?}\nacquire = [\"*\"]\n\
         [principals.nightly]\ncertificate = \"nightly.example.org\"\nacquire = [\"default/night/\"]\n"
    )
}

#[tokio::test]
async fn files_of_certificates_and_tokens_open_a_coordinator() {
    let (secured, other) = (Secured::default(), Secured::default());
    secured.issue("nightly", "nightly.example.org");
    let servers = founded().await;
    let coordinator = Coordinator::start(&servers, &settings(&secured));
    let url = coordinator.url.replace("http:", "https:");
    let token = secured.path("token");
    // As an editor leaves it.
    fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let lock = |key: &str, options: &[&str]| -> Output {
        let once = ["--wait", "0s", "--", "true"];
        ringfence(&[&["lock", key, "--coordinator", &url], options, &once].concat())
    };
    let [ca, foreign_ca] = [&secured, &other].map(|of| of.path("ca.pem"));
    let files =
        |of: &Secured, name: &str| ["pem", "key"].map(|kind| of.path(&format!("{name}.{kind}")));
    let ([cert, key], [nightly, nightly_key]) =
        (files(&secured, "client"), files(&secured, "nightly"));
    let [foreign, foreign_key] = files(&other, "client");

    let trusts = ["--ca-file", &ca];
    let shows = ["--cert-file", &cert, "--key-file", &key];
    let tells = ["--token-file", &token];
    let by_token = lock("key", &[&trusts[..], &shows, &tells].concat());
    assert_eq!(by_token.code, 0, "{by_token:?}");
    let as_nightly = ["--cert-file", &nightly, "--key-file", &nightly_key];
    let by_certificate = lock("night/1", &[&trusts[..], &as_nightly].concat());
    assert_eq!(by_certificate.code, 0, "{by_certificate:?}");
    let beyond = lock("day/1", &[&trusts[..], &as_nightly].concat());
    assert_eq!(beyond.code, 69, "{beyond:?}");

    let stranger = ["--cert-file", &foreign, "--key-file", &foreign_key];
    for (options, says) in [
        (
            [&trusts[..], &tells].concat(),
            " (without a client certificate): ",
        ),
        ([&trusts[..], &stranger].concat(), "coordinator https://"),
        (
            [&["--ca-file", &foreign_ca], &shows[..]].concat(),
            "invalid peer certificate: BadSignature",
        ),
        (shows.to_vec(), "invalid peer certificate: UnknownIssuer"),
        ([&trusts[..], &shows].concat(), "no bearer token"),
    ] {
        let refused = lock("key", &options);
        assert_eq!(refused.code, 69, "{options:?}: {refused:?}");
        assert!(refused.stderr.contains(says), "{options:?}: {refused:?}");
    }
    for (options, says) in [
        (["--cert-file", &cert], "--key-file"),
        (["--key-file", &key], "--cert-file"),
        (["--token-file", "/nowhere"], "/nowhere"),
    ] {
        let refused = lock("key", &options);
        assert_eq!(refused.code, 2, "{options:?}: {refused:?}");
        assert!(refused.stderr.contains(says), "{options:?}: {refused:?}");
    }
}

/// SIGHUP ended it once, and its locks with it.
#[tokio::test]
async fn settings_are_read_again_at_sighup() {
    let servers = founded().await;
    let hex = |token: &str| {
        token_digest(token)
            .map(|byte| format!("{byte:02x}"))
            .concat()
    };
    let principal =
        |digest: &str| format!("[principals.worker]\nsha256 = \"{digest}\"\nacquire = [\"*\"]\n");
    let (former, next) = (hex(TOKEN), hex("another-token"));
    let coordinator = Coordinator::start(&servers, &principal(&former));
    let directory = tempfile::tempdir().unwrap();
    let code = |token: &str| {
        let path = directory.path().join("token");
        fs::write(&path, token).unwrap();
        let path = path.to_str().unwrap();
        let over = ["--coordinator", &*coordinator.url, "--token-file", path];
        let once = ["--wait", "0s", "--", "true"];
        ringfence(&[&["lock", "key"], &over[..], &once].concat()).code
    };
    assert_eq!((code(TOKEN), code("another-token")), (0, 69));
    // Of no use: the former go on.
    coordinator.reload(&former, "not-a-digest");
    coordinator.reload("not-a-digest", &next);
    eventually("the new token counts", async || code("another-token") == 0).await;
    assert_eq!(code(TOKEN), 69);
}

#[tokio::test]
async fn the_log_is_as_its_settings_say_and_changes_at_sighup() {
    let servers = founded().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let settings = "[log]\nlevel = \"warn\"\nformat = \"json\"\n";
    let coordinator = Coordinator::start_logged(&servers, settings, &path);
    let lines = || fs::read_to_string(&path).unwrap();
    coordinator.reload("\"warn\"", "\"info\"");
    eventually("it says so", async || lines().contains("SIGHUP")).await;
    let json = lines();
    for line in json.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(
            line["level"].is_string() && line["message"].is_string(),
            "{line}"
        );
    }
    let weighed = json.matches("\"level\":\"INFO\"").count();
    assert_eq!(weighed, 1, "before, only warnings counted: {json}");
    coordinator.reload("\"json\"", "\"text\"");
    let text = || lines().split_off(json.len());
    eventually("it says so", async || text().contains("SIGHUP")).await;
    assert!(text().contains(" INFO "), "{}", text());
}

#[tokio::test]
async fn who_released_a_lock_by_force_and_who_was_refused_is_in_the_log() {
    let servers = founded().await;
    let hex = |token: &str| {
        token_digest(token)
            .map(|byte| format!("{byte:02x}"))
            .concat()
    };
    let principals = format!(
        "[principals.operator]\nsha256 = \"{}\"\nread = [\"*\"]\nforce_release = [\"*\"]\n\
         [principals.reader]\nsha256 = \"{}\"\nread = [\"*\"]\n",
        hex(TOKEN),
        hex("reader-token")
    );
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let coordinator = Coordinator::start_logged(&servers, &principals, &path("log"));
    let client = servers.client().await;
    let held = client.lock("payroll").acquire().await.unwrap();
    let release = |token: &str| {
        fs::write(path("token"), token).unwrap();
        let token = path("token").to_str().unwrap().to_owned();
        let over = ["--coordinator", &*coordinator.url, "--token-file", &token];
        let release = ["locks", "release", "payroll", "--reason", "it hangs"];
        ringfence(&[&release[..], &over].concat()).code
    };
    assert_ne!(release("reader-token"), 0);
    assert_ne!(release("no-token"), 0);
    assert_eq!(release(TOKEN), 0);
    drop(held);
    let audit = || {
        let log = fs::read_to_string(path("log")).unwrap();
        let lines = log.lines().filter(|line| line.contains("ringfence::audit"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let says = |parts: &[&str]| {
        let lines = audit();
        let found = lines
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "{parts:?}: {lines:#?}");
    };
    says(&[
        "principal=\"reader\"",
        "address=127.0.0.1",
        "principals.reader.force_release does not include",
    ]);
    says(&["address=127.0.0.1", "the bearer token is not known"]);
    says(&[
        "principal=\"operator\"",
        "address=127.0.0.1",
        "call=\"ForceRelease\"",
        "of=\"default/payroll\"",
        "outcome=\"done\"",
    ]);
}

#[tokio::test]
async fn what_is_at_the_address_instead_of_a_coordinator_is_named() {
    let secured = Secured::default();
    let servers = founded().await;
    let [cert, key] = ["server.pem", "server.key"].map(|name| secured.path(name));
    let with_tls = format!("[tls]\ncert = {cert:?}\nkey = {key:?}");
    let monitor = free_port();
    let plain = Coordinator::start(&servers, &format!("monitor = \"127.0.0.1:{monitor}\""));
    let with_tls = Coordinator::start(&servers, &with_tls);
    for (address, says) in [
        (
            servers.urls()[0].replace("redis:", "http:"),
            "a Redis server is there",
        ),
        (
            format!("127.0.0.1:{monitor}"),
            "there is no gRPC, as at the address in `monitor`",
        ),
        (with_tls.url.clone(), "its URL begins with https://"),
        (
            plain.url.replace("http:", "https:"),
            "its URL begins with http://",
        ),
    ] {
        let once = [
            "lock",
            "key",
            "--coordinator",
            &address,
            "--wait",
            "0s",
            "--",
            "true",
        ];
        let refused = ringfence(&once);
        assert_eq!(refused.code, 69, "{refused:?}");
        assert!(refused.stderr.contains(says), "{address}: {refused:?}");
    }
}
