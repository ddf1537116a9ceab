//! Makes text of models and tools safe for a terminal. Characters that would move the cursor,
//! change the title, access the clipboard or change the writing direction are shown instead of obeyed.

use std::fmt::Write;

/// `text` with every control character except line breaks and tabs made visible.
///
/// It works character by character, so that it also catches a sequence that is split over two pieces.
pub fn clean(text: &str) -> String {
    text.chars().filter_map(visible).collect()
}

/// Like [`clean`], on one line of at most `limit` characters.
pub fn clean_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for character in text.trim_end().chars().filter_map(visible_in_line) {
        if character == ' ' && (out.is_empty() || out.ends_with(' ')) {
            continue;
        }
        if count == limit {
            out.truncate(out.trim_end().len());
            out.push('…');
            break;
        }
        out.push(character);
        count += 1;
    }
    out.truncate(out.trim_end().len());
    out
}

/// The same JSON value, with every character escaped that a terminal would act on.
pub fn clean_json(json: String) -> String {
    // Line breaks and tabs can only be between values; in strings they are escaped already.
    let harmless = |c: char| matches!(c, '\n' | '\t') || visible(c) == Some(c);
    if json.chars().all(harmless) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    let mut units = [0; 2];
    for character in json.chars() {
        match harmless(character) {
            true => out.push(character),
            false => {
                for unit in character.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out
}

/// `text` with every character escaped that could hide something or act on the terminal. For text
/// that a person has to approve.
pub fn exact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push('\n'),
            '\r' => out.push_str("\\r"),
            // Characters that are invisible or look like others: spaces of other widths, joiners,
            // marks of direction or layout, overlays, tags, private characters.
            '\u{a0}'
            | '\u{ad}'
            | '\u{334}'..='\u{338}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{1680}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{20d2}'..='\u{20d3}'
            | '\u{20d8}'..='\u{20da}'
            | '\u{20e5}'..='\u{20e6}'
            | '\u{20ea}'..='\u{20eb}'
            | '\u{2800}'
            | '\u{3000}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{13455}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}' => {
                let _ = write!(out, "\\u{{{:x}}}", character as u32);
            }
            '\t' => out.push('\t'),
            other if other.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", other as u32);
            }
            other => out.push(other),
        }
    }
    out
}

/// Like [`visible`], for one line: also shows characters that have no width or break the line.
fn visible_in_line(character: char) -> Option<char> {
    match character {
        '\n' | '\t' | '\r' => Some(' '),
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' => {
            Some('\u{fffd}')
        }
        '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => Some('\u{fffd}'),
        other => visible(other).map(|shown| if shown == '\n' { ' ' } else { shown }),
    }
}

fn visible(character: char) -> Option<char> {
    match character {
        '\n' | '\t' => Some(character),
        '\r' => None,
        '\u{7f}' => Some('\u{2421}'),
        // The Unicode pictures of control characters are in the same order, from 2400 on.
        c if (c as u32) < 0x20 => char::from_u32(0x2400 + c as u32),
        '\u{80}'..='\u{9f}' => Some('\u{fffd}'),
        // Characters that change the writing direction.
        '\u{61c}' | '\u{200e}' | '\u{200f}' => Some('\u{fffd}'),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some('\u{fffd}'),
        '\u{2028}' | '\u{2029}' => Some('\n'),
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => Some('\u{fffd}'),
        other => Some(other),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a78_escape_sequences_are_shown_not_done() {
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
        assert_eq!(clean_line("  abc  ", 3), "abc");
        assert_eq!(clean_line("echo hi\rtouch P", 40), "echo hi touch P");
        assert_eq!(
            clean_line("a\u{200b}b\u{ad}c\u{2062}\u{3164}\u{180e}", 40),
            "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn json_keeps_its_value_and_loses_what_a_terminal_would_act_on() {
        let value =
            serde_json::json!({"a": "\u{1b}[2J \u{9b}31m \u{7f} \u{202e} \u{e0041} é 中\n"});
        for text in [serde_json::to_string(&value), serde_json::to_string_pretty(&value)] {
            let cleaned = clean_json(text.unwrap());
            assert_eq!(serde_json::from_str::<serde_json::Value>(&cleaned).unwrap(), value);
            assert!(cleaned.chars().all(|c| c == '\n' || visible(c) == Some(c)), "{cleaned:?}");
            assert!(cleaned.contains("é 中"), "{cleaned}");
        }
    }
}
