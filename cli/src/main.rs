//! The `ringfence` command: founds topologies, runs commands under locks, shows what the locks do.

mod counter;
mod demo;
mod describe;
mod lock;
mod locks;
mod logs;
mod place;
mod redact;
mod ring;
mod schema;
mod seeds;
mod serve;
mod signals;
mod table;
mod uninstall;

use std::{
    env,
    error::Error,
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use clap::{
    CommandFactory, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};
use mimalloc::MiMalloc;
use ringfence_client::Effect;
use serde::Serialize;

/// Sessions make 8 % more pairs with it (docs/benchmarks.md); that of musl, in the static image, is slow.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The command failed.
const FAILED: u8 = 1;
/// The command line is invalid.
const USAGE: u8 = 2;
/// The servers cannot be reached or used (sysexits: EX_UNAVAILABLE).
const UNAVAILABLE: u8 = 69;

/// The version, and the commit that it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("RINGFENCE_BUILT_FROM"));

/// A sharded lock coordinator: one holder, rising fencing tokens, no lost coin.
#[derive(Debug, Parser)]
#[command(name = "ringfence", version = VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show and change the topology: the shards, and the slots of each shard
    #[command(subcommand)]
    Ring(ring::Command),
    Lock(Box<lock::Args>),
    /// Show and release locks: holders and waiters
    #[command(subcommand)]
    Locks(locks::Command),
    /// Accounts of money, coins or stock: deposit, deduct, reserve, transfer
    #[command(subcommand)]
    Counter(counter::Command),
    Serve(serve::Args),
    Dev(serve::dev::Args),
    /// The settings of a coordinator
    #[command(subcommand)]
    Config(serve::Command),
    /// The tables of servers that need some
    #[command(subcommand)]
    Schema(schema::Command),
    Demo(Box<demo::Args>),
    Uninstall(uninstall::Args),
    Completions(describe::Completions),
    Man(describe::Man),
    /// Ends the process group it leads when its stdin closes: for `lock` alone
    #[command(name = lock::GUARDIAN, hide = true)]
    Guardian,
}

/// The reason why a command failed, and its exit code.
struct Failure {
    code: u8,
    error: Box<dyn Error>,
    nature: Nature,
}

/// Properties of an error besides its text.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Nature {
    /// Whether the same command may succeed if it is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    /// Whether the command may have taken effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'static str>,
    /// Whether stdout has the error already, with `--json`.
    #[serde(skip)]
    is_told: bool,
}

impl Nature {
    fn new(retryable: bool, effect: Effect) -> Self {
        let effect = match effect {
            Effect::None => "none",
            Effect::Unknown => "unknown",
        };
        Self {
            retryable: Some(retryable),
            effect: Some(effect),
            is_told: false,
        }
    }
}

/// Runs the command line. Exit code 0; 1 if the command failed; 2 if the command line is invalid; `lock` has further
/// ones.
fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(error),
    };
    let ran = logs::start(&cli.command).and_then(|_traces| cli.command.run());
    match ran {
        Ok(code) => code,
        Err(failure) => fail(&failure),
    }
}

impl Command {
    fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Ring(command) => match ring::run(command) {
                Ok(()) => Ok(ExitCode::SUCCESS),
                Err(error) => {
                    let nature = error.nature();
                    Err(Failure::new(error.code(), error).of(nature))
                }
            },
            Self::Lock(args) => {
                lock::run(args).map_err(|error| Failure::new(error.code(args), error))
            }
            Self::Locks(command) => locks::run(command).map_err(|error| {
                let nature = error.nature();
                Failure::new(error.code(), error).of(nature)
            }),
            Self::Counter(command) => counter::run(command).map_err(|error| {
                let nature = error.nature();
                Failure::new(error.code(), error).of(nature)
            }),
            Self::Serve(args) => serve::run(args).map_err(Failure::from),
            Self::Dev(args) => serve::dev::run(args).map_err(Failure::from),
            Self::Config(command) => serve::config(command).map_err(Failure::from),
            Self::Schema(command) => {
                schema::run(command).map_err(|error| Failure::new(FAILED, error))
            }
            Self::Demo(args) => demo::run(args).map_err(|error| Failure::new(FAILED, error)),
            Self::Uninstall(args) => uninstall::run(args).map_err(|error| {
                let nature = error.nature();
                Failure::new(error.code(), error).of(nature)
            }),
            Self::Completions(args) => {
                describe::completions(args, <Cli as CommandFactory>::command())
                    .map_err(|error| Failure::new(FAILED, error))
            }
            Self::Man(args) => describe::man(args, <Cli as CommandFactory>::command())
                .map_err(|error| Failure::new(FAILED, error)),
            Self::Guardian => Ok(lock::guardian()),
        }
    }

    /// The log level unless `RUST_LOG` sets one. All commands except `demo`, `dev` and `serve` print
    /// everything that a person needs to know.
    fn log_level(&self) -> &'static str {
        match self {
            Self::Serve(_) => "info,zookeeper_client=warn",
            Self::Demo(_) | Self::Dev(_) => "warn",
            _ => "off",
        }
    }
}

