//! The binaries of tests of the workspace.

use std::{collections::HashMap, io, path::PathBuf, process::Stdio, time::Duration};

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    context::Context,
    group::Group,
    report::{Outcome, Verdict},
};

/// The binaries whose tests take the most time.
const LONGEST: [&str; 6] = [
    "ringfence-coordinator-tests main",
    "ringfence-cli main",
    "ringfence-client main",
    "ringfence-server main",
    "ringfence-chaos main",
    "ringfence-model main",
];

/// Builds every test, and the programs that tests start.
pub(crate) const BUILD: [&str; 5] = ["cargo", "test", "--workspace", "--all-features", "--no-run"];

/// A binary of tests.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    /// Package and target: `ringfence-client main`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Where it runs: the directory of its package, as with `cargo test`.
    pub(crate) dir: PathBuf,
    /// How cargo is told to run it alone.
    arguments: String,
}

/// A line of cargo's output (`--message-format json`).
#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// What a build has made.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) binaries: Vec<Binary>,
    /// By name.
    programs: HashMap<String, PathBuf>,
}

impl Built {
    /// Where the program called `name` is.
    pub(crate) fn program(&self, name: &str) -> String {
        let path = self.programs.get(name);
        let path = path.unwrap_or_else(|| panic!("the build makes no program called {name}"));
        path.to_string_lossy().into_owned()
    }

    fn add(
        &mut self,
        Artifact {
            package_id,
            manifest_path,
            target,
            profile,
            executable,
        }: Artifact,
    ) {
        let Some(path) = executable else { return };
        if profile.test {
            let dir = manifest_path.parent().unwrap_or(&manifest_path);
            self.binaries
                .push(binary(package(&package_id), target, path, dir.to_owned()));
        } else {
            self.programs.insert(target.name, path);
        }
    }
}

/// Builds all tests. The binaries, the longest first.
pub(crate) async fn build(context: &Context) -> io::Result<Built> {
    let [cargo, arguments @ ..] = BUILD;
    let mut command = context.command(cargo);
    command
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped());
    let mut group = Group::spawn(&mut command)?;
    let mut lines = BufReader::new(group.leader.stdout.take().expect("it is piped")).lines();
    let mut built = Built::default();
    while let Some(line) = lines.next_line().await? {
        // Others tell of build scripts, and of the end.
        if let Ok(artifact) = serde_json::from_str(&line) {
            built.add(artifact);
        }
    }
    let status = group.leader.wait().await?;
    if !status.success() {
        return Err(io::Error::other(format!("{}: {status}", BUILD.join(" "))));
    }
    built.binaries.sort_by_key(|binary| rank(&binary.name));
    Ok(built)
}

fn binary(package: &str, Target { name, kind }: Target, path: PathBuf, dir: PathBuf) -> Binary {
    let (name, target) = match &*kind[0] {
        "test" => (name.clone(), format!("--test {name}")),
        "bin" => (format!("{name} (program)"), format!("--bin {name}")),
        _ => ("library".to_owned(), "--lib".to_owned()),
    };
    Binary {
        name: format!("{package} {name}"),
        path,
        dir,
        arguments: format!("-p {package} --all-features {target}"),
    }
}

/// The name in an id: `path+file:///…/client#ringfence-client@0.1.0`, or `…/ringfence#0.1.0`.
fn package(id: &str) -> &str {
    let (path, version) = id.split_once('#').unwrap_or(("", id));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

/// Where a binary comes in the order: those that take the most time come first, so that none runs alone at the end.
fn rank(name: &str) -> usize {
    let place = LONGEST.iter().position(|longest| *longest == name);
    place.unwrap_or(LONGEST.len())
}

impl Binary {
    /// Whether its tests take much time.
    pub(crate) fn is_long(&self) -> bool {
        rank(&self.name) < LONGEST.len()
    }

    /// The one at `path`.
    #[cfg(test)]
    pub(crate) fn this(path: PathBuf) -> Self {
        Self {
            name: "this".to_owned(),
            dir: path.parent().unwrap().to_owned(),
            path,
            arguments: String::new(),
        }
    }

    /// A name for files: unique among the binaries.
    pub(crate) fn key(&self) -> String {
        let file = self.path.file_name().unwrap_or_default();
        file.to_string_lossy().into_owned()
    }

    /// The outcome of its test called `test`.
    pub(crate) fn outcome(&self, test: &str, took: Duration, verdict: Verdict) -> Outcome {
        Outcome {
            name: format!("{}: {test}", self.name),
            verdict,
            took,
            command: format!(
                "cargo test {} -- --include-ignored --exact {test}",
                self.arguments
            ),
        }
    }

    /// The outcome of its test called `test`, which failed.
    pub(crate) fn failed(&self, test: &str, took: Duration, output: String) -> Outcome {
        self.outcome(test, took, Verdict::Failed(output))
    }
}
