//! Reads settings one by one, and collects the problems.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use config::{Map, Source, Value, ValueKind};
use ringfence_coordinator::{name::KeyPrefix, shard::ServerAddress};

use super::{
    ConfigError, Overrides,
    exposure::exposure,
    text::key,
    variables::{PREFIX, SEPARATOR},
};
use crate::{PemFile, Principal, Proof, Roles, Scope, Tls, TokenDigest};

/// The shortest secret: 128 random bits in hex.
const SECRET_BYTES_MIN: usize = 32;

/// A name with more of them is not taken for another one.
const TYPOS_MAX: usize = 2;

/// Values and reasons are shown up to this many characters.
const SHOWN_MAX: usize = 200;

/// Sections that may be empty, or have a problem of their own.
const SECTIONS: [&str; 5] = ["tls", "limits", "principals", "shards", "topology"];

/// The settings not read yet, and the problems so far.
pub(super) struct Reader {
    unread: Map<String, Value>,
    /// The path of the table that is read, with a dot at its end, if it is not the whole.
    within: String,
    /// The settings that were asked for.
    known: BTreeSet<String>,
    problems: Vec<String>,
    /// A warning per file.
    exposed: BTreeMap<PathBuf, String>,
}

impl Reader {
    /// Reads from the sources that are merged in `built`.
    pub(super) fn new(
        built: Result<config::Config, config::ConfigError>,
    ) -> Result<Self, ConfigError> {
        let collected = built.and_then(|config| config.collect());
        let unread = collected.map_err(|error| ConfigError {
            problems: vec![unread(&error.to_string())],
        })?;
        Ok(Self {
            problems: empty_sections("", &unread),
            within: String::new(),
            known: BTreeSet::new(),
            exposed: BTreeMap::new(),
            unread,
        })
    }

    /// Reports unread settings, which are unknown, those of `variables` that look like settings, and everything found
    /// before. Returns the warnings.
    pub(super) fn finish(mut self, variables: &[String]) -> Result<Vec<String>, ConfigError> {
        let unread = std::mem::take(&mut self.unread).into_iter();
        let unread = unread.flat_map(|(name, value)| leaves(key(&name), value));
        let unread = unread.map(|(path, origin)| {
            let similar = self.similar(&path);
            let similar = similar.map(|known| format!(": did you mean {known}?"));
            format!(
                "{path}{origin} is no setting{}",
                similar.unwrap_or_default()
            )
        });
        let misspelt = variables.iter().filter_map(|name| self.misspelt(name));
        let mut unknown: Vec<_> = unread.chain(misspelt).collect();
        unknown.sort();
        self.problems.extend(unknown);
        match self.problems.is_empty() {
            true => Ok(self.exposed.into_values().collect()),
            false => Err(ConfigError {
                problems: self.problems,
            }),
        }
    }

    /// The setting that may be meant by `path`.
    fn similar(&self, path: &str) -> Option<&String> {
        let apart = |known: &str| strsim::damerau_levenshtein(known, path);
        let has_its_name = |known: &str| known.rsplit('.').next() == path.rsplit('.').next();
        let similar = self.known.iter();
        similar
            .filter(|known| has_its_name(known) || apart(known) <= TYPOS_MAX)
            .min_by_key(|known| (!has_its_name(known), apart(known)))
    }

    /// What is wrong with a variable that names a setting, and has one underscore for two.
    fn misspelt(&self, variable: &str) -> Option<String> {
        let name = variable.strip_prefix(PREFIX)?.strip_prefix('_')?;
        if name.starts_with('_') {
            return None;
        }
        let name = name.to_lowercase().replace(SEPARATOR, "_");
        let known = self
            .known
            .iter()
            .find(|known| known.replace('.', "_") == name)?;
        let right = known.to_uppercase().replace('.', SEPARATOR);
        Some(format!(
            "{variable} is not read: {PREFIX}{SEPARATOR}{right} sets {known}"
        ))
    }

