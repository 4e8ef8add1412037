//! Keys and holders in the output, for people and for programs.

use std::{fmt, fmt::Write as _, time::Duration};

use humantime::format_duration;
use ringfence_client::Holder;
use ringfence_coordinator::name::Printed;
use serde::Serialize;

/// A key: any bytes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Key {
    /// The key as text; bytes that are no text are replaced.
    key: String,
    /// All its bytes.
    key_hex: String,
    #[serde(skip)]
    shown: String,
}

impl Key {
    pub(super) fn new(key: &[u8]) -> Self {
        let mut key_hex = String::with_capacity(2 * key.len());
        for byte in key {
            write!(key_hex, "{byte:02x}").expect("text grows");
        }
        let shown = match Printed(key).text() {
            Some(text) if !text.starts_with('-') => in_a_shell(text),
            _ => format!("--hex {key_hex}"),
        };
        Self {
            key: String::from_utf8_lossy(key).into_owned(),
            key_hex,
            shown,
        }
    }
}

/// `text` as a word of a command in a shell.
fn in_a_shell(text: &str) -> String {
    let is_plain = |char: char| {
        char.is_ascii_alphanumeric() || !char.is_ascii() || "_./:@%+=,-".contains(char)
    };
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

impl fmt::Display for Key {
    /// As a command line takes it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

/// A lock's holder.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HolderOutput {
    pub(super) label: String,
    nonce: String,
    /// Its first and its last token; one of them is in use. As text, because many programs round such large numbers.
    pub(super) token: String,
    pub(super) last_token: String,
    remaining_ms: u64,
    held_for_ms: u64,
    /// Of a semaphore, or of a read-write lock: its part.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<String>,
}

impl From<&Holder> for HolderOutput {
    fn from(holder: &Holder) -> Self {
        Self {
            label: holder.label.to_string(),
            nonce: holder.nonce.to_string(),
            token: holder.token.to_string(),
            last_token: holder.last_token().to_string(),
            remaining_ms: millis(holder.remaining),
            held_for_ms: millis(holder.held_for),
            share: holder.part(),
        }
    }
}

impl HolderOutput {
    /// The remaining time of its lease.
    pub(super) fn left(&self) -> String {
        shown(self.remaining_ms)
    }

    /// How long it has held the lock.
    pub(super) fn held_for(&self) -> String {
        shown(self.held_for_ms)
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time, to a tenth of a second below a minute.
fn shown(length_ms: u64) -> String {
    match length_ms {
        0..60_000 => format!("{:.1} s", Duration::from_millis(length_ms).as_secs_f64()),
        _ => format_duration(Duration::from_secs(length_ms / 1000)).to_string(),
    }
}

impl fmt::Display for HolderOutput {
    /// Two lines.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (label, held_for, left) = (&self.label, self.held_for(), self.left());
        write!(out, "held by {label}")?;
        if let Some(share) = &self.share {
            write!(out, " ({share})")?;
        }
        writeln!(
            out,
            " for {held_for}; the lease ends in {left} unless renewed"
        )?;
        match (&self.token, &self.last_token) {
            (token, last) if token == last => writeln!(out, "token {token}"),
            (token, last) => writeln!(out, "a token from {token} to {last}"),
        }
    }
}
