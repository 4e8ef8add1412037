//! Runs the binary.

use std::process::Command;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `ringfence` with `args`, and nothing of ours in its environment.
pub(crate) fn ringfence(args: &[&str]) -> Output {
    ringfence_with(args, &[])
}

/// Runs `ringfence` with `args` in `environment`.
pub(crate) fn ringfence_with(args: &[&str], environment: &[(&str, &str)]) -> Output {
    output(command(args).envs(environment.iter().copied()))
}

/// Runs `command`.
pub(crate) fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    Output {
        code: output.status.code().expect("it ended by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// `ringfence` with `args`, to be started.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
    command
        .args(args)
        .env_remove("RINGFENCE_REDIS")
        .env_remove("RINGFENCE_TOPOLOGY")
        .env_remove("RUST_LOG");
    command
}
