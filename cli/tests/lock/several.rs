//! Several locks at once.

use std::time::Duration;

use super::{Stage, our_line};
use crate::binary::{self, Output};

const LEASE: Duration = Duration::from_secs(30);

fn run(stage: &Stage, words: &[&str]) -> Output {
    let file = stage.file();
    let mut command = binary::command(&["lock", "--redis-file", &file]);
    command.args(words).current_dir(stage.dir.path());
    binary::output(&mut command)
}

#[tokio::test]
async fn a_command_runs_under_several_keys_or_not_at_all() {
    let stage = Stage::set(3, LEASE).await;
    let client = stage.servers.client().await;
    let keys = ["--key", "a", "--key", "b", "--key", "c"];
    let show = "echo $RINGFENCE_KEY $RINGFENCE_KEY_2 $RINGFENCE_KEY_3 > keys; \
                echo $RINGFENCE_TOKEN $RINGFENCE_TOKEN_2 $RINGFENCE_TOKEN_3 > tokens";
    let ran = run(&stage, &[&keys[..], &["--", "sh", "-c", show]].concat());
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:?}");
    assert_eq!(stage.written("keys"), "a b c\n");
    let tokens = stage.written("tokens");
    let tokens = tokens.split_whitespace().map(|token| token.parse::<u64>());
    assert_eq!(tokens.filter(|token| token.is_ok()).count(), 3);

    for key in ["a", "b", "c"] {
        let holder = client.lock(key).label("payroll").acquire().await.unwrap();
        let words = [&keys[..], &["--wait", "300ms", "--", "touch", "ran"]].concat();
        let refused = run(&stage, &words);
        assert_eq!(refused.code, 75, "{refused:?}");
        let line = our_line(&refused);
        let expected = format!("not acquired within 300ms: {key}: held by payroll for at most ");
        assert!(line.starts_with(&expected), "{line}");
        holder.release().await;
        assert!(["a", "b", "c"].iter().all(|key| stage.is_free(key)));
    }
    assert!(!stage.path("ran").exists());
    client.close().await;
}

#[tokio::test]
async fn keys_without_a_command_print_their_tokens() {
    let stage = Stage::set(2, LEASE).await;
    let ran = run(&stage, &["--until-eof", "--key", "a", "--key", "b"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 2), "{ran:?}");
    let none = run(&stage, &["--wait", "0s"]);
    assert_eq!(none.code, 2, "{none:?}");
    let empty = run(&stage, &["--key", "a", "--key", "", "--", "true"]);
    assert_eq!(our_line(&empty), "KEY has 0 bytes, must have 1 to 512");
}
