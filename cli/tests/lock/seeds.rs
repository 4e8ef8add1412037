//! Where the servers are named: the command line, or else its file, or else the environment.

use std::{fs, time::Duration};

use ringfence_test_support::Servers;

use super::{Stage, our_line};
use crate::binary::ringfence_with;

const LEASE: Duration = Duration::from_secs(30);
/// Nobody is there.
const WRONG: &str = "redis://127.0.0.1:1";

#[tokio::test]
async fn the_environment_is_asked_last() {
    let stage = Stage::set(2, LEASE).await;
    let urls = stage.servers.urls();
    let named = format!("\n# ours\n  {}\n\n{}\n", urls[0], urls[1]);
    fs::write(stage.path("named"), named).unwrap();
    let named = stage.path("named").display().to_string();

    let run = |options: &[&str], variable: &str| {
        let command: [&[&str]; 3] = [&["lock", "key", "--wait", "0s"], options, &["--", "true"]];
        ringfence_with(&command.concat(), &[("RINGFENCE_REDIS", variable)])
    };
    for variable in [
        urls.join(","),
        urls.join(" "),
        format!(" {},\n", urls.join(" , ")),
    ] {
        let ran = run(&[], &variable);
        assert_eq!(ran.code, 0, "{variable:?} {ran:?}");
    }
    assert_eq!(run(&[], WRONG).code, 69);
    assert_eq!(run(&[], " , ").code, 2);
    assert_eq!(run(&["--redis", &urls[0]], WRONG).code, 0);
    assert_eq!(
        run(&["--redis", &urls[0], "--redis", &urls[1]], WRONG).code,
        0
    );
    assert_eq!(run(&["--redis", &urls.join(",")], WRONG).code, 0);
    assert_eq!(run(&["--redis-file", &named], WRONG).code, 0);
}

