//! Files of any content: each is read, or refused with short reasons that name the settings.

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::select,
};
use ringfence_test_support::{damaged, damages};

use super::*;

/// The most bytes of a reason.
const REASON_BYTES_MAX: usize = 600;

const SETTINGS: [&str; 31] = [
    "listen",
    "monitor",
    "insecure",
    "grace",
    "prefix",
    "handle_secret",
    "handle_secret_file",
    "shards",
    "shards.a",
    "shards.a.url",
    "shards.a.url_file",
    "topology.url",
    "topology.url_file",
    "shards.'b.c'.url",
    "tls",
    "tls.cert",
    "tls.client_ca",
    "limits",
    "limits.streams",
    "limits.rate",
    "principals",
    "principals.p",
    "principals.p.sha256",
    "principals.p.certificate",
    "principals.p.acquire",
    "principals.p.admin",
    "principals.'x.y'.sha256",
    "shards.a.weight",
    "limits.conections",
    "secret",
    "tls.ciphers.first",
];

/// The settings above that there are.
const KNOWN: usize = 27;

const VALUES: [&str; 22] = [
    "0",
    "7",
    "-1",
    "1.5",
    "true",
    "1979-05-27",
    "\"\"",
    "\"10s\"",
    "\"127.0.0.1:1\"",
    "\"[::]:1\"",
    "\"redis://user:pAssw0rd@127.0.0.1\"",
    "\"http://user:pAssw0rd@127.0.0.1\"",
    "\"/nowhere\"",
    "\"*\"",
    "\"default/\\u0000é\"",
    "\"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\"",
    "[]",
    "[\"*\", \"a/b\", \"*\"]",
    "[1, [2], {}]",
    "{}",
    "{ a = 1 }",
    "{ url = [\"redis://127.0.0.1\"] }",
];

/// Loads `file`. Returns the settings, if they can be used.
fn check(file: &str) -> Result<Option<Config>, TestCaseError> {
    match load(file, &[]) {
        Ok(config) => {
            let again = load(&config.show(false), &[]);
            prop_assert!(again.as_ref() == Ok(&config), "{}", config.show(false));
            Ok(Some(config))
        }
        Err(ConfigError { problems }) => {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(problem.len() <= REASON_BYTES_MAX, "{problem}");
                // Where a URL is to be, or in what is no TOML.
                let has_secrets = ["shards", "topology", "TOML"];
                let has_secrets = has_secrets.iter().any(|begin| problem.starts_with(begin));
                prop_assert!(!(has_secrets && problem.contains("assw0rd")), "{problem}");
            }
            Ok(None)
        }
    }
}

fn values() -> impl Strategy<Value = String> {
    let long = "[a-z]{2000}".prop_map(|text| format!("\"{text}\""));
    prop_oneof![9 => select(&VALUES[..]).prop_map(str::to_owned), 1 => long]
}

proptest! {
    #[test]
    fn no_setting_is_passed_over(settings in btree_map(0..SETTINGS.len(), values(), 0..6), shard: bool) {
        let lines = settings.iter().map(|(&index, value)| format!("{} = {value}\n", SETTINGS[index]));
        let file: String = lines.collect();
        let file = match shard {
            true => format!("{file}shards.z.url = \"redis://127.0.0.1\"\n"),
            false => file,
        };
        let Some(config) = check(&file)? else {
            return Ok(());
        };
        for (&index, value) in &settings {
            let setting = SETTINGS[index];
            prop_assert!(index < KNOWN, "{setting} is no setting:\n{file}");
            let is_section = ["tls", "limits", "principals"].contains(&setting);
            prop_assert!(!is_section || value == "{}", "{setting} has no value:\n{file}");
        }
        prop_assert!(!config.shards.is_empty(), "no shard:\n{file}");
    }

    #[test]
    fn damaged_files_are_read_or_refused(damages in damages(), text: String, bytes in vec(any::<u8>(), 0..40)) {
        let example = Config::example();
        let example = example.split("[tls]").next().unwrap();
        let example = example.replace(":password@", ":pAssw0rd@");
        check(&String::from_utf8_lossy(&damaged(example.as_bytes(), &damages)))?;
        check(&text)?;
        check(&String::from_utf8_lossy(&bytes))?;
    }
}