    pub(super) fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Warns if others may read `file`, which has the secret at `path`. A file that is mounted from a Secret of Kubernetes
    /// has such a mode by default, so that it is no problem.
    fn secret_in(&mut self, path: &str, file: &Path) {
        if let Some(exposure) = exposure(file) {
            let warning = format!("{path} is a secret, and {}", cut(exposure));
            self.exposed.entry(file.to_owned()).or_insert(warning);
        }
    }

    /// As `secret_in`, for the secret `value`, which may be in the file with the settings.
    fn secret(&mut self, path: &str, value: &Value) {
        if let Some(origin) = value.origin().map(PathBuf::from) {
            self.secret_in(path, &origin);
        }
    }

    /// A setting that is a text, as `parse` understands it.
    pub(super) fn text<T>(
        &mut self,
        path: &str,
        limit: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(path)?;
        let (origin, shown) = (origin(&value), shown(&value));
        let parsed = text_of(value).and_then(|text| parse(&text));
        if parsed.is_none() {
            self.problem(format!("{path} is {shown}{origin}, must be {limit}"));
        }
        parsed
    }

    pub(super) fn flag(&mut self, path: &str) -> bool {
        let Some(value) = self.take(path) else {
            return false;
        };
        match &value.kind {
            ValueKind::Boolean(flag) => return *flag,
            ValueKind::String(text) if text == "true" => return true,
            ValueKind::String(text) if text == "false" => {}
            _ => {
                let (origin, shown) = (origin(&value), shown(&value));
                self.problem(format!("{path} is {shown}{origin}, must be true or false"));
            }
        }
        false
    }

    pub(super) fn number(&mut self, path: &str, limits: RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(path)?;
        let (origin, shown) = (origin(&value), shown(&value));
        let number = match &value.kind {
            ValueKind::I64(number) => u64::try_from(*number).ok(),
            ValueKind::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| limits.contains(number));
        if number.is_none() {
            let (min, max) = (limits.start(), limits.end());
            self.problem(format!(
                "{path} is {shown}{origin}, must be a number of {min} to {max}"
            ));
        }
        number
    }

    pub(super) fn length(
        &mut self,
        path: &str,
        limits: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let [min, max] = [limits.start(), limits.end()].map(|end| humantime::format_duration(*end));
        let limit = format!("a length of time with its unit, as 10s, of {min} to {max}");
        self.text(path, &limit, |text| {
            let length = humantime::parse_duration(text).ok();
            length.filter(|length| limits.contains(length))
        })
    }

    pub(super) fn prefix(&mut self, path: &str) -> String {
        let limit = "1 to 64 printable ASCII characters without space, { and }, and must not end in :queue or :tickets";
        let prefix = self.text(path, limit, |text| KeyPrefix::new(text).ok());
        prefix.unwrap_or_default().as_str().to_owned()
    }

    /// The secrets at `path`, or in the lines of the file that is named at `path`_file. Not shown in a problem.
    pub(super) fn secrets(&mut self, path: &str) -> Vec<String> {
        let in_file = format!("{path}_file");
        let (key, secrets) = match (self.take(path), self.take(&in_file)) {
            (None, None) => return Vec::new(),
            (Some(secrets), None) => {
                self.secret(path, &secrets);
                let secrets = listed(secrets).into_iter().map(text_of);
                (path, secrets.collect())
            }
            (None, Some(file)) => {
                let Some(text) = self.file(&in_file, file) else {
                    return Vec::new();
                };
                let lines = text.lines().map(|line| Some(line.trim().to_owned()));
                (&*in_file, lines.collect())
            }
            (Some(_), Some(_)) => {
                self.problem(format!("{path} and {in_file} are set, must be one of them"));
                return Vec::new();
            }
        };
        let is_long = |secret: &String| secret.len() >= SECRET_BYTES_MIN;
        let secrets: Option<Vec<_>> = secrets;
        let secrets = secrets.filter(|secrets| !secrets.is_empty() && secrets.iter().all(is_long));
        if secrets.is_none() {
            self.problem(format!(
                "{key} must be a text of at least {SECRET_BYTES_MIN} bytes, as from: openssl rand -hex 32; or several"
            ));
        }
        secrets.unwrap_or_default()
    }

