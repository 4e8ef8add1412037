//! Documents as text.

use super::super::store::{Document, Draw, Expected, Write};
use crate::{ids::Token, limits::COUNTER_MAX};

/// A number as text; texts are in the order of the numbers.
pub(crate) fn number_text(number: u64) -> Vec<u8> {
    format!("{number:020}").into_bytes()
}

/// A document as it is stored: `version end content`, and `-` for no end.
pub(crate) fn text(write: &Write, version: u64) -> Vec<u8> {
    let Write {
        ends_ms, content, ..
    } = write;
    let ends = ends_ms.map_or("-".into(), |ends_ms| ends_ms.to_string());
    format!("{version} {ends} {content}").into_bytes()
}

/// The document with this text, and its end. `None`: it is no such text.
pub(crate) fn parse(text: &[u8]) -> Option<(Document, Option<u64>)> {
    let mut parts = str::from_utf8(text).ok()?.splitn(3, ' ');
    let version = parts.next()?.parse().ok()?;
    let ends_ms = match parts.next()? {
        "-" => None,
        ends_ms => Some(ends_ms.parse().ok()?),
    };
    let content = parts.next()?.to_owned();
    Some((Document { version, content }, ends_ms))
}

/// How many tokens `draw` takes after `last`. 0: they would exceed the greatest counter.
pub(crate) fn wanted(draw: Draw, last: Token) -> u64 {
    match last.counter() + draw.tokens <= COUNTER_MAX {
        true => draw.tokens,
        false => 0,
    }
}

/// Whether a document is not as expected.
pub(crate) fn is_stale(expected: Expected, document: Option<&Document>) -> bool {
    match expected {
        Expected::Any => false,
        Expected::Absent => document.is_some(),
        Expected::Version(version) => document.is_none_or(|its| its.version != version),
    }
}
