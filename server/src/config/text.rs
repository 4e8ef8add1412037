//! The settings as a file, and the example of one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Display, Write},
    net::SocketAddr,
    path::PathBuf,
    time::Duration,
};

use ringfence_coordinator::shard::ServerAddress;

use super::{Config, Limits, Log};
use crate::{PemFile, Principal, Proof, Roles, Scope, Tls, token_digest};

/// Stands for a secret.
const REDACTED: &str = "redacted";

/// The first lines of the example.
const HEAD: &str = "\
# An example of all settings of a coordinator: ringfence serve -c FILE.
# Variables such as RINGFENCE__LIMITS__STREAMS=100 override the file, options override both.
# This file is the output of: ringfence config example

";

/// A file in TOML.
struct File {
    text: String,
    /// Each comment is written at its first line only. None: no comments.
    commented: Option<BTreeSet<&'static str>>,
    redacted: bool,
}

impl File {
    fn comment(&mut self, comment: &'static str) {
        let is_new = self
            .commented
            .as_mut()
            .is_some_and(|seen| seen.insert(comment));
        if is_new {
            let _ = writeln!(self.text, "# {comment}");
        }
    }

    fn section(&mut self, header: impl Display, comment: &'static str) {
        self.text.push('\n');
        self.comment(comment);
        let _ = writeln!(self.text, "[{header}]");
    }

    fn line(&mut self, key: &str, value: impl Display, comment: &'static str) {
        self.comment(comment);
        let _ = writeln!(self.text, "{key} = {value}");
    }

    /// A line whose default is none.
    fn keys(&mut self, key: &str, scopes: &[Scope], comment: &'static str) {
        if !scopes.is_empty() {
            let scopes: Vec<_> = scopes.iter().map(quoted).collect();
            self.line(key, format!("[{}]", scopes.join(", ")), comment);
        }
    }

    /// A line with a text, or with a list of several. Default: none.
    fn values(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = impl Display>,
        comment: &'static str,
    ) {
        let values: Vec<_> = values.into_iter().map(quoted).collect();
        match &values[..] {
            [] => {}
            [value] => self.line(key, value, comment),
            values => self.line(key, format!("[{}]", values.join(", ")), comment),
        }
    }
}

impl Config {
    /// The settings, with defaults, as a file. `redacted`: without logins of servers and digests of
    /// tokens; otherwise the file has the same settings if it is loaded.
    pub fn show(&self, redacted: bool) -> String {
        let mut file = File {
            text: String::new(),
            commented: None,
            redacted,
        };
        self.write(&mut file);
        file.text
    }

    /// A file that has every setting, with a comment.
    pub fn example() -> String {
        let mut file = File {
            text: HEAD.to_owned(),
            commented: Some(BTreeSet::new()),
            redacted: false,
        };
        sample().write(&mut file);
        file.text
    }

    fn write(&self, file: &mut File) {
        let Self {
            listen,
            monitor,
            tls,
            insecure,
            grace,
            sweep_every,
            prefix,
            handle_secrets,
            shards,
            topology,
            log,
            limits,
            principals,
            warnings: _,
        } = self;
        file.line(
            "listen",
            quoted(listen),
            "The address to serve on. Default: 127.0.0.1:7420.",
        );
        if let Some(monitor) = monitor {
            file.line(
                "monitor",
                quoted(monitor),
                "The address of /metrics, /healthz and /readyz, over HTTP, for every caller. Default: none.",
            );
        }
        file.line(
            "insecure",
            insecure,
            "Whether to serve on a public address although callers prove no identity. Default: false.",
        );
        file.line(
            "grace",
            quoted(humantime::format_duration(*grace)),
            "The time that callers have to release their locks when the coordinator stops. Default: 10s.",
        );
        file.line(
            "sweep_every",
            quoted(humantime::format_duration(*sweep_every)),
            "How often one of the coordinators sweeps all accounts; 0s: this one never does. Default: 1m.",
        );
        file.line(
            "prefix",
            quoted(prefix),
            "The prefix of every key on the servers. Default: ringfence.",
        );
        let redacted = file.redacted;
        let secrets = handle_secrets
            .iter()
            .map(|secret| if redacted { REDACTED } else { secret });
        file.values(
            "handle_secret",
            secrets,
            "Seals the handles of locks: coordinators with the same secret go on with each other's locks. A list: the first seals, each opens. Or handle_secret_file, a file with one in each line. Default: each has its own.",
        );
        write_servers(shards, topology.as_deref(), file);
        if let Some(tls) = tls {
            write_tls(tls, file);
        }
        write_log(*log, file);
        write_limits(limits, file);
        for (name, principal) in principals {
            write_principal(name, principal, file);
        }
    }
}

