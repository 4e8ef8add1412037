//! Reads the heads of the frames of HTTP/2 (RFC 9113, 4.1) that a connection receives.

use std::time::Duration;

use tokio::time::Instant;

/// What a client sends first (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
/// The type of SETTINGS, as it is in a head.
const SETTINGS: u8 = 4;

/// SETTINGS that a connection may send within this time. Each must be answered at once, and costs more than it does to send
/// (RFC 9113, 10.5). Clients send one, and a few more as they learn how long the path is.
const SETTINGS_MAX: u32 = 100;
const WITHIN: Duration = Duration::from_secs(10);

/// Counts the SETTINGS of a connection.
#[derive(Debug)]
pub(crate) struct Frames {
    next: Next,
    /// SETTINGS since then.
    count: u32,
    since: Instant,
}

/// What the next bytes are.
#[derive(Debug)]
enum Next {
    /// The preface, of which so many bytes have come.
    Preface(usize),
    /// A head, of which so many bytes have come.
    Head([u8; HEAD], usize),
    /// So many bytes of a payload.
    Payload(usize),
    /// It is not HTTP/2.
    Other,
}

/// More SETTINGS than a connection may send.
#[derive(Debug)]
pub(crate) struct TooMany;

impl Frames {
    pub(crate) fn new() -> Self {
        Self {
            next: Next::Preface(0),
            count: 0,
            since: Instant::now(),
        }
    }

    /// Counts the SETTINGS whose heads are complete with `bytes`.
    pub(crate) fn receive(&mut self, mut bytes: &[u8]) -> Result<(), TooMany> {
        while let Some((first, rest)) = bytes.split_first() {
            match &mut self.next {
                Next::Preface(has) if PREFACE[*has] == *first => {
                    *has += 1;
                    if *has == PREFACE.len() {
                        self.next = Next::Head([0; HEAD], 0);
                    }
                    bytes = rest;
                }
                Next::Head(head, has) => {
                    head[*has] = *first;
                    *has += 1;
                    if let (HEAD, [a, b, c, kind, ..]) = (*has, *head) {
                        self.next = Next::Payload(u32::from_be_bytes([0, a, b, c]) as usize);
                        self.frame(kind)?;
                    }
                    bytes = rest;
                }
                Next::Payload(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    if *left == 0 {
                        self.next = Next::Head([0; HEAD], 0);
                    }
                    bytes = &bytes[taken..];
                }
                Next::Preface(_) | Next::Other => {
                    self.next = Next::Other;
                    break;
                }
            }
        }
        Ok(())
    }

    fn frame(&mut self, kind: u8) -> Result<(), TooMany> {
        if kind != SETTINGS {
            return Ok(());
        }
        if self.since.elapsed() > WITHIN {
            (self.count, self.since) = (0, Instant::now());
        }
        self.count += 1;
        match self.count > SETTINGS_MAX {
            true => Err(TooMany),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let length = &(payload as u32).to_be_bytes()[1..];
        // The payload looks like heads of SETTINGS.
        [length, &[kind, 0, 0, 0, 0, 0], &vec![SETTINGS; payload]].concat()
    }

    /// The SETTINGS of a connection that sends `first`, then every frame, in parts of `part` bytes.
    fn count(first: &[u8], part: usize) -> u32 {
        let mut frames = Frames::new();
        let sent = [
            first,
            &frame(SETTINGS, 0),
            &frame(0, 5000),
            &frame(SETTINGS, 18),
            &frame(6, 8),
            &frame(SETTINGS, 6),
        ]
        .concat();
        for part in sent.chunks(part) {
            frames.receive(part).unwrap();
        }
        frames.count
    }

    #[tokio::test(start_paused = true)]
    async fn settings_are_counted_however_they_arrive() {
        for part in [1, 2, 7, 9, 10, 33, 1000, 100_000] {
            assert_eq!(count(PREFACE, part), 3, "in parts of {part}");
            assert_eq!(count(b"PRIVATE / HTTP/1.1\r\n", part), 0);
            assert_eq!(count(b"", part), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_settings_within_the_time_are_refused() {
        let mut frames = Frames::new();
        frames.receive(PREFACE).unwrap();
        for _ in 0..3 {
            frames
                .receive(&frame(SETTINGS, 6).repeat(SETTINGS_MAX as usize))
                .unwrap();
            tokio::time::advance(WITHIN + Duration::from_millis(1)).await;
        }
        frames
            .receive(&frame(SETTINGS, 6).repeat(SETTINGS_MAX as usize))
            .unwrap();
        frames.receive(&frame(SETTINGS, 0)).unwrap_err();
    }
}