    /// The secret text of the file that `value`, at `path`, names.
    fn file(&mut self, path: &str, value: Value) -> Option<String> {
        let Some(file) = text_of(value) else {
            self.problem(format!("{path} is no text, must be the path of a file"));
            return None;
        };
        match fs::read_to_string(&file) {
            Ok(text) => {
                self.secret_in(path, Path::new(&file));
                Some(text.trim().to_owned())
            }
            Err(error) => {
                let shown = cut(format!("{file:?}"));
                self.problem(format!("{path} is {shown}, which cannot be read: {error}"));
                None
            }
        }
    }

    /// The URLs of shards: at least one. Their names only tell settings apart.
    pub(super) fn shards(&mut self, path: &str, overrides: &Overrides) -> BTreeMap<String, String> {
        let servers = match self.is_empty(path) && overrides.servers.is_empty() {
            true => &overrides.default_servers,
            false => &overrides.servers,
        };
        if !servers.is_empty() {
            self.take(path);
            let named = (1..)
                .map(|number: u32| format!("server {number}"))
                .zip(servers);
            let url = |(name, url): (String, &String)| {
                let url = self.url(&name, Some(url.as_str().into()), None);
                url.map(|url| (name, url))
            };
            return named.filter_map(url).collect();
        }
        if self.is_empty(path) {
            self.take(path);
            self.problem(format!(
                "{path} is empty, must have at least one server: {path}.a.url = \"redis://…\", --redis or RINGFENCE_REDIS"
            ));
        }
        self.tables(path, "url or url_file", |reader, path| {
            let [url, file] = reader.url_of(path);
            reader.url(path, url, file)
        })
    }

    /// The URL of the topology's server.
    pub(super) fn topology(&mut self, path: &str) -> Option<String> {
        match self.url_of(path) {
            [None, None] => None,
            [url, file] => self.url(path, url, file),
        }
    }

    /// The values of `url` and `url_file`.
    fn url_of(&mut self, path: &str) -> [Option<Value>; 2] {
        ["url", "url_file"].map(|name| self.take(&format!("{path}.{name}")))
    }

    fn url(&mut self, path: &str, url: Option<Value>, file: Option<Value>) -> Option<String> {
        let (key, url) = match (url, file) {
            (Some(value), None) => {
                let key = format!("{path}.url");
                let Some(url) = text_of(value.clone()) else {
                    self.problem(format!("{key} is no text, must be a URL"));
                    return None;
                };
                // With a login.
                if url.contains('@') {
                    self.secret(&key, &value);
                }
                (key, url)
            }
            (None, Some(file)) => {
                let key = format!("{path}.url_file");
                let url = self.file(&key, file)?;
                (key, url)
            }
            (Some(_), Some(_)) | (None, None) => {
                self.problem(format!("{path} must have either url or url_file"));
                return None;
            }
        };
        // Not the URL: it may hold a password.
        match url.parse::<ServerAddress>() {
            Ok(_) => Some(url),
            Err(error) => {
                self.problem(format!("{key}: {error}"));
                None
            }
        }
    }

    /// Principals, by name.
    pub(super) fn principals(&mut self, path: &str) -> BTreeMap<String, Principal> {
        self.tables(path, "sha256 or certificate", |reader, path| {
            let proofs = reader.proofs(path);
            let roles = Roles {
                acquire: reader.scopes(&format!("{path}.acquire")),
                change: reader.scopes(&format!("{path}.change")),
                receive: reader.scopes(&format!("{path}.receive")),
                read: reader.scopes(&format!("{path}.read")),
                force_release: reader.scopes(&format!("{path}.force_release")),
                admin: reader.flag(&format!("{path}.admin")),
            };
            let accounts = reader.number(&format!("{path}.accounts_per_hour"), 1..=u32::MAX.into());
            let principal = Principal {
                proofs,
                roles,
                accounts_per_hour: accounts.and_then(|accounts| accounts.try_into().ok()),
            };
            (!principal.proofs.is_empty()).then_some(principal)
        })
    }

