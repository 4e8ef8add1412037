mod bytes;

use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use ringfence_test_support::Secured;
use tempfile::NamedTempFile;

use super::*;

/// The settings in `file`, with `variables` of the environment.
fn load(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load_with(file, variables, &Overrides::default())
}

fn load_with(
    file: &str,
    variables: &[(&str, &str)],
    options: &Overrides,
) -> Result<Config, ConfigError> {
    let mut written = NamedTempFile::new().unwrap();
    written.write_all(file.as_bytes()).unwrap();
    let variables = variables.iter();
    let variables = Variables::new(variables.map(|(name, value)| (name.into(), value.into())));
    Config::from_sources(Some(written.path()), &variables, options)
}

const SHARD: &str = "shards.a.url = \"redis://127.0.0.1\"\n";

#[test]
fn every_setting_but_the_shards_has_a_default() {
    let config = load(SHARD, &[]).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7420");
    assert_eq!(config.grace, Duration::from_secs(10));
    assert_eq!(config.prefix, "ringfence");
    assert_eq!(config.limits, Limits::default());
    assert!(!config.insecure && config.shards.len() == 1);
}

#[test]
fn the_environment_overrides_the_file() {
    let file = format!("{SHARD}grace = \"1s\"\nlimits.streams = 7\n");
    let config = load(
        &file,
        &[
            ("RINGFENCE__LIMITS__STREAMS", "8"),
            ("RINGFENCE__SHARDS__B__URL", "redis://127.0.0.2"),
            ("RINGFENCE_REDIS", "redis://of.the.command.line"),
        ],
    )
    .unwrap();
    assert_eq!(
        (config.grace, config.limits.streams),
        (Duration::from_secs(1), 8)
    );
    assert_eq!(config.shards.len(), 2);
}

