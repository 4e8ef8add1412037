//! Tells the binary which commit it is built from: `RINGFENCE_COMMIT`, or that of the checkout.

use std::{env, process::Command};

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-env-changed=RINGFENCE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let named = env::var("RINGFENCE_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    let commit = named.or_else(|| {
        // Changes with every commit and checkout.
        let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
        println!("cargo::rerun-if-changed={log}");
        git(&["rev-parse", "--short=12", "HEAD"])
    });
    let built_from = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=RINGFENCE_BUILT_FROM={built_from}");
}
