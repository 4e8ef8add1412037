//! The variables of the environment that are settings.

use std::ffi::OsString;

use config::{Environment, Map};

/// The prefix of variables. The second underscore keeps variables of the command line, such as
/// `RINGFENCE_REDIS`, apart.
pub(super) const PREFIX: &str = "RINGFENCE";
pub(super) const SEPARATOR: &str = "__";

/// The variables of a process.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Those that are settings, as they are named in the environment. A value is a text: a secret of digits loses none.
    settings: Map<String, String>,
    /// The names of all.
    pub(super) names: Vec<String>,
    /// What is wrong with those that are meant to be settings. Without values: they may be secrets.
    pub(super) problems: Vec<String>,
}

impl Variables {
    pub(super) fn new(all: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut variables = Self::default();
        for (name, value) in all {
            // A name that is no text is none of a setting.
            let Ok(name) = name.into_string() else {
                continue;
            };
            if let Some(rest) = name.to_uppercase().strip_prefix(PREFIX)
                && rest.starts_with(SEPARATOR)
            {
                match value.into_string() {
                    _ if !is_usable(&name) => variables.problems.push(format!(
                        "{name} names no setting: the names in a variable have A to Z, 0 to 9, - and _, and {SEPARATOR} \
                         between them; other names are for the file"
                    )),
                    Ok(value) => {
                        variables.settings.insert(name.clone(), value);
                    }
                    Err(_) => variables.problems.push(format!("{name} is no text in UTF-8")),
                }
            }
            variables.names.push(name);
        }
        variables
    }

    /// The settings.
    pub(super) fn source(&self) -> Environment {
        Environment::with_prefix(PREFIX)
            .prefix_separator(SEPARATOR)
            .separator(SEPARATOR)
            .source(Some(self.settings.clone()))
    }
}

fn is_usable(variable: &str) -> bool {
    let is_plain = |byte: u8| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
    };
    let mut names = variable.split(SEPARATOR);
    names.all(|name| !name.is_empty() && name.bytes().all(is_plain))
}
