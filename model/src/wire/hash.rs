//! A hash that is the same on every machine and in every version, for names that depend on content.

/// FNV-1a with a mark after each text, so that `ab`, `c` differs from `a`, `bc`.
pub(super) fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