#[test]
fn all_problems_are_reported_at_once() {
    let file = "
        listen = \"0.0.0.0:1\"
        grace = 5
        prefix = \"a b\"
        limits.streams = 0
        limits.conections = 9
        shards.a.url = \"http://user:s3cret@127.0.0.1\"
        shards.b.url_file = \"/nonexistent\"
        shards.c.weight = 2
        tls.cert = \"/absent\"
        principals.billing.sha256 = \"abc\"
        principals.billing.secret = 1
        principals.billing.acquire = [\"default/\", \"orders\", 7]
        principals.nobody.read = [\"*\"]
        principals.twice.sha256 = [\"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\", 7]
        principals.twice.admin = true
        principals.worker.certificate = \"worker.example\"
        principals.worker.acquire = \"*\"
        principals.double.certificate = \"worker.example\"
    ";
    let problems = load(file, &[]).unwrap_err().problems;
    let all = problems.join("\n");
    for part in [
        "grace is 5",
        "must be a length of time with its unit",
        "prefix is \"a b\"",
        "limits.streams is 0",
        "must be a number of 1 to 100000",
        "limits.conections",
        "shards.a.url: ",
        "shards.b.url_file is \"/nonexistent\", which cannot be read",
        "shards.c must have either url or url_file",
        "shards.c.weight",
        "tls.cert is \"/absent\", which cannot be read",
        "principals.billing.sha256 has \"abc\"",
        "must be 64 hex digits",
        "principals.billing.secret",
        "principals.billing.acquire has \"orders\"",
        "principals.billing.acquire has 7",
        "must be a list of NAMESPACE/NAME",
        "principals.nobody must have sha256 or certificate",
        "principals.twice.sha256 has 7",
        "principals.double has a certificate, so tls.client_ca must be set",
        "principals.double may do nothing, must have acquire",
        "principals.worker has a certificate, so tls.client_ca must be set",
        "principals.worker has the token or the certificate of principals.double",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert_eq!(problems.len(), 19, "{all}");
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn a_public_address_needs_a_word() {
    let file = format!("{SHARD}listen = \"0.0.0.0:1\"\n");
    assert!(load(&file, &[]).is_err());
    assert!(load(&file, &[("RINGFENCE__INSECURE", "true")]).is_ok());
    let digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let variables = [
        ("RINGFENCE__PRINCIPALS__BILLING__SHA256", digest),
        ("RINGFENCE__PRINCIPALS__BILLING__ACQUIRE", "shop/order/"),
    ];
    let Principal { proofs, roles, .. } = &load(&file, &variables).unwrap().principals["billing"];
    assert_eq!(proofs, &[Proof::Token(crate::token_digest("foo"))]);
    assert_eq!(roles.acquire, ["shop/order/".parse().unwrap()]);
    assert!(roles.read.is_empty() && !roles.admin);
}

#[test]
fn secrets_and_proofs_may_be_several() {
    let (new, old) = (
        "0123456789abcdef0123456789abcdef",
        "fedcba9876543210fedcba9876543210",
    );
    let (one, two) = (crate::token_digest("one"), crate::token_digest("two"));
    let hex =
        |digest: &[u8]| -> String { digest.iter().map(|byte| format!("{byte:02x}")).collect() };
    let file = format!(
        "{SHARD}handle_secret = [{new:?}, {old:?}]\n[principals.billing]\nsha256 = [{:?}, {:?}]\nadmin = true\n",
        hex(&one),
        hex(&two)
    );
    let config = load(&file, &[]).unwrap();
    assert_eq!(config.handle_secrets, [new, old]);
    assert_eq!(
        config.principals["billing"].proofs,
        [one, two].map(Proof::Token)
    );
    assert!(load(&config.show(false), &[]).unwrap() == config);
    assert!(!config.show(true).contains(old));
    let mut lines = NamedTempFile::new().unwrap();
    write!(lines, "{new}\n{old}\n").unwrap();
    let file = format!("{SHARD}handle_secret_file = {:?}\n", lines.path());
    assert_eq!(load(&file, &[]).unwrap().handle_secrets, [new, old]);
    for short in [format!("[{new:?}, \"short\"]"), "[]".into(), "7".into()] {
        let refused = load(&format!("{SHARD}handle_secret = {short}\n"), &[]).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("handle_secret must be a text of at least 32"),
            "{refused}"
        );
    }
}

#[test]
fn a_public_address_needs_principals_or_certificates_of_callers() {
    let secured = Secured::default();
    let (cert, key) = (secured.path("server.pem"), secured.path("server.key"));
    let tls = format!("{SHARD}listen = \"0.0.0.0:1\"\ntls.cert = {cert:?}\ntls.key = {key:?}\n");
    let error = load(&tls, &[]).unwrap_err();
    assert!(error.to_string().contains("tls.client_ca"), "{error}");
    let mutual = format!("{tls}tls.client_ca = {:?}\n", secured.path("ca.pem"));
    assert!(load(&mutual, &[]).unwrap().tls.is_some());
}

#[test]
fn the_dashboard_is_served_where_nobody_gets_more_by_it_than_over_grpc() {
    let secured = Secured::default();
    let file = |name| format!("{:?}", secured.path(name));
    let tls = format!(
        "tls.cert = {}\ntls.key = {}\n",
        file("server.pem"),
        file("server.key")
    );
    let mutual = format!("{tls}tls.client_ca = {}\n", file("ca.pem"));
    let digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let token = format!("principals.a.sha256 = \"{digest}\"\nprincipals.a.admin = true\n");
    let certificate =
        format!("{mutual}principals.a.certificate = \"a\"\nprincipals.a.admin = true\n");
    let (local, public) = ("monitor = \"127.0.0.1:1\"\n", "monitor = \"0.0.0.0:1\"\n");
    for (monitor, more, refused) in [
        (local, "", None),
        (public, "", Some("public address")),
        (public, "insecure = true\n", None),
        (local, &*token, None),
        (public, &token, None),
        (local, &mutual, Some("tls.client_ca")),
        (local, &certificate, Some("no principal has a token")),
        (local, &format!("{mutual}{token}"), None),
        (public, &format!("{tls}{token}"), Some("in clear")),
        (public, &format!("{tls}insecure = true\n"), None),
    ] {
        let allowed = load(&format!("{monitor}{more}{SHARD}"), &[]).unwrap();
        match (allowed.allows_dashboard(), refused) {
            (Ok(()), None) => {}
            (Err(reason), Some(part)) if reason.contains(part) => {}
            (allowed, _) => panic!("{monitor}{more}: {allowed:?}"),
        }
    }
}

#[test]
fn certificates_that_cannot_be_used_are_a_problem() {
    let secured = Secured::default();
    let path = |name| format!("{:?}", secured.path(name));
    for (files, problem) in [
        (
            format!("tls.cert = {}", path("server.pem")),
            "tls must have cert and key",
        ),
        (
            format!("tls.client_ca = {}", path("ca.pem")),
            "tls must have cert and key",
        ),
        (
            format!(
                "tls.cert = {}\ntls.key = {}",
                path("server.pem"),
                path("client.key")
            ),
            "tls cannot be used: ",
        ),
        (
            format!(
                "tls.cert = {}\ntls.key = {}",
                path("server.pem"),
                path("ca.pem")
            ),
            "tls cannot be used: ",
        ),
        (
            format!(
                "tls.cert = {}\ntls.key = {}\ntls.client_ca = {}",
                path("server.pem"),
                path("server.key"),
                path("users.acl")
            ),
            "tls cannot be used: ",
        ),
    ] {
        let problems = load(&format!("{SHARD}{files}\n"), &[])
            .unwrap_err()
            .problems;
        assert!(
            problems.len() == 1 && problems[0].contains(problem),
            "{problems:?}"
        );
    }
}

#[test]
fn no_server_is_a_problem() {
    let error = load("", &[]).unwrap_err();
    assert!(error.to_string().starts_with("shards is empty"), "{error}");
}

#[test]
fn a_monitor_on_the_port_of_the_service_is_a_problem() {
    for monitor in ["127.0.0.1:7420", "0.0.0.0:7420"] {
        let file = format!("monitor = \"{monitor}\"\n{SHARD}");
        let error = load(&file, &[]).unwrap_err().to_string();
        assert!(
            error.contains("must have another port than listen"),
            "{error}"
        );
    }
    let file = format!("monitor = \"127.0.0.1:7421\"\n{SHARD}");
    assert!(load(&file, &[]).is_ok());
}

#[test]
fn a_principal_that_may_do_nothing_is_a_problem() {
    let digest = "0".repeat(64);
    let principal = format!("{SHARD}[principals.orders]\nsha256 = \"{digest}\"\n");
    let error = load(&principal, &[]).unwrap_err().to_string();
    assert!(
        error.contains("principals.orders may do nothing"),
        "{error}"
    );
    assert!(load(&format!("{principal}admin = true\n"), &[]).is_ok());
}

#[test]
fn options_override_the_environment() {
    let file = format!("{SHARD}listen = \"127.0.0.1:1\"\n");
    let variables = [("RINGFENCE__LISTEN", "127.0.0.1:2")];
    let options = Overrides {
        listen: Some("127.0.0.1:3".into()),
        insecure: true,
        ..Overrides::default()
    };
    assert_eq!(load(&file, &variables).unwrap().listen.port(), 2);
    let config = load_with(&file, &variables, &options).unwrap();
    assert!(config.listen.port() == 3 && config.insecure);
}

#[test]
fn servers_of_options_replace_shards_and_those_of_the_environment_are_a_default() {
    let servers = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("redis://{name}")).collect()
    };
    let options = |given: &[&str], default: &[&str]| Overrides {
        servers: servers(given),
        default_servers: servers(default),
        ..Overrides::default()
    };
    let urls = |file: &str, options: Overrides| -> Vec<String> {
        let config = load_with(file, &[], &options).unwrap();
        config.shards.into_values().collect()
    };
    assert_eq!(urls(SHARD, options(&["x"], &["y"])), servers(&["x"]));
    assert_eq!(urls("", options(&[], &["y", "z"])), servers(&["y", "z"]));
    let of_file = urls(SHARD, options(&[], &[]));
    assert_eq!(urls(SHARD, options(&[], &["y"])), of_file);
    let wrong = load_with("", &[], &options(&["x:y:z"], &[])).unwrap_err();
    assert!(wrong.to_string().contains("server 1"), "{wrong}");
}

#[test]
fn a_setting_that_is_misspelt_is_told_with_the_right_name() {
    let file = format!("{SHARD}shards.a.ulr = 1\nlimits.stream = 9\nrate = 9\nnonsense = 1\n");
    let variables = [
        ("RINGFENCE_LISTEN", "127.0.0.1:2"),
        ("RINGFENCE_LIMITS__SESSION_LOCKS", "9"),
        ("RINGFENCE_PORT", "tcp://10.0.0.1:7420"), // of Kubernetes
        ("RINGFENCE_REDIS", "redis://127.0.0.1"),
    ];
    let problems = load(&file, &variables).unwrap_err().problems;
    let said = |what: &str| problems.iter().any(|problem| problem.contains(what));
    for what in [
        "is no setting: did you mean limits.streams?",
        "is no setting: did you mean limits.rate?",
        "is no setting: did you mean shards.a.url?",
        "RINGFENCE_LISTEN is not read: RINGFENCE__LISTEN sets listen",
        "RINGFENCE_LIMITS__SESSION_LOCKS is not read: RINGFENCE__LIMITS__SESSION_LOCKS sets limits.session_locks",
    ] {
        assert!(said(what), "{what}: {problems:#?}");
    }
    assert_eq!(problems.len(), 6, "{problems:#?}");
}

#[test]
fn a_text_of_digits_keeps_them_all() {
    let secret = "12345678901234567890123456789012";
    let digest = "1234567890".repeat(7)[..64].to_owned();
    let variables = [
        ("RINGFENCE__HANDLE_SECRET", secret),
        ("RINGFENCE__PREFIX", "1234"),
        (
            "RINGFENCE__SHARDS__1__URL",
            "redis://user:12345@127.0.0.1/7",
        ),
        ("RINGFENCE__PRINCIPALS__2__SHA256", &*digest),
        ("RINGFENCE__PRINCIPALS__2__ADMIN", "true"),
        ("RINGFENCE__INSECURE", "false"),
        ("RINGFENCE__LIMITS__RATE", "9"),
    ];
    let config = load("", &variables).unwrap();
    assert_eq!(config.handle_secrets, [secret]);
    assert_eq!((&*config.prefix, config.limits.rate), ("1234", 9));
    assert_eq!(config.shards["1"], "redis://user:12345@127.0.0.1/7");
    assert!(config.principals["2"].roles.admin && !config.insecure);
    assert!(config.show(false).contains(&digest));
    assert!(load(&config.show(false), &[]).unwrap() == config);
    // Here a number is not what was written.
    for (number, problem) in [
        (
            "handle_secret = 1234567890123456",
            "handle_secret must be a text",
        ),
        ("prefix = 1234", "prefix is 1234"),
        ("limits.rate = 1.5", "limits.rate is 1.5"),
        ("limits.rate = true", "limits.rate is true"),
        ("insecure = 1", "insecure is 1"),
        ("principals = 1", "principals is no table"),
        ("principals.x.sha256 = 7", "principals.x.sha256 has 7"),
    ] {
        let error = load(&format!("{number}\n{SHARD}"), &[]).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn names_have_any_characters_in_the_file_and_few_in_variables() {
    let digest = "0".repeat(64);
    let file = format!(
        "[shards.\"a.b\"]\nurl = \"redis://127.0.0.1\"\n[principals.\"svc.team\"]\nsha256 = \"{digest}\"\n\
         acquire = \"*\"\n[principals.Other]\nsha256 = \"1{}\"\nadmin = true\n",
        &digest[1..]
    );
    let config = load(&file, &[]).unwrap();
    let names: Vec<_> = config.principals.keys().collect();
    assert_eq!(names, ["Other", "svc.team"]);
    assert_eq!(
        config.principals["svc.team"].roles.acquire,
        [crate::Scope::All]
    );
    assert!(config.shards.contains_key("a.b"));
    assert!(load(&config.show(false), &[]).unwrap() == config);
    let typo = load(&format!("{file}\"svc.team\".acquire = \"*\"\n"), &[]).unwrap_err();
    let typo = typo.to_string();
    assert!(
        typo.contains("principals.Other.\"svc.team\".acquire"),
        "{typo}"
    );

    let variable = |name| load(&file, &[(name, "redis://127.0.0.2")]);
    let config = variable("RINGFENCE__SHARDS__EU-1_B__URL").unwrap();
    assert_eq!(config.shards["eu-1_b"], "redis://127.0.0.2");
    for (name, problem) in [
        ("RINGFENCE__SHARDS__A.B__URL", "names no setting"),
        ("RINGFENCE__SHARDS__a__URL", "names no setting"),
        ("RINGFENCE__SHARDS__É__URL", "names no setting"),
        ("RINGFENCE__SHARDS____URL", "names no setting"),
        ("RINGFENCE__HANDLE_SECRET[0]", "names no setting"),
        (
            "RINGFENCE__SHARDS__A__B__URL",
            "shards.a.b.url (the environment) is no setting",
        ),
        (
            "RINGFENCE__PRINCIPALS__OTHER__SHA256",
            "principals.Other and principals.other differ",
        ),
    ] {
        let error = variable(name).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        // A value may be a secret.
        let has_value = error.contains("127.0.0.2");
        assert!(problem != "names no setting" || !has_value, "{error}");
    }
}

#[test]
fn a_secret_in_a_file_that_others_may_read_is_a_warning() {
    let secured = Secured::default();
    let secret = |text: &str| {
        let mut file = NamedTempFile::new().unwrap();
        write!(file, "{text}").unwrap();
        file
    };
    let (handle, url) = (secret(&"1".repeat(32)), secret("redis://127.0.0.1"));
    let key = PathBuf::from(secured.path("server.key"));
    let files = [handle.path(), url.path(), key.as_path()];
    let file = format!(
        "handle_secret_file = {:?}\nshards.a.url_file = {:?}\ntls = {{ cert = {:?}, key = {:?} }}\n",
        files[0],
        files[1],
        secured.path("server.pem"),
        files[2],
    );
    let permit = |mode| {
        for file in files {
            fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
        }
    };
    for mode in [0o400, 0o600, 0o440] {
        permit(mode);
        assert!(load(&file, &[]).unwrap().warnings.is_empty(), "{mode:o}");
    }
    for mode in [0o644, 0o602, 0o604] {
        permit(mode);
        let warnings = load(&file, &[]).unwrap().warnings.join("\n");
        for (setting, file) in ["handle_secret_file", "shards.a.url_file", "tls.key"]
            .iter()
            .zip(files)
        {
            let told =
                format!("{setting} is a secret, and {file:?} has mode 0{mode:o}: every user");
            assert!(warnings.contains(&told), "{told}: {warnings}");
        }
    }
}

#[test]
fn a_secret_among_settings_that_others_may_read_is_a_warning() {
    let warnings = |setting: &str| {
        let mut file = NamedTempFile::new().unwrap();
        writeln!(file, "{setting}").unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(0o644)).unwrap();
        let variables = [("RINGFENCE__SHARDS__B__URL", "redis://user:s3cret@127.0.0.2")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let (variables, options) = (Variables::new(variables), Overrides::default());
        Config::from_sources(Some(file.path()), &variables, &options)
            .unwrap()
            .warnings
    };
    assert_eq!(warnings("shards.a.url = \"redis://127.0.0.1\""), [""; 0]);
    for secret in [
        "shards.a.url = \"redis://user:s3cret@127.0.0.1\"".to_owned(),
        format!("handle_secret = \"{}\"", "1".repeat(32)),
    ] {
        let warnings = warnings(&secret);
        let name = secret.split(' ').next().unwrap();
        assert!(
            matches!(&*warnings, [one] if one.starts_with(name) && !one.contains("s3cret")),
            "{warnings:?}"
        );
    }
}

/// The directory of the files in the example.
const DIRECTORY: &str = "/etc/ringfence";

#[test]
fn the_example_has_every_setting() {
    let example = Config::example();
    let written = include_str!("../../../ringfence.example.toml");
    assert_eq!(
        written, example,
        "ringfence config example > ringfence.example.toml"
    );
    let secured = Secured::default();
    let ca = secured.path("ca.pem");
    let directory = ca.strip_suffix("/ca.pem").unwrap();
    let here = example
        .replace("ca=/etc", "ca=/absent")
        .replace(DIRECTORY, directory);
    // The authority of a server is read when the client is built.
    let config = load(&here.replace("?ca=/absent/ringfence/redis.pem", ""), &[]).unwrap();
    assert!(config.tls.is_some() && config.principals.len() == 2 && config.shards.len() == 2);
    let limits = Limits {
        connection_age: None,
        ..config.limits
    };
    assert_eq!(limits, Limits::default());
}

#[test]
fn shown_settings_are_the_same_if_they_are_loaded() {
    let secured = Secured::default();
    let path = |name| secured.path(name);
    let file = format!(
        "{SHARD}shards.\"b.c\".url = \"redis://user:s3cret@127.0.0.2\"\n\
         prefix = 'back\\slash'\ngrace = \"1m 1s\"\nlimits.rate = 7\n\
         tls = {{ cert = {:?}, key = {:?}, client_ca = {:?} }}\n\
         principals.x.certificate = 'quote\"d'\nprincipals.x.acquire = [\"*\", \"a/b\"]\n\
         principals.y.sha256 = \"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\"\n\
         principals.y.admin = true\n",
        path("server.pem"),
        path("server.key"),
        path("ca.pem"),
    );
    let config = load(&file, &[]).unwrap();
    let again = load(&config.show(false), &[]).unwrap();
    assert!(again == config, "{}", config.show(false));
    let redacted = config.show(true);
    assert!(redacted.contains("127.0.0.2"), "{redacted}");
    for secret in ["s3cret", "2c26b4"] {
        assert!(!redacted.contains(secret), "{redacted}");
    }
}

#[test]
fn the_manual_names_every_setting() {
    let manual = include_str!("../../../docs/operate/coordinator.md");
    let mut section = String::new();
    for line in Config::example().lines() {
        if let Some(header) = line.strip_prefix('[') {
            let kind = header.trim_end_matches(']').split('.').next().unwrap();
            section = match kind {
                "shards" | "principals" => format!("{kind}.NAME."),
                kind => format!("{kind}."),
            };
        } else if let Some((key, _)) = line.split_once(" = ") {
            let setting = format!("| `{section}{key}` |");
            assert!(manual.contains(&setting), "{setting}");
        }
    }
}
