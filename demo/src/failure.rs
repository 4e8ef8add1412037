//! Why a command of a binary failed, and how that is reported.

use std::{env, error::Error, process::ExitCode};

use ringfence_client::Effect;
use serde::Serialize;

use crate::{
    console::{say, show},
    redact::redacted,
};

/// The command failed.
pub const FAILED: u8 = 1;
/// The command line is invalid.
pub const USAGE: u8 = 2;
/// The servers cannot be reached or used (sysexits: EX_UNAVAILABLE).
pub const UNAVAILABLE: u8 = 69;

/// The reason why a command failed, and its exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: Box<dyn Error>,
    nature: Nature,
}

/// Properties of an error besides its text.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Nature {
    /// Whether the same command may succeed if it is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Whether the command may have taken effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<&'static str>,
    /// Whether stdout has the error already, with `--json`.
    #[serde(skip)]
    pub is_told: bool,
}

impl Nature {
    /// That of an error which says so itself.
    pub fn new(retryable: bool, effect: Effect) -> Self {
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

impl Failure {
    /// `error`, and the exit code for it.
    pub fn new(code: u8, error: impl Error + 'static) -> Self {
        Self {
            code,
            error: Box::new(error),
            nature: Nature::default(),
        }
    }

    /// The same, of this nature.
    #[must_use]
    pub fn of(self, nature: Nature) -> Self {
        Self { nature, ..self }
    }
}

/// Reports why a command failed: on stderr, and on stdout with `--json`.
pub fn fail(
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

/// Help, the version, or the error in the command line.
pub fn usage(error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return error
            .print()
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let text = error.render().to_string();
    let problem = text.strip_prefix("error: ").unwrap_or(&text);
    let arguments = env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let message = redacted(problem, arguments);
    let message = message.trim_end();
    if is_json_asked_for() {
        let nature = Nature::new(false, Effect::None);
        tell_error(USAGE, message, nature);
    }
    say(message);
    ExitCode::from(USAGE)
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

/// `error` and its causes, each once.
pub fn chain(error: &dyn Error) -> String {
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
