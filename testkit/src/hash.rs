//! A fast hash that can be continued and is the same on every machine. It is not cryptographic.

const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
const LENGTH_KEY: u64 = 0xd6e8_feb8_6659_fd93;

/// Continues the hash `state` with `bytes`. The boundaries between calls are part of the hash.
pub(crate) fn extend(state: u64, bytes: &[u8]) -> u64 {
    let mut state = fold(state ^ bytes.len() as u64, LENGTH_KEY);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut whole = [0; 8];
        whole.copy_from_slice(word);
        state = fold(state ^ u64::from_le_bytes(whole), KEY);
    }
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    fold(state ^ u64::from_le_bytes(rest), KEY)
}

/// The hash of several texts, one after the other.
pub(crate) fn of(pieces: &[&str]) -> u64 {
    pieces.iter().fold(KEY, |state, piece| extend(state, piece.as_bytes()))
}

fn fold(state: u64, key: u64) -> u64 {
    let product = u128::from(state) * u128::from(key);
    // Both halves of the product depend on every bit of the state.
    (product as u64) ^ ((product >> 64) as u64).rotate_left(23)
}

#[cfg(test)]
mod tests {
    use super::{extend, of};
    use std::collections::HashSet;

    #[test]
    fn texts_that_differ_in_one_byte_or_in_length_have_other_hashes() {
        let mut seen = HashSet::new();
        for length in 0..64 {
            let zeros = vec![0; length];
            assert!(seen.insert(extend(7, &zeros)), "{length} zeros");
            for position in 0..length {
                for bit in 0..8 {
                    let mut bytes = zeros.clone();
                    bytes[position] ^= 1 << bit;
                    assert!(seen.insert(extend(7, &bytes)), "bit {bit} of byte {position}");
                }
            }
        }
    }

    #[test]
    fn it_matters_where_a_piece_ends_and_which_comes_first() {
        let all = [of(&["ab", "c"]), of(&["a", "bc"]), of(&["c", "ab"]), of(&["abc"])];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }
}