impl From<serve::ServeError> for Failure {
    fn from(error: serve::ServeError) -> Self {
        let nature = error.nature();
        Self::new(error.code(), error).of(nature)
    }
}

impl Failure {
    fn new(code: u8, error: impl Error + 'static) -> Self {
        Self {
            code,
            error: Box::new(error),
            nature: Nature::default(),
        }
    }

    fn of(self, nature: Nature) -> Self {
        Self { nature, ..self }
    }
}

/// Reports why a command failed: on stderr, and on stdout with `--json`.
fn fail(
    Failure {
        code,
        error,
        nature,
    }: &Failure,
) -> ExitCode {
    let message = chain(&**error);
    if is_json_asked_for() && !nature.is_told {
        tell_error(*code, &message, *nature);
    }
    say(&message);
    ExitCode::from(*code)
}

/// Prints an error as one JSON object in one line.
fn tell_error(code: u8, message: &str, nature: Nature) {
    #[derive(Serialize)]
    struct Told<'a> {
        code: u8,
        message: &'a str,
        #[serde(flatten)]
        nature: Nature,
    }
    let told = Told {
        code,
        message,
        nature,
    };
    let object = serde_json::json!({ "error": told });
    let _ = show(format!("{object}\n"));
}

/// Whether `--json` is given, also on a command line that is refused.
fn is_json_asked_for() -> bool {
    let mut arguments = env::args_os().skip(1);
    let command = arguments.next();
    // The arguments after the key of `lock` are another program's.
    command.is_some_and(|command| command != "lock")
        && arguments
            .take_while(|argument| argument != "--")
            .any(|argument| argument == "--json")
}

/// Prints to stdout. A reader that stops reading is no failure.
fn show(what: impl Display) -> io::Result<()> {
    match write!(io::stdout(), "{what}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints to stdout, as one JSON object or for people.
fn print(what: &(impl Serialize + Display), json: bool) -> io::Result<()> {
    if json {
        let object = serde_json::to_string_pretty(what);
        show(object.expect("numbers, texts and lists") + "\n")
    } else {
        show(what)
    }
}

/// Writes a line to stderr, if it is still open.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "ringfence: {what}");
}

/// `error` and its causes, each once.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// A length of time, as `5s`.
fn length(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text);
    parsed.map_err(|error| match text.parse::<f64>() {
        Ok(_) => {
            format!("{text} has no unit: write {text}ms, {text}s, {text}m, {text}h or {text}d")
        }
        Err(_) => error.to_string(),
    })
}

/// Options of similar programs, and their names here.
const OPTIONS_ELSEWHERE: [(&str, &str); 8] = [
    ("--timeout", "--wait"),
    ("-w", "--wait"),
    ("-t", "--wait"),
    ("--nonblock", "--wait 0s"),
    ("--nb", "--wait 0s"),
    ("-n", "--wait 0s"),
    ("--lease", "--ttl"),
    ("--expires", "--ttl"),
];

/// Adds the name here to an error about an option of a similar program.
fn hint(error: &mut clap::Error) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let mut known = OPTIONS_ELSEWHERE.iter();
    let known = known.find(|(elsewhere, _)| elsewhere == given);
    if let Some((_, here)) = known
        && env::args_os()
            .nth(1)
            .is_some_and(|command| command == "lock")
    {
        error.remove(ContextKind::Suggested);
        let here = ContextValue::String((*here).to_owned());
        error.insert(ContextKind::SuggestedArg, here);
    }
}

/// Help, the version, or the error in the command line.
fn usage(mut error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return error
            .print()
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    hint(&mut error);
    let text = error.render().to_string();
    let problem = text.strip_prefix("error: ").unwrap_or(&text);
    let arguments = env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let message = redact::redacted(problem, arguments);
    let message = message.trim_end();
    if is_json_asked_for() {
        let nature = Nature::new(false, Effect::None);
        tell_error(USAGE, message, nature);
    }
    say(message);
    ExitCode::from(USAGE)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }
}
