//! `--version`, `ringfence completions` and `ringfence man`.

use std::fs;

use crate::binary::ringfence;

#[test]
fn the_version_names_the_commit() {
    let ran = ringfence(&["--version"]);
    let version = ran.stdout.strip_prefix("ringfence ").unwrap();
    let (number, commit) = version.trim_end().split_once(' ').unwrap();
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    let commit = commit.strip_prefix('(').unwrap().strip_suffix(')').unwrap();
    assert!(commit.len() >= 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = ringfence(&["completions", shell]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("servers-are-new"), "{shell}");
    }
    assert_eq!(ringfence(&["completions", "dos"]).code, 2);
}

#[test]
fn every_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    let ran = ringfence(&["man", pages.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let lock = fs::read_to_string(pages.join("ringfence-lock.1")).unwrap();
    assert!(lock.contains(r"\-\-wait"), "{lock}");
    for page in ["ringfence.1", "ringfence-ring-add.1", "ringfence-serve.1"] {
        assert!(pages.join(page).exists(), "{page}");
    }
    let hidden = pages.join("ringfence-guardian.1");
    assert!(!hidden.exists(), "{hidden:?}");
}
