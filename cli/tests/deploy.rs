//! The files in deploy/, the manual and the command agree.

use std::{fs, path::Path};

use ringfence_test_support::Secured;

use crate::binary::ringfence;

const UNIT: &str = include_str!("../../deploy/systemd/ringfence.service");
const CREDENTIALS: &str = "/run/credentials/ringfence.service/";

#[test]
fn all_of_them_have_the_same_paths() {
    let started = UNIT
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let words: Vec<_> = started.unwrap().split(' ').collect();
    let [program, "serve", "-c", settings] = words[..] else {
        panic!("{words:?}");
    };
    let pages = tempfile::tempdir().unwrap();
    let ran = ringfence(&["man", pages.path().to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let page = |name| fs::read_to_string(pages.path().join(name)).unwrap();
    // `man` breaks no line within it.
    assert!(page("ringfence-serve.1").contains(settings));
    let documented = UNIT
        .lines()
        .find_map(|line| line.strip_prefix("Documentation=man:"));
    let (name, section) = documented
        .unwrap()
        .trim_end_matches(')')
        .split_once('(')
        .unwrap();
    page(&format!("{name}.{section}"));
    let command = format!("{:?}", &words[1..]);
    let directory = Path::new(settings).parent().unwrap().to_str().unwrap();
    for (file, text, parts) in [
        (
            "the manual",
            include_str!("../../docs/operate/coordinator.md"),
            [&*words.join(" "), program],
        ),
        (
            "the image",
            include_str!("../../deploy/docker/Dockerfile"),
            [
                &format!("ENTRYPOINT [{program:?}]"),
                &format!("CMD {command}"),
            ],
        ),
        (
            "the chart",
            include_str!("../../deploy/kubernetes/templates/ringfence.yaml"),
            [&format!("args: {command}"), ""],
        ),
        (
            "the chart's pods",
            include_str!("../../deploy/kubernetes/templates/_pod.tpl"),
            [&format!("mountPath: {directory},"), ""],
        ),
    ] {
        for part in parts {
            assert!(text.contains(part), "{file}: {part}");
        }
    }
}

#[test]
fn the_settings_that_the_unit_tells_have_its_credentials() {
    let secured = Secured::default();
    let own = tempfile::tempdir().unwrap();
    for credential in UNIT
        .lines()
        .filter_map(|line| line.strip_prefix("LoadCredential="))
    {
        let (name, file) = credential.split_once(':').unwrap();
        let content = match file.strip_prefix("/etc/ringfence/").unwrap() {
            "handle-secret" => "0".repeat(32),
            "shard-a" => "redis://user:password@127.0.0.1".to_owned(),
            key => fs::read_to_string(secured.path(key)).unwrap(),
        };
        fs::write(own.path().join(name), content).unwrap();
        assert!(UNIT.contains(&format!("{CREDENTIALS}{name}\"")), "{name}");
    }
    let settings: Vec<_> = UNIT
        .lines()
        .filter_map(|line| line.strip_prefix("#   "))
        .collect();
    let own = |name: &str| own.path().join(name).to_str().unwrap().to_owned();
    let settings = settings.join("\n").replace(CREDENTIALS, &own(""));
    let settings = settings.replace("/etc/ringfence/server.pem", &secured.path("server.pem"));
    fs::write(own("ringfence.toml"), settings).unwrap();
    let ran = ringfence(&["config", "show", "--secrets", "-c", &own("ringfence.toml")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for secret in ["0".repeat(32), "user:password".into(), own("server.key")] {
        assert!(ran.stdout.contains(&secret), "{secret}: {ran:?}");
    }
}
