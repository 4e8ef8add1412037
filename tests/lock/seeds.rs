//! Where the servers are named: the command line, or else its file, or else the environment.

use std::{fs, time::Duration};

use crate::{Stage, binary::ringfence_with};

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
    assert_eq!(run(&["--redis", &urls[0], &urls[1]], WRONG).code, 0);
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
        assert!(crate::our_line(&refused).contains(problem), "{refused:?}");
    }
}