/// Which of them is meant?
#[tokio::test]
async fn servers_and_a_file_of_servers_exclude_each_other() {
    let stage = Stage::set(1, LEASE).await;
    let (url, file) = (stage.servers.urls()[0].clone(), stage.file());
    for command in [&["lock", "key"][..], &["ring", "init"], &["ring", "show"]] {
        let both = ["--redis", &url, "--redis-file", &file];
        let refused = ringfence_with(&[command, &both].concat(), &[]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("--redis-file"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_file_without_servers_is_no_file_of_servers() {
    let stage = Stage::set(1, LEASE).await;
    fs::write(stage.path("empty"), "# none\n\n").unwrap();
    let url = stage.servers.urls()[0].clone();
    for (name, problem) in [
        ("empty", "has no URL in it"),
        ("no-such-file", "cannot read"),
    ] {
        let file = stage.path(name).display().to_string();
        let args = ["lock", "key", "--redis-file", &file, "--", "true"];
        let refused = ringfence_with(&args, &[("RINGFENCE_REDIS", &url)]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(super::our_line(&refused).contains(problem), "{refused:?}");
    }
}

/// Two shells that name different servers would hold the same lock.
#[tokio::test]
async fn a_lock_founds_no_topology_and_says_the_command_that_does() {
    let servers = Servers::spawn(2).await;
    let urls = servers.urls();
    let lock = |url: &str, more: &[&str]| {
        let args = ["lock", "key", "--wait", "0s", "--redis", url];
        ringfence_with(&[&args, more, &["true"]].concat(), &[])
    };
    for (index, url) in urls.iter().enumerate() {
        let refused = lock(url, &[]);
        assert_eq!(refused.code, 69, "{refused:?}");
        let command = format!("to found one, once: ringfence ring init --redis {url}/0 (");
        let line = our_line(&refused);
        assert!(line.contains(&command), "{line}");
        let keys: u64 = servers.ask(index, &["DBSIZE"]).await;
        assert_eq!(keys, 0);
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers").display().to_string();
    fs::write(&file, urls.join("\n")).unwrap();
    let refused = ringfence_with(&["lock", "key", "--redis-file", &file, "true"], &[]);
    let command = format!("ringfence ring init --redis-file {file} (");
    assert!(our_line(&refused).contains(&command), "{refused:?}");

    let founding = ["--found", "--servers-are-new"];
    let founded = lock(&urls.join(","), &founding);
    assert_eq!((founded.code, &*founded.stderr), (0, ""), "{founded:?}");
    let plain = lock(&urls[1], &[]);
    assert_eq!((plain.code, &*plain.stderr), (0, ""), "{plain:?}");
    assert_eq!(lock(&urls[1], &founding[1..]).code, 2);
}

#[tokio::test]
async fn a_server_that_is_not_a_member_is_an_error() {
    let mut stage = Stage::set(2, Duration::from_secs(5)).await;
    let spare = Servers::spawn(1).await;
    let (urls, other) = (stage.servers.urls(), &spare.urls()[0]);
    let lock = |named: &[&str]| {
        let args = ["lock", "key", "--wait", "0s", "--redis", &named.join(",")];
        ringfence_with(&[&args[..], &["true"]].concat(), &[])
    };
    for named in [[&urls[0], other], [other, &urls[1]]] {
        let refused = lock(&named.map(String::as_str));
        assert_eq!(refused.code, 69, "{refused:?}");
        let expected = format!("{other}/0 is not a member of topology ");
        assert!(our_line(&refused).contains(&expected), "{refused:?}");
    }
    let keys: u64 = spare.ask(0, &["DBSIZE"]).await;
    assert_eq!(keys, 0, "it is not used");

    // Another name of a member, which came back empty, is no other server.
    let alias = urls[1].replace("127.0.0.1", "localhost");
    assert_eq!(lock(&[&urls[0], &alias]).code, 0);
    stage.servers.servers[1].restart().await.unwrap();
    let named = lock(&[&urls[0], &alias]);
    assert!(!named.stderr.contains("not a member"), "{named:?}");
}

#[tokio::test]
#[ignore = "long: a resize"]
async fn a_server_that_was_a_member_leads_to_the_others() {
    let stage = Stage::set(2, LEASE).await;
    let urls = stage.servers.urls();
    let removed = ringfence_with(&["ring", "remove", "b", "--redis", &urls[0]], &[]);
    assert_eq!(removed.code, 0, "{removed:?}");
    let named = urls.join(",");
    let named = ["lock", "key", "--redis", &named, "true"];
    let former = ringfence_with(&named, &[]);
    assert!(!former.stderr.contains("not a member"), "{former:?}");
}

#[tokio::test]
async fn a_new_server_is_said_to_be_new() {
    let servers = Servers::spawn(1).await;
    let url = &servers.urls()[0];
    let found = ["ring", "init", "--max-lease", "3s", "--redis", url];
    assert_eq!(ringfence_with(&found, &[]).code, 0);
    let lock = |options: &[&str]| {
        let args = ["lock", "key", "--redis", url];
        ringfence_with(&[&args, options, &["true"]].concat(), &[])
    };
    let refused = lock(&["--wait", "0s"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    let waited = lock(&[]);
    assert_eq!(waited.code, 0, "{waited:?}");
    for told in [refused, waited] {
        let line = our_line(&told);
        assert!(line.contains("new server: shard a"), "{told:?}");
        assert!(line.contains("--servers-are-new"), "{told:?}");
        assert!(!line.contains("is recovering"), "{told:?}");
    }
}

#[test]
fn an_error_says_in_which_line_of_which_file_its_server_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers");
    let path = file.to_str().unwrap();
    for (url, code, told) in [
        (
            "redis://coin:s3cret@127.0.0.1:1",
            1,
            "redis://127.0.0.1:1/0",
        ),
        ("http://coin:s3cret@127.0.0.1:1", 2, "http://127.0.0.1:1"),
        (
            "redis://127.0.0.1:1?pasword=s3cret",
            2,
            "redis://127.0.0.1:1",
        ),
    ] {
        fs::write(&file, format!("# ours\n\n{url}\n")).unwrap();
        let failed = ringfence_with(&["ring", "show", "--redis-file", path], &[]);
        assert_eq!(failed.code, code, "{failed:?}");
        let place = format!("{told} ({path}, line 3)");
        assert_eq!(failed.stderr.matches(&place).count(), 1, "{failed:?}");
        assert!(!failed.stderr.contains("s3cret"), "{failed:?}");
        let env = [("RINGFENCE_REDIS", url)];
        let failed = ringfence_with(&["ring", "show"], &env);
        let place = format!("{told} (in RINGFENCE_REDIS)");
        assert!(failed.stderr.contains(&place), "{failed:?}");
    }
}
