//! Each bench runs every contender, in some seconds: `--smoke`. Nothing is said about speed.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    process::Command,
};

/// Runs `bench`, which prints its table and leaves no file.
fn smoke(bench: &str) {
    smoke_of(bench, &[]);
}

/// The same, with `options`.
fn smoke_of(bench: &str, options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    // Databases run as nobody if this runs as root.
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence-bench"));
    command.args([bench, "--smoke"]).args(options);
    command.current_dir(dir.path());
    let output = command.env("TMPDIR", dir.path()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    print!("{shown}");
    assert!(output.status.success(), "{bench}: {said}");
    assert!(shown.lines().count() > 4, "{bench}: {shown}");
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "{bench}: {left:?}");
}

#[test]
fn backends() {
    smoke("backends");
}

#[test]
fn a_crowd() {
    smoke_of("backends", &["--crowd"]);
}

#[test]
fn hot_account() {
    smoke("hot-account");
}

#[test]
fn hot_key() {
    smoke("hot-key");
}

#[test]
fn isolation() {
    smoke("isolation");
}

#[test]
fn kinds() {
    smoke("kinds");
}

#[test]
fn replicated() {
    smoke("replicated");
}

#[test]
fn resize() {
    smoke("resize");
}

#[test]
fn ring() {
    smoke("ring");
}

#[test]
fn service() {
    smoke("service");
}

#[test]
fn uncontended() {
    smoke("uncontended");
}