    /// The tables in the section `path`, by name, as `read` understands them. A name may have dots. Each table must have
    /// `limit`.
    fn tables<T>(
        &mut self,
        path: &str,
        limit: &str,
        read: impl Fn(&mut Self, &str) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let section = match self.take(path).map(|value| value.kind) {
            None => return BTreeMap::new(),
            Some(ValueKind::Table(section)) => section,
            Some(_) => {
                self.problem(format!(
                    "{path} is no table, must be [{path}.NAME] with {limit}"
                ));
                return BTreeMap::new();
            }
        };
        let section: BTreeMap<_, _> = section.into_iter().collect();
        let (mut tables, mut unread, mut in_lower_case) =
            (BTreeMap::new(), Map::new(), BTreeMap::new());
        for (name, value) in section {
            let inner = format!("{path}.{}", key(&name));
            if let Some(other) = in_lower_case.insert(name.to_lowercase(), inner.clone()) {
                self.problem(format!(
                    "{other} and {inner} differ in upper and lower case alone: a variable sets the name in lower case"
                ));
            }
            let ValueKind::Table(settings) = value.kind else {
                self.problem(format!("{inner} is no table, must have {limit}"));
                continue;
            };
            let outer = std::mem::replace(&mut self.unread, settings);
            self.within = format!("{inner}.");
            tables.extend(read(self, &inner).map(|table| (name.clone(), table)));
            self.within.clear();
            let left = std::mem::replace(&mut self.unread, outer);
            if !left.is_empty() {
                unread.insert(name, Value::from(left));
            }
        }
        if !unread.is_empty() {
            self.unread.insert(path.to_owned(), unread.into());
        }
        tables
    }

    /// What proves a principal: at least one of them.
    fn proofs(&mut self, path: &str) -> Vec<Proof> {
        let before = self.problems.len();
        let limit = "64 hex digits, or a list of them";
        let tokens = self.list(&format!("{path}.sha256"), limit, digest);
        let limit = "a DNS name or a URI of the principal's certificate, or a list of them";
        let certificates = self.list(&format!("{path}.certificate"), limit, |text| {
            (!text.is_empty()).then(|| text.to_owned())
        });
        let tokens = tokens.into_iter().map(Proof::Token);
        let certificates = certificates.into_iter().map(Proof::Certificate);
        let proofs: Vec<_> = tokens.chain(certificates).collect();
        if proofs.is_empty() && self.problems.len() == before {
            self.problem(format!("{path} must have sha256 or certificate"));
        }
        proofs
    }

    /// The keys of a role. Default: none.
    fn scopes(&mut self, path: &str) -> Vec<Scope> {
        let limit =
            "a list of NAMESPACE/NAME, NAMESPACE/START/, NAMESPACE/START*, or \"*\" for all keys";
        self.list(path, limit, |text| text.parse().ok())
    }

    /// A setting that is a list, or one text alone. Default: none.
    fn list<T>(&mut self, path: &str, limit: &str, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let Some(value) = self.take(path) else {
            return Vec::new();
        };
        let (origin, mut parsed) = (origin(&value), Vec::new());
        for text in listed(value) {
            let shown = shown(&text);
            match text_of(text).and_then(|text| parse(&text)) {
                Some(one) => parsed.push(one),
                None => self.problem(format!("{path} has {shown}{origin}, must be {limit}")),
            }
        }
        parsed
    }

    /// Certificates, with their files read and checked.
    pub(super) fn tls(&mut self, path: &str) -> Option<Tls> {
        let before = self.problems.len();
        let [cert, key, client_ca] =
            ["cert", "key", "client_ca"].map(|name| self.pem(&format!("{path}.{name}")));
        let problem = match (cert, key) {
            (Some(cert), Some(key)) => {
                self.secret_in(&format!("{path}.key"), &key.path);
                let tls = Tls {
                    cert,
                    key,
                    client_ca,
                };
                let Err(reason) = tls.acceptor() else {
                    return Some(tls);
                };
                format!("{path} cannot be used: {reason}")
            }
            (None, None) if client_ca.is_none() => return None,
            _ => format!("{path} must have cert and key"),
        };
        // A file that cannot be read is reported already.
        if self.problems.len() == before {
            self.problem(problem);
        }
        None
    }

