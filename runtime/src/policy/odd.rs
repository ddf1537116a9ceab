//! Characters that a reader does not see, or mistakes for others.

/// Returns the first odd character in `text`: a control character, or one that is invisible,
/// changes the direction of text, or looks like a space.
pub(crate) fn odd(text: &str) -> Option<char> {
    if text.is_ascii() {
        return text.bytes().find(|byte| is_control(*byte)).map(char::from);
    }
    let mut before = ' ';
    text.chars().find(|char| match (u8::try_from(*char), std::mem::replace(&mut before, *char)) {
        (Ok(byte), _) if byte.is_ascii() => is_control(byte),
        // It only makes the symbol before it appear as a picture.
        (_, '\u{2010}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}') if *char == '\u{fe0f}' => false,
        _ => is_unseen(*char),
    })
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t')
}

fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{80}'..='\u{a0}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a34_what_nobody_sees_is_found() {
        for text in [
            "a\u{200b}b",
            "a\u{202e}b",
            "a\u{fe0f}b",
            "a\u{e0041}b",
            "a\rb",
            "a\0b",
            "a\u{a0}b",
            "\u{7f}",
        ] {
            assert!(odd(text).is_some(), "{text:?}");
        }
        for text in ["git diff\n\tx", "grüße", "日本語", "naïve —", "⚠\u{fe0f} x"] {
            assert_eq!(odd(text), None, "{text:?}");
        }
    }
}
