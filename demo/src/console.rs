//! The output of a binary.

use std::{
    fmt::Display,
    io::{self, Write},
};

use serde::Serialize;

/// Prints to stdout. A reader that stops reading is no failure.
pub fn show(what: impl Display) -> io::Result<()> {
    match write!(io::stdout(), "{what}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints to stdout, as one JSON object or for people.
pub fn print(what: &(impl Serialize + Display), json: bool) -> io::Result<()> {
    if json {
        let object = serde_json::to_string_pretty(what);
        show(object.expect("numbers, texts and lists") + "\n")
    } else {
        show(what)
    }
}

/// Writes a line to stderr, if it is still open.
pub fn say(what: &str) {
    let _ = writeln!(io::stderr(), "ringfence: {what}");
}
