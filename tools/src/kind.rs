//! Detects the kind of a binary file by its first bytes.

/// The media type of an image that models can see.
pub(crate) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Returns true if `bytes` begin a PDF.
pub(crate) fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

/// Describes a binary file that begins with `bytes`.
pub(crate) fn describe(bytes: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 14] = [
        (b"\x7FELF", "an ELF executable or library"),
        (b"\x89PNG", "a PNG image"),
        (b"\xFF\xD8\xFF", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive (or a format built on it)"),
        (b"\x1F\x8B", "gzip-compressed data"),
        (b"\x28\xB5\x2F\xFD", "zstd-compressed data"),
        (b"\xFD7zXZ\0", "xz-compressed data"),
        (b"BZh", "bzip2-compressed data"),
        (b"SQLite format 3\0", "a SQLite database"),
        (b"\0asm", "a WebAssembly module"),
        (b"MZ", "a Windows executable"),
        (b"\xCA\xFE\xBA\xBE", "a Java class or a macOS executable"),
    ];
    let known = KINDS.iter().find(|(magic, _)| bytes.starts_with(magic));
    known.map_or("data of an unknown kind", |(_, kind)| kind)
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..10_000 => format!("{bytes} bytes"),
        10_000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
