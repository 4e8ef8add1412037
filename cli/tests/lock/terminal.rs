//! At a terminal: which process reads the input, and gets Ctrl-C.

use std::{process::Command, time::Duration};

use ringfence_test_support::eventually;
use tokio::io::AsyncWriteExt;

use super::{Running, Stage};
use crate::binary::Output;

const LEASE: Duration = Duration::from_secs(30);

impl Stage {
    /// Runs `script` in a shell at a terminal of its own, where `lock` stands for `ringfence lock
    /// key`, and types each of `typed` once its file is there.
    async fn at_terminal(&self, shell: &str, script: &str, typed: &[(&str, &[u8])]) -> Output {
        let lock = format!(
            "'{}' lock key --redis-file {}",
            env!("CARGO_BIN_EXE_ringfence"),
            self.file()
        );
        let script = script.replace("lock", &lock);
        std::fs::write(self.path("script"), script).unwrap();
        let mut command = Command::new("script");
        command
            .args(["-qec", &format!("{shell} ./script"), "/dev/null"])
            .current_dir(self.dir.path());
        let mut running = Running::start(command);
        let mut keyboard = running.0.stdin.take().unwrap();
        for (file, keys) in typed {
            self.line_of(file).await;
            keyboard.write_all(keys).await.unwrap();
        }
        let ran = running.output().await;
        drop(keyboard);
        ran
    }
}

#[tokio::test]
async fn the_command_has_the_foreground_and_gives_it_back() {
    let stage = Stage::set(1, LEASE).await;
    let script = "
        lock -- sh -c 'echo > child; read line; echo child read $line'
        echo > shell; read line; echo shell read $line
    ";
    let typed = [("child", &b"one\n"[..]), ("shell", b"two\n")];
    let ran = stage.at_terminal("sh", script, &typed).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for expected in ["child read one", "shell read two"] {
        assert!(ran.stdout.contains(expected), "{ran:?}");
    }
}

#[tokio::test]
async fn ctrl_c_is_the_commands() {
    let stage = Stage::set(1, LEASE).await;
    let script = "lock -- sh -c 'echo > up; exec sleep 1000'; echo code $?";
    let ran = stage.at_terminal("sh", script, &[("up", b"\x03")]).await;
    assert!(ran.stdout.contains("code 130"), "{ran:?}");
    assert!(stage.is_free("key"));
}

/// Without a shell that has jobs, nobody could let it go on.
#[tokio::test]
async fn ctrl_z_stops_nothing_where_no_shell_has_jobs() {
    let stage = Stage::set(1, LEASE).await;
    let script = "exec lock -- sh -c 'echo > up; read line; echo read $line'";
    let typed = [("up", &b"\x1a"[..]), ("up", b"on\n")];
    let ran = stage.at_terminal("exec sh", script, &typed).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("read on"), "{ran:?}");
}

#[tokio::test]
async fn ctrl_z_stops_the_job_and_fg_lets_it_go_on() {
    let stage = Stage::set(1, LEASE).await;
    let script = "
        set -m
        lock -- sh -c 'echo > up; read line; echo read $line; exit 3'
        echo stopped $?; echo > stopped
        fg
        echo code $?
    ";
    let typed = [("up", &b"\x1a"[..]), ("stopped", b"on\n")];
    let ran = stage.at_terminal("bash", script, &typed).await;
    assert!(ran.stdout.contains("stopped 148"), "SIGTSTP is 20: {ran:?}");
    assert!(ran.stdout.contains("read on"), "{ran:?}");
    assert!(ran.stdout.contains("code 3"), "{ran:?}");
}

/// A command that is stopped is not renewed, so it must not go on later.
#[tokio::test]
async fn a_job_that_is_stopped_for_too_long_is_ended() {
    let stage = Stage::set(1, Duration::from_secs(4)).await;
    let script = "
        set -m
        lock -- sh -c 'cut -d\" \" -f4 /proc/$$/stat > up; read line; touch went-on'
        echo > stopped
        read line
        fg
        echo code $?
    ";
    let typed = [("up", &b"\x1a"[..])];
    let free = async {
        stage.line_of("stopped").await;
        eventually("the lock ended", || async { stage.is_free("key") }).await;
        std::fs::write(stage.path("free"), "\n").unwrap();
    };
    let typed = [typed[0], ("free", &b"\n"[..])];
    let (ran, ()) = tokio::join!(stage.at_terminal("bash", script, &typed), free);
    assert!(ran.stdout.contains("code 80"), "{ran:?}");
    assert!(!stage.path("went-on").exists());
}
