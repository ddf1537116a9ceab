//! Text of models and tools, made safe for a terminal: what would move the cursor, change the
//! title, reach the clipboard or turn the writing direction is shown, not done.

/// `text` with every control character but line breaks and tabs made visible.
///
/// Works character by character, so that a sequence split over two pieces is caught as well.
pub fn clean(text: &str) -> String {
    text.chars().filter_map(visible).collect()
}

/// The same on one line.
pub fn clean_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for character in clean(text).chars() {
        if count == limit {
            out.push('…');
            break;
        }
        let character = if character == '\n' || character == '\t' { ' ' } else { character };
        if character == ' ' && out.ends_with(' ') {
            continue;
        }
        out.push(character);
        count += 1;
    }
    out.trim().to_owned()
}

fn visible(character: char) -> Option<char> {
    match character {
        '\n' | '\t' => Some(character),
        '\r' => None,
        '\u{7f}' => Some('\u{2421}'),
        // The Unicode pictures of control characters stand in their order from 2400 on.
        c if (c as u32) < 0x20 => char::from_u32(0x2400 + c as u32),
        '\u{80}'..='\u{9f}' => Some('\u{fffd}'),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
            Some('\u{fffd}')
        }
        '\u{2028}' | '\u{2029}' => Some('\n'),
        '\u{e0000}'..='\u{e007f}' => Some('\u{fffd}'),
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_not_done() {
        for attack in ["\x1b[2J", "\x1b]52;c;AAAA\x07", "\u{9b}31m", "\x08\x08", "a\u{202e}b", "\0"]
        {
            let cleaned = clean(attack);
            let harmful = |c: char| {
                c.is_control() && c != '\n' && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c)
            };
            assert!(!cleaned.chars().any(harmful), "{cleaned:?}");
        }
        assert_eq!(clean("a\tb\r\nc é 中"), "a\tb\nc é 中");
    }

    #[test]
    fn a_line_is_one_line_and_no_longer_than_asked() {
        assert_eq!(clean_line("a\n\n  b\tc", 10), "a b c");
        assert_eq!(clean_line("abcdef", 3), "abc…");
    }
}