fn write_servers(shards: &BTreeMap<String, String>, topology: Option<&str>, file: &mut File) {
    for (name, url) in shards {
        file.section(
            format_args!("shards.{}", key(name)),
            "Servers to find the topology at: url, or url_file, a file with the URL. Their names only tell settings apart.",
        );
        file.line(
            "url",
            quoted(shown(url, file)),
            "redis:// or rediss://; redis+sentinel:// with the name of a primary; or postgres://, mysql://, etcd:// or zookeeper://, servers that keep locks and no counters.",
        );
    }
    if let Some(url) = topology {
        file.section(
            "topology",
            "The server of the topology's record, if that is on none of the shards: url, or url_file, a file with the URL. Default: it is found by the shards.",
        );
        file.line(
            "url",
            quoted(shown(url, file)),
            "etcd:// with the hosts of a cluster; etcds:// for TLS; or a URL as for shards.",
        );
    }
}

/// A server's URL; without credentials, if they are not to be shown.
fn shown(url: &str, file: &File) -> String {
    match url.parse::<ServerAddress>() {
        Ok(address) if file.redacted => address.to_string(),
        _ if file.redacted => REDACTED.to_owned(),
        _ => url.to_owned(),
    }
}

fn write_tls(
    Tls {
        cert,
        key,
        client_ca,
    }: &Tls,
    file: &mut File,
) {
    file.section("tls", "TLS. Default: none.");
    let path = |file: &PemFile| quoted(file.path.display());
    file.line(
        "cert",
        path(cert),
        "The certificate of the coordinator, and its chain: a PEM file.",
    );
    file.line("key", path(key), "Its private key: a PEM file.");
    if let Some(authorities) = client_ca {
        file.line(
            "client_ca",
            path(authorities),
            "Every connection needs a certificate of these authorities: a PEM file. Default: callers need none.",
        );
    }
}

fn write_log(Log { level, json }: Log, file: &mut File) {
    file.section("log", "The log, on stderr. SIGHUP has it read again.");
    file.line(
        "level",
        quoted(level.as_str().to_ascii_lowercase()),
        "error, warn, info, debug or trace. RUST_LOG, if it is set, counts instead. Default: info.",
    );
    file.line(
        "format",
        quoted(if json { "json" } else { "text" }),
        "text; or json, an object in each line. Default: text.",
    );
}

fn write_limits(limits: &Limits, file: &mut File) {
    let Limits {
        connections,
        connections_per_address,
        connection_age,
        streams,
        rate,
        session_locks,
        session_waiters,
    } = limits;
    file.section("limits", "Limits.");
    file.line(
        "connections",
        connections,
        "Connections at a time; more wait. Default: 1024.",
    );
    file.line(
        "connections_per_address",
        connections_per_address,
        "Connections of one address; more are closed. Default: 512.",
    );
    if let Some(age) = connection_age {
        file.line(
            "connection_age",
            quoted(humantime::format_duration(*age)),
            "After this time, a connection takes no new calls: callers connect anew, perhaps elsewhere. Default: none.",
        );
    }
    file.line(
        "streams",
        streams,
        "Calls at a time on one connection, apart from renewals and releases; more are refused. Default: 256.",
    );
    file.line(
        "rate",
        rate,
        "Calls per second of one principal, apart from renewals and releases of held locks; more are refused. Default: 20000.",
    );
    file.line(
        "session_locks",
        session_locks,
        "Locks of one session, held or waited for; more are refused. Default: 4096.",
    );
    file.line(
        "session_waiters",
        session_waiters,
        "Locks that one session waits for; more are refused. Default: 1024.",
    );
}

