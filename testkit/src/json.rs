//! JSON text written straight into a buffer: replies are assembled once per request, and a tree
//! of values in between would cost more than the rest of the request.

/// Appends `text` as a JSON string, quotes included.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Appends `text` as it stands inside the quotes of a JSON string.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    let mut plain = 0;
    for (position, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[plain..position]);
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        plain = position + 1;
    }
    out.push_str(&text[plain..]);
}

#[cfg(test)]
mod tests {
    use super::push_string;

    #[test]
    fn every_string_is_read_back_as_it_was() {
        for text in ["", "plain", "\"\\\n\r\t\u{0}\u{1f}", "é 漢字 🦀 \u{2028}", "ends in \\"]
        {
            let mut out = String::new();
            push_string(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
