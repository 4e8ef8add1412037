//! Owners as fixed-width bit fields, lowest bit first: a table of 100 shards takes 14 KiB, not 32.

use crate::RingError;

/// Bits that hold any index of one of `shards` shards: 0 for one shard, 16 at most.
pub(crate) fn width(shards: usize) -> u32 {
    usize::BITS - (shards - 1).leading_zeros()
}

/// Bytes that `count` fields of `width` bits take.
pub(crate) fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Appends `values`, each below `2^width`, to `out`.
pub(crate) fn pack(values: &[u16], width: u32, out: &mut Vec<u8>) {
    let (mut pending, mut bits) = (0_u32, 0);
    for &value in values {
        pending |= u32::from(value) << bits;
        bits += width;
        while bits >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(pending as u8);
    }
}

/// The `count` values in `packed`, which is [`packed_len`] bytes long.
pub(crate) fn unpack(packed: &[u8], count: usize, width: u32) -> Result<Vec<u16>, RingError> {
    let (mut pending, mut bits) = (0_u32, 0);
    let mut bytes = packed.iter();
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        while bits < width {
            pending |= u32::from(*bytes.next().expect("as long as packed_len says")) << bits;
            bits += 8;
        }
        values.push((pending & ((1 << width) - 1)) as u16);
        pending >>= width;
        bits -= width;
    }
    match pending {
        0 => Ok(values),
        padding => Err(RingError::Padding {
            value: padding as u8,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_round_trips() {
        for width in 0..=16 {
            let values: Vec<u16> = (0..37_u32)
                .map(|i| (i.wrapping_mul(40_503) & ((1 << width) - 1)) as u16)
                .collect();
            let mut packed = Vec::new();
            pack(&values, width, &mut packed);
            assert_eq!(packed.len(), packed_len(values.len(), width));
            assert_eq!(
                unpack(&packed, values.len(), width).unwrap(),
                values,
                "{width}"
            );
        }
    }

    #[test]
    fn an_index_fits_the_width_exactly() {
        for (shards, bits) in [
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (5, 3),
            (1024, 10),
            (65_536, 16),
        ] {
            assert_eq!(width(shards), bits, "{shards}");
        }
    }

    #[test]
    fn padding_must_be_zero() {
        assert_eq!(
            unpack(&[0b1010_0101], 5, 1),
            Err(RingError::Padding { value: 0b101 })
        );
    }
}
