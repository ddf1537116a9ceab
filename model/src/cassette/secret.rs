//! Finds texts that look like a secret: files that an agent reads can contain keys that Posse does
//! not know.

use std::ops::Range;

/// The beginnings of secrets, and how many letters, digits, `-` or `_` must follow at least.
const SHAPES: [(&str, usize); 17] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("AIza", 35),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("ghu_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("gsk_", 20),
    ("hf_", 30),
];

/// How a private key begins and ends.
const PEM: (&str, &str) = ("-----BEGIN ", "PRIVATE KEY-----");
const PEM_END: &str = "-----END ";

/// The places in `text` that look like a secret, in no particular order.
pub(super) fn find(text: &str) -> impl Iterator<Item = Range<usize>> {
    let words = SHAPES.iter().flat_map(move |(prefix, least)| words(text, prefix, *least));
    words.chain(private_keys(text))
}

fn words<'a>(
    text: &'a str,
    prefix: &'a str,
    least: usize,
) -> impl Iterator<Item = Range<usize>> + 'a {
    text.match_indices(prefix).filter_map(move |(start, _)| {
        let inside = text[..start].bytes().next_back().is_some_and(is_part);
        let body = text[start + prefix.len()..].bytes().take_while(|byte| is_part(*byte)).count();
        (!inside && body >= least).then(|| start..start + prefix.len() + body)
    })
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// What stands between the lines that begin and end a private key; without an end, all the rest.
fn private_keys(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    text.match_indices(PEM.0).filter_map(|(start, _)| {
        let head = start + text[start..].find(PEM.1)? + PEM.1.len();
        let on_one_line = text[start..head].len() <= 60 && !text[start..head].contains('\n');
        let end = text[head..].find(PEM_END).map_or(text.len(), |length| head + length);
        on_one_line.then_some(head..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        find(text).map(|range| &text[range]).collect()
    }

    #[test]
    fn keys_of_all_kinds_are_seen() {
        let key = format!("sk-ant-api03-{}", "aB3_".repeat(20));
        assert_eq!(found(&format!("ANTHROPIC_API_KEY={key}\n")), [key.as_str()]);
        assert_eq!(found("id AKIAABCDEFGHIJKLMNOP."), ["AKIAABCDEFGHIJKLMNOP"]);
        let token = format!("ghp_{}", "x".repeat(36));
        assert_eq!(found(&format!("https://{token}@example.org")), [token.as_str()]);
    }

    #[test]
    fn words_that_only_begin_so_are_not() {
        for text in ["sk-learn", "risk-averse-people-and-their-habits", "hf_hub", "AKIA"] {
            assert_eq!(found(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn a_private_key_is_seen_even_without_its_end() {
        let text = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n";
        assert_eq!(found(text), ["\nMIIE\n"]);
        assert_eq!(found("-----BEGIN PRIVATE KEY-----MII"), ["MII"]);
        assert_eq!(found("-----BEGIN CERTIFICATE-----\nMII"), Vec::<&str>::new());
    }
}
