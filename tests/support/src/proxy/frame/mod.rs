//! Where values end in a stream of RESP2 or RESP3.

use std::fmt;

/// One value, as it was on the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame(Vec<u8>);

impl Frame {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it answers no request.
    pub fn is_push(&self) -> bool {
        self.0.first() == Some(&b'>')
    }

    /// The words of a request; none if it is something else.
    pub fn words(&self) -> Vec<&[u8]> {
        let mut words = Vec::new();
        let Some((b"*", mut rest)) = self.0.split_at_checked(1) else {
            return words;
        };
        rest = line(rest).map_or(&[], |(_, rest)| rest);
        while let Some((header, after)) = line(rest) {
            let length = header.strip_prefix(b"$").and_then(|text| number(text).ok());
            let word =
                length.and_then(|length| after.split_at_checked(usize::try_from(length).ok()?));
            let Some((word, end)) = word else { break };
            words.push(word);
            rest = end.strip_prefix(b"\r\n").unwrap_or_default();
        }
        words
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

/// What came is no RESP: inline commands and streamed aggregates, which no client of ours sends and
/// no Redis answers, among it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotResp(String);

impl fmt::Display for NotResp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "not RESP: \"{}\"", self.0)
    }
}

impl std::error::Error for NotResp {}

/// Cuts a stream into [`Frame`]s, regardless of how it arrives in pieces.
#[derive(Debug, Default)]
pub struct Framer {
    buffer: Vec<u8>,
    /// Bytes of the next frame that have been looked at.
    seen: usize,
    /// Values of it that are still to come, itself among them; 0: none has begun.
    open: u64,
    /// The stream is any: a frame is what came together.
    is_raw: bool,
}

impl Framer {
    /// For a stream of another protocol: all that has come is a frame.
    pub fn raw() -> Self {
        Self {
            is_raw: true,
            ..Self::default()
        }
    }

    /// Takes more of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame that is there as a whole.
    ///
    /// # Errors
    ///
    /// The stream is no RESP, and nothing more can be read from it.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, NotResp> {
        if self.is_raw {
            let all = std::mem::take(&mut self.buffer);
            return Ok((!all.is_empty()).then_some(Frame(all)));
        }
        loop {
            let Some(value) = next_value(&self.buffer[self.seen..])? else {
                return Ok(None);
            };
            self.seen += value.length;
            self.open = self.open.max(1) - u64::from(value.whole) + value.parts;
            if self.open == 0 {
                let rest = self.buffer.split_off(self.seen);
                self.seen = 0;
                return Ok(Some(Frame(std::mem::replace(&mut self.buffer, rest))));
            }
        }
    }
}

/// A value without its parts.
struct Value {
    /// Bytes.
    length: usize,
    /// Values that follow and belong to it.
    parts: u64,
    /// Whether it is a value of its own: attributes come before one.
    whole: bool,
}

/// The value that `bytes` begin with, if it is all there.
fn next_value(bytes: &[u8]) -> Result<Option<Value>, NotResp> {
    let refused = |bytes: &[u8]| NotResp(bytes[..bytes.len().min(40)].escape_ascii().to_string());
    if let Some(first) = bytes.first()
        && !b"+-:_,#($=!*~>%|".contains(first)
    {
        return Err(refused(bytes));
    }
    let Some((header, rest)) = line(bytes) else {
        return Ok(None);
    };
    let (kind, text) = (header[0], &header[1..]);
    let head = bytes.len() - rest.len();
    let (mut length, mut parts) = (head, 0);
    if b"$=!*~>%|".contains(&kind) {
        // Nil is -1 of RESP2.
        let count = number(text).map_err(|_| refused(bytes))?.max(0) as u64;
        match kind {
            b'$' | b'=' | b'!' if text != b"-1" => {
                length += count as usize + 2;
                if rest.len() < length - head {
                    return Ok(None);
                }
                if !bytes[..length].ends_with(b"\r\n") {
                    return Err(refused(bytes));
                }
            }
            b'%' | b'|' => parts = 2 * count,
            b'*' | b'~' | b'>' => parts = count,
            _ => {}
        }
    }
    Ok(Some(Value {
        length,
        parts,
        whole: kind != b'|',
    }))
}

/// The first line, without its end, and what follows it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

/// A length: -1 to as much as Redis takes at a time.
fn number(text: &[u8]) -> Result<i64, ()> {
    let number = std::str::from_utf8(text).map_err(drop)?.parse();
    let number = number.map_err(drop)?;
    if (-1..=1 << 32).contains(&number) {
        Ok(number)
    } else {
        Err(())
    }
}

#[cfg(test)]
mod tests;