fn write_principal(name: &str, principal: &Principal, file: &mut File) {
    let Principal {
        proofs,
        roles,
        accounts_per_hour,
    } = principal;
    file.section(
        format_args!("principals.{}", key(name)),
        "The callers. Default: none, and every caller may make every call.",
    );
    let redacted = file.redacted;
    let tokens = proofs.iter().filter_map(|proof| match proof {
        Proof::Token(_) if redacted => Some(REDACTED.to_owned()),
        Proof::Token(digest) => Some(digest.iter().map(|byte| format!("{byte:02x}")).collect()),
        Proof::Certificate(_) => None,
    });
    file.values(
        "sha256",
        tokens,
        "The SHA-256 of its bearer token, or a list of them: printf %s \"$TOKEN\" | sha256sum.",
    );
    let certificates = proofs.iter().filter_map(|proof| match proof {
        Proof::Certificate(name) => Some(name),
        Proof::Token(_) => None,
    });
    file.values(
        "certificate",
        certificates,
        "Instead of sha256, or beside it: a DNS name or a URI of its certificate, or a list. Needs tls.client_ca.",
    );
    write_roles(roles, file);
    if let Some(accounts) = accounts_per_hour {
        file.line(
            "accounts_per_hour",
            accounts,
            "Accounts that it may create in an hour; more are refused. Default: no limit.",
        );
    }
}

fn write_roles(roles: &Roles, file: &mut File) {
    let Roles {
        acquire,
        change,
        receive,
        read,
        force_release,
        admin,
    } = roles;
    file.keys(
        "acquire",
        acquire,
        "The locks that it may acquire, and the latches that it may count down: NAMESPACE/NAME is one, NAMESPACE/START/ and NAMESPACE/START* are all that start so, \"*\" all. Default: none.",
    );
    file.keys(
        "change",
        change,
        "The accounts that it may create, fill, empty and close. Default: none.",
    );
    file.keys(
        "receive",
        receive,
        "The accounts that it may transfer to, beside those of change. Default: none.",
    );
    file.keys(
        "read",
        read,
        "The locks and accounts that it may see. Default: none.",
    );
    file.keys(
        "force_release",
        force_release,
        "The locks that it may take from their holders. Default: none.",
    );
    file.line(
        "admin",
        admin,
        "Whether it may see and change the topology. Default: false.",
    );
}

/// A string of TOML.
fn quoted(text: impl Display) -> String {
    let mut quoted = String::from("\"");
    for char in text.to_string().chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

/// A part of a key of TOML.
pub(super) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// The settings of the example. They have every setting.
fn sample() -> Config {
    let file = |name: &str| PemFile {
        path: PathBuf::from(format!("/etc/ringfence/{name}")),
        pem: Vec::new(),
    };
    let prefix = |text: &str| -> Scope { text.parse().expect("a namespace and a name") };
    let billing = Principal {
        proofs: vec![Proof::Token(token_digest("a secret of the caller"))],
        roles: Roles {
            acquire: vec![prefix("default/invoice/")],
            change: vec![prefix("coins/user/")],
            receive: vec![prefix("coins/sales")],
            read: vec![Scope::All],
            ..Roles::default()
        },
        accounts_per_hour: Some(1000),
    };
    let operator = Principal {
        proofs: vec![Proof::Certificate("operator.example.org".into())],
        roles: Roles {
            force_release: vec![Scope::All],
            admin: true,
            ..Roles::default()
        },
        accounts_per_hour: None,
    };
    Config {
        listen: Config::default().listen,
        monitor: Some(SocketAddr::from(([127, 0, 0, 1], 7421))),
        tls: Some(Tls {
            cert: file("server.pem"),
            key: file("server.key"),
            client_ca: Some(file("ca.pem")),
        }),
        insecure: false,
        grace: Duration::from_secs(10),
        sweep_every: Duration::from_secs(60),
        prefix: "ringfence".into(),
        handle_secrets: vec!["at least 32 random characters, as from openssl rand -hex 32".into()],
        shards: BTreeMap::from([
            ("a".into(), "redis://10.0.0.1".into()),
            (
                "b".into(),
                "rediss://locker:password@10.0.0.2?ca=/etc/ringfence/redis.pem".into(),
            ),
        ]),
        topology: Some("etcd://ringfence:password@10.0.0.3,10.0.0.4,10.0.0.5".into()),
        log: Log::default(),
        limits: Limits {
            connection_age: Some(Duration::from_secs(1800)),
            ..Limits::default()
        },
        principals: BTreeMap::from([("billing".into(), billing), ("operator".into(), operator)]),
        warnings: Vec::new(),
    }
}
