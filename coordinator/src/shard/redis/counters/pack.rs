//! Requests as MessagePack: a script reads a whole batch at once.

use crate::shard::stored::texts::EXACT_MAX;

/// The part of MessagePack that requests need.
#[derive(Debug, Default)]
pub(super) struct Pack(Vec<u8>);

impl Pack {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The next `len` values form one array.
    pub(super) fn array(&mut self, len: usize) -> &mut Self {
        match u16::try_from(len).expect("a batch has fewer parts than that") {
            len @ 0..16 => self.0.push(0x90 | len as u8),
            len => self.tagged(0xdc, &len.to_be_bytes()),
        }
        self
    }

    /// A number; [`EXACT_MAX`] in place of a greater one.
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        match number.min(EXACT_MAX) {
            0..0x80 => self.0.push(number as u8),
            0x80..0x1_0000 => self.tagged(0xcd, &(number as u16).to_be_bytes()),
            0x1_0000..0x1_0000_0000 => self.tagged(0xce, &(number as u32).to_be_bytes()),
            large => self.tagged(0xcf, &large.to_be_bytes()),
        }
        self
    }

    pub(super) fn text(&mut self, text: &[u8]) -> &mut Self {
        self.texts(&[text])
    }

    /// One text, in pieces.
    pub(super) fn texts(&mut self, pieces: &[&[u8]]) -> &mut Self {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        match u32::try_from(len).expect("no part of a request is that long") {
            len @ 0..32 => self.0.push(0xa0 | len as u8),
            len @ 32..0x100 => self.tagged(0xd9, &[len as u8]),
            len => self.tagged(0xdb, &len.to_be_bytes()),
        }
        for piece in pieces {
            self.0.extend_from_slice(piece);
        }
        self
    }

    pub(super) fn truth(&mut self, truth: bool) -> &mut Self {
        self.0.push(0xc2 | u8::from(truth));
        self
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.0.push(tag);
        self.0.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_as_messagepack_says() {
        let packed = |fill: fn(&mut Pack)| {
            let mut pack = Pack::default();
            fill(&mut pack);
            pack.into_bytes()
        };
        assert_eq!(packed(|pack| _ = pack.array(15)), [0x9f]);
        assert_eq!(packed(|pack| _ = pack.array(16)), [0xdc, 0, 16]);
        assert_eq!(packed(|pack| _ = pack.number(127)), [0x7f]);
        assert_eq!(packed(|pack| _ = pack.number(128)), [0xcd, 0, 128]);
        assert_eq!(packed(|pack| _ = pack.number(1 << 16)), [0xce, 0, 1, 0, 0]);
        let long = packed(|pack| _ = pack.number(1 << 32));
        assert_eq!(long, [0xcf, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(packed(|pack| _ = pack.truth(true)), [0xc3]);
        assert_eq!(packed(|pack| _ = pack.truth(false)), [0xc2]);
        assert_eq!(packed(|pack| _ = pack.text(b"a")), [0xa1, b'a']);
        assert_eq!(packed(|pack| _ = pack.text(&[0; 32]))[..2], [0xd9, 32]);
        let longest = packed(|pack| _ = pack.text(&[0; 256]));
        assert_eq!(longest[..5], [0xdb, 0, 0, 1, 0]);
    }
}
