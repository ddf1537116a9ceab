//! Converts between the bytes of a file and text, and preserves the encoding.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::borrow::Cow;

/// How many bytes of a file are checked to distinguish text from binary data.
const PROBE: usize = 8000;

/// The encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8WithMark,
    Utf16Little,
    Utf16Big,
    /// Any text that is not UTF-8. Each byte is a character, so it always decodes, and writing it back
    /// changes nothing.
    Windows1252,
}

impl Encoding {
    /// Its name, unless it is UTF-8.
    pub(crate) fn unusual_name(self) -> Option<&'static str> {
        match self {
            Encoding::Utf8 => None,
            Encoding::Utf8WithMark => Some("UTF-8 with a byte order mark"),
            Encoding::Utf16Little => Some("UTF-16 (little endian)"),
            Encoding::Utf16Big => Some("UTF-16 (big endian)"),
            Encoding::Windows1252 => Some("windows-1252 (a guess: it is not UTF-8)"),
        }
    }
}

/// The text of a file.
#[derive(Debug)]
pub(crate) struct Decoded<'b> {
    pub text: Cow<'b, str>,
    pub encoding: Encoding,
    /// True if some bytes are invalid in the encoding. They show as U+FFFD.
    pub damaged: bool,
}

/// Decodes `bytes`. `None` if they are no text.
pub(crate) fn decode(bytes: &[u8]) -> Option<Decoded<'_>> {
    if let Some(rest) = bytes.strip_prefix(b"\xEF\xBB\xBF") {
        let text = String::from_utf8_lossy(rest);
        let damaged = matches!(text, Cow::Owned(_));
        return Some(Decoded { text, encoding: Encoding::Utf8WithMark, damaged });
    }
    for (mark, encoding, decoder) in [
        (b"\xFF\xFE", Encoding::Utf16Little, UTF_16LE),
        (b"\xFE\xFF", Encoding::Utf16Big, UTF_16BE),
    ] {
        if let Some(rest) = bytes.strip_prefix(mark) {
            let (text, damaged) = decoder.decode_without_bom_handling(rest);
            return Some(Decoded { text, encoding, damaged });
        }
    }
    if is_binary(bytes) {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let text = Cow::Borrowed(text);
        return Some(Decoded { text, encoding: Encoding::Utf8, damaged: false });
    }
    if is_mostly_utf8(bytes) {
        let text = String::from_utf8_lossy(bytes);
        return Some(Decoded { text, encoding: Encoding::Utf8, damaged: true });
    }
    let (text, damaged) = WINDOWS_1252.decode_without_bom_handling(bytes);
    Some(Decoded { text, encoding: Encoding::Windows1252, damaged })
}

impl Decoded<'_> {
    /// A remark about the encoding, unless it is undamaged UTF-8.
    pub(crate) fn note(&self) -> Option<String> {
        let name = self.encoding.unusual_name();
        match (name, self.damaged) {
            (None, false) => None,
            (name, false) => name.map(str::to_owned),
            (name, true) => Some(format!(
                "{}, with bytes that are not valid in it, shown as \u{FFFD}",
                name.unwrap_or("UTF-8")
            )),
        }
    }
}

/// Returns true if more characters beyond ASCII are valid UTF-8 than invalid. Then the text is damaged
/// UTF-8 rather than another encoding.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > invalid
}

/// A character that an encoding does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unencodable(pub char);

/// Encodes `text` in `encoding`, including its byte order mark.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Result<Vec<u8>, Unencodable> {
    Ok(match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf8WithMark => [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
        Encoding::Utf16Little => {
            let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        }
        Encoding::Utf16Big => {
            let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
            units.flat_map(u16::to_be_bytes).collect()
        }
        Encoding::Windows1252 => {
            let (bytes, _, replaced) = WINDOWS_1252.encode(text);
            if replaced {
                let foreign = text
                    .chars()
                    .find(|character| WINDOWS_1252.encode(character.encode_utf8(&mut [0; 4])).2);
                return Err(Unencodable(foreign.unwrap_or('\u{FFFD}')));
            }
            bytes.into_owned()
        }
    })
}

/// Returns true for binary data: a zero byte near the beginning, or many control characters.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    let probe = &bytes[..bytes.len().min(PROBE)];
    let mut controls = 0;
    for byte in probe {
        match byte {
            0 => return true,
            b'\t' | b'\n' | b'\r' | 0x0C | 0x1B => {}
            0x01..=0x1F | 0x7F => controls += 1,
            _ => {}
        }
    }
    controls * 10 > probe.len()
}

/// The first `limit` characters of `text`, and how many were left out.
pub(crate) fn cut(text: &str, limit: usize) -> (&str, usize) {
    if text.len() <= limit {
        return (text, 0);
    }
    match text.char_indices().nth(limit) {
        Some((end, _)) => (&text[..end], text[end..].chars().count()),
        None => (text, 0),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], encoding: Encoding, text: &str) {
        let decoded = decode(bytes).unwrap();
        assert_eq!((decoded.encoding, &*decoded.text), (encoding, text));
        assert_eq!(encode(text, encoding).unwrap(), bytes);
    }

    #[test]
    fn each_encoding_is_recognised_and_written_back() {
        check("grüße\n".as_bytes(), Encoding::Utf8, "grüße\n");
        check(b"\xEF\xBB\xBFhi", Encoding::Utf8WithMark, "hi");
        check(b"\xFF\xFEh\0\xFC\0", Encoding::Utf16Little, "hü");
        check(b"\xFE\xFF\0h\0\xFC", Encoding::Utf16Big, "hü");
        check(b"gr\xFC\xDFe \x80\x81", Encoding::Windows1252, "grüße €\u{81}");
    }

    #[test]
    fn a_character_the_encoding_lacks_is_named() {
        assert_eq!(encode("aß→", Encoding::Windows1252), Err(Unencodable('→')));
    }

    #[test]
    fn damaged_utf8_is_not_taken_for_another_encoding() {
        let decoded = decode(b"gr\xC3\xBC\xC3\x9Fe \xFF!").unwrap();
        assert_eq!((&*decoded.text, decoded.damaged), ("grüße \u{FFFD}!", true));
        assert!(decoded.note().unwrap().starts_with("UTF-8, with bytes"));
    }

    #[test]
    fn zero_bytes_and_many_control_characters_are_binary() {
        assert!(is_binary(b"ab\0c"));
        assert!(is_binary(b"\x01\x02\x03\x04text"));
        assert!(!is_binary(b"\x1b[31mred\x1b[0m\n"));
        assert!(!is_binary(b""));
    }

    proptest! {
        #[test]
        fn text_survives_every_unicode_encoding(text in "\\PC*") {
            for encoding in
                [Encoding::Utf8WithMark, Encoding::Utf16Little, Encoding::Utf16Big]
            {
                let bytes = encode(&text, encoding).unwrap();
                let decoded = decode(&bytes).unwrap();
                prop_assert_eq!(&*decoded.text, &text);
                prop_assert_eq!(decoded.encoding, encoding);
            }
        }

        #[test]
        fn bytes_that_decode_undamaged_are_written_back_unchanged(bytes: Vec<u8>) {
            if let Some(decoded) = decode(&bytes).filter(|decoded| !decoded.damaged) {
                prop_assert_eq!(encode(&decoded.text, decoded.encoding), Ok(bytes.clone()));
            }
        }
    }
}
