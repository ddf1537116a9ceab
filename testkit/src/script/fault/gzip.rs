//! Compressed bodies that the client did not ask for.

use flate2::write::GzEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};
use std::io::{self, Write};

/// What a bomb unpacks to: blocks of 1 MiB of spaces.
pub(super) const BOMB_BLOCKS: usize = 256;
const BLOCK: usize = 1 << 20;

/// `body`, compressed.
pub(super) fn packed(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

/// A few hundred kilobytes that unpack to [`BOMB_BLOCKS`] MiB of spaces.
///
/// One block is compressed on its own and repeated, so that making the bomb costs little.
pub(super) fn bomb() -> Vec<u8> {
    let spaces = vec![b' '; BLOCK];
    let mut block = Vec::with_capacity(BLOCK);
    let mut compress = Compress::new(Compression::best(), false);
    // Cannot fail: the room is that of the input, and the data is the simplest there is.
    let _ = compress.compress_vec(&spaces, &mut block, FlushCompress::Full);
    let mut checksum = Crc::new();
    let mut one = Crc::new();
    one.update(&spaces);
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for _ in 0..BOMB_BLOCKS {
        out.extend_from_slice(&block);
        checksum.combine(&one);
    }
    // A last block of no bytes, with the fixed code.
    out.extend_from_slice(&[0x03, 0x00]);
    out.extend_from_slice(&checksum.sum().to_le_bytes());
    out.extend_from_slice(&checksum.amount().to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_bomb_unpacks_to_much_more_than_it_weighs() {
        let bomb = bomb();
        assert!(bomb.len() < 1 << 20, "{}", bomb.len());
        let mut unpacked = flate2::read::GzDecoder::new(&*bomb);
        let mut block = vec![0; BLOCK];
        for _ in 0..BOMB_BLOCKS {
            unpacked.read_exact(&mut block).unwrap();
        }
        assert_eq!(unpacked.read(&mut block).unwrap(), 0, "and its checksum is right");
    }
}