    /// The file that is named at `path`.
    fn pem(&mut self, path: &str) -> Option<PemFile> {
        let file = self.text(path, "the path of a file in the PEM format", |text| {
            Some(PathBuf::from(text))
        })?;
        match PemFile::read(file.clone()) {
            Ok(read) => Some(read),
            Err(error) => {
                let shown = cut(format!("{file:?}"));
                self.problem(format!("{path} is {shown}, which cannot be read: {error}"));
                None
            }
        }
    }

    /// Whether there is no table in the section `path`, and nothing else in its place.
    fn is_empty(&self, path: &str) -> bool {
        match self.unread.get(path).map(|value| &value.kind) {
            Some(ValueKind::Table(table)) => table.is_empty(),
            other => other.is_none(),
        }
    }

    /// Takes the value at `path`, whose parts are separated by dots, apart from the path of the table that is read.
    fn take(&mut self, path: &str) -> Option<Value> {
        self.known.insert(path.to_owned());
        let mut table = &mut self.unread;
        let mut path = path
            .strip_prefix(&*self.within)
            .expect("a setting of the table that is read");
        while let Some((section, rest)) = path.split_once('.') {
            let ValueKind::Table(inner) = &mut table.get_mut(section)?.kind else {
                return None;
            };
            (table, path) = (inner, rest);
        }
        table.remove(path)
    }
}

/// The digest that `text` has in hex.
fn digest(text: &str) -> Option<TokenDigest> {
    let digits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = |half| u128::from_str_radix(half, 16).ok();
    let (high, low) = digits.then(|| text.split_at(32))?;
    let mut digest = TokenDigest::default();
    digest[..16].copy_from_slice(&number(high)?.to_be_bytes());
    digest[16..].copy_from_slice(&number(low)?.to_be_bytes());
    Some(digest)
}

/// One problem per section in `table` that is empty, and none of ours. A shard or a principal without settings has a problem
/// of its own.
fn empty_sections(path: &str, table: &Map<String, Value>) -> Vec<String> {
    let sections = table.iter().filter_map(|(name, value)| match &value.kind {
        ValueKind::Table(table) => Some((format!("{path}{}", key(name)), table)),
        _ => None,
    });
    let problems = sections.flat_map(|(section, table)| {
        let is_named = ["shards.", "principals."].contains(&path);
        match table.is_empty() && !is_named && !SECTIONS.contains(&&*section) {
            true => vec![format!("{section} is no setting")],
            false => empty_sections(&format!("{section}."), table),
        }
    });
    problems.collect()
}

/// The settings in `value`, and the file that set each.
fn leaves(path: String, value: Value) -> Vec<(String, String)> {
    match value.kind {
        ValueKind::Table(table) => table
            .into_iter()
            .flat_map(|(name, value)| leaves(format!("{path}.{}", key(&name)), value))
            .collect(),
        _ => vec![(path, origin(&value))],
    }
}

/// The file that set `value`, for a message.
fn origin(value: &Value) -> String {
    match value.origin() {
        Some(origin) => format!(" ({origin})"),
        None => String::new(),
    }
}

/// The values of a list. The environment has none: there, it is one value.
fn listed(value: Value) -> Vec<Value> {
    match value.kind {
        ValueKind::Array(values) => values,
        _ => vec![value],
    }
}

/// The text of `value`. A number is none: it is not what was written, if it has many digits.
fn text_of(value: Value) -> Option<String> {
    match value.kind {
        ValueKind::String(text) => Some(text),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    let shown = match &value.kind {
        ValueKind::String(text) => format!("{text:?}"),
        kind => kind.to_string(),
    };
    cut(shown)
}

/// The beginning of `text`.
fn cut(text: String) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Why the settings cannot be read at all, without the line of the file that the parser shows: it may have a password.
fn unread(reason: &str) -> String {
    let is_source = |line: &&str| {
        let number = line
            .trim_start()
            .trim_start_matches(|one: char| one.is_ascii_digit());
        number.trim_start().starts_with('|')
    };
    let lines = reason.lines().filter(|line| !is_source(line));
    cut(lines.map(str::trim).collect::<Vec<_>>().join(": "))
}
