//! The binary that has the demo alone. The tests of the demo itself run the command `ringfence`: cli/tests/demo.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

use std::process::Command;

/// Exit code, stdout and stderr of the binary with `args`.
fn run(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence-demo"));
    let output = command.args(args).env_remove("RUST_LOG").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn the_demo_runs() {
    let (code, shown, said) = run(&["demo", "--seed", "7", "--for", "1s"]);
    assert_eq!((code, &*said), (0, ""), "{shown}");
    assert!(
        shown.contains("audit: every coin is accounted for"),
        "{shown}"
    );
}

#[test]
fn another_subcommand_is_answered_by_one_line_with_the_way_to_the_whole_command() {
    for args in [&["lock", "key", "--", "true"][..], &["ring", "show"]] {
        let (code, shown, said) = run(args);
        assert_eq!((code, &*shown), (2, ""), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let whole = format!("cargo run --release -p ringfence-cli -- {}", args[0]);
        for words in ["the demo alone", &whole, "cargo install --path cli"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}

#[test]
fn a_refused_command_line_shows_no_password() {
    let (code, _, said) = run(&["demo", "redis://coin:s3cret@db"]);
    assert_eq!(code, 2, "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}
