//! The command lines in examples/jobs.

use std::{fs, path::Path};

use ringfence_test_support::Servers;

use crate::binary::{command, output, ringfence};

/// The arguments of `ringfence` in the line of `file` that has it.
fn arguments(file: &str) -> Vec<String> {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/jobs");
    let text = fs::read_to_string(jobs.join(file)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut found = lines.filter_map(|line| line.split_once("ringfence lock "));
    let (_, rest) = found.next_back().unwrap();
    let words = format!("lock {rest}").replace("/opt/report --all", "/bin/echo reported");
    let words = words.replace("--hold-at-least 5m", "--hold-at-least 100ms");
    words.split(' ').map(str::to_owned).collect()
}

#[tokio::test]
async fn jobs_run_on_one_host_and_are_skipped_on_others() {
    let servers = Servers::spawn(1).await;
    let url = &servers.urls()[0];
    let founded = ringfence(&["ring", "init", "--servers-are-new", "--redis", url]);
    assert_eq!(founded.code, 0, "{founded:?}");
    let list = tempfile::NamedTempFile::new().unwrap();
    fs::write(list.path(), url).unwrap();
    let run = |file| {
        let words = arguments(file);
        let list = list.path().to_str().unwrap();
        let words = words.iter().map(|word| match &**word {
            "/etc/ringfence/servers" => list,
            word => word,
        });
        let mut command = command(&words.collect::<Vec<_>>());
        if file == "crontab" {
            command.env("RINGFENCE_REDIS", url);
        }
        output(&mut command)
    };
    for file in ["crontab", "nightly-report.service"] {
        let ran = run(file);
        assert_eq!(
            (ran.code, &*ran.stdout),
            (0, "reported\n"),
            "{file}: {ran:?}"
        );
    }
    let client = servers.client().await;
    let _running = client.lock("nightly-report").acquire().await.unwrap();
    for file in ["crontab", "nightly-report.service"] {
        let ran = run(file);
        let said = (&*ran.stdout, &*ran.stderr);
        assert_eq!((ran.code, said), (0, ("", "")), "{file}: {ran:?}");
    }
}
