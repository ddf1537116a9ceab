//! Other ways to write a word of a shell text: escapes, alternatives in braces, and patterns.

use super::settings::Setting;
use super::words::{Places, without_quotes};
use globset::GlobBuilder;
use std::collections::BTreeSet;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

/// The maximum number of words for which one word with braces stands.
const ALTERNATIVES: usize = 64;

/// The maximum number of bytes of a word with braces.
const LONGEST: usize = 1_000;

/// Characters between the words of a shell, outside quotes.
const BLANKS: &[char] = &[' ', '\t', '\n', '\r', ';', '|', '&', '(', ')', '<', '>', '`', '='];

/// The text with what `env -S` and the shell put in place of some of its words. `None` if that is nothing new.
pub(super) fn spelled_out(text: &str) -> Option<String> {
    let is_env = text.contains("env");
    let mut spelled = text.to_owned();
    if is_env {
        for escape in ["\\_", "\\t", "\\v", "\\f", "\\r", "\\n"] {
            spelled = spelled.replace(escape, " ");
        }
    }
    let bare = without_quotes(&spelled);
    let mut all = String::with_capacity(bare.len());
    for token in bare.split_inclusive(BLANKS) {
        let word = token.trim_end_matches(BLANKS);
        if word.len() > LONGEST {
            all.push_str(token);
            continue;
        }
        let mut words = alternatives(word);
        if is_env {
            words.iter_mut().for_each(|word| *word = apart_from_option(word));
        }
        let words: Vec<String> = words.iter().map(|word| with_any_letter(word)).collect();
        all.push_str(&words.join(" "));
        all.push_str(&token[word.len()..]);
    }
    (spelled != text || all != bare).then_some(all)
}

/// `-iSsh` as `-iS sh`.
fn apart_from_option(word: &str) -> String {
    let is_of = |before: &str| {
        before.strip_prefix('-').is_some_and(|it| it.bytes().all(|it| it.is_ascii_alphanumeric()))
    };
    match word.split_once('S') {
        Some((before, after)) if is_of(before) && !after.is_empty() => format!("{before}S {after}"),
        _ => word.to_owned(),
    }
}

/// The words for which a word with braces stands, as `a{b,c}`. Another word stands for itself.
fn alternatives(word: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut ahead = vec![word.to_owned()];
    while let Some(word) = ahead.pop() {
        match first_alternatives(&word) {
            Some(words) => ahead.extend(words.into_iter().rev()),
            None => done.push(word),
        }
        if done.len() + ahead.len() > ALTERNATIVES {
            // The rest stays as it is written.
            done.extend(ahead.into_iter().rev());
            return done;
        }
    }
    done
}

/// The words that come from the first braces with a comma or `..` in them.
fn first_alternatives(word: &str) -> Option<Vec<String>> {
    for (start, _) in word.match_indices('{').filter(|(at, _)| !word[..*at].ends_with('$')) {
        let (mut depth, mut from, mut parts) = (0_usize, start + 1, Vec::new());
        for (at, letter) in word[start..].char_indices().map(|(at, it)| (start + at, it)) {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 || depth == 1 && letter == ',' {
                parts.push(&word[from..at]);
                from = at + 1;
            }
            if depth == 0 {
                break;
            }
        }
        if depth > 0 {
            continue;
        }
        let (before, after) = (&word[..start], &word[from..]);
        let joined = |part: &str| format!("{before}{part}{after}");
        match &*parts {
            [only] => match range(only) {
                Some(parts) => return Some(parts.iter().map(|part| joined(part)).collect()),
                None => continue,
            },
            parts => return Some(parts.iter().map(|part| joined(part)).collect()),
        }
    }
    None
}

/// The letters or numbers of `a..c`.
fn range(text: &str) -> Option<Vec<String>> {
    let (first, last) = text.split_once("..")?;
    let letter = |text: &str| text.parse::<char>().ok().filter(char::is_ascii_alphabetic);
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        let (first, last) = (first.min(last), first.max(last));
        return Some((first..=last).map(String::from).collect());
    }
    let (first, last): (i32, i32) = (first.parse().ok()?, last.parse().ok()?);
    let (first, last) = (first.min(last), first.max(last));
    let all = first..=last;
    Some(all.take(ALTERNATIVES).map(|it| it.to_string()).collect())
}

/// A word with `?` in place of the letters in brackets.
fn with_any_letter(word: &str) -> String {
    let mut rest = word;
    let mut all = String::new();
    while let Some((before, after)) = rest.split_once('[') {
        // `[]a]` and `[[:alpha:]]`.
        let start = after.char_indices().nth(1).map_or(after.len(), |(at, _)| at);
        let Some(end) = after[start..].find(']').map(|at| start + at) else { break };
        let is_class = after[..end].contains("[:");
        let end = after.find(":]]").filter(|_| is_class).map_or(end, |at| at + 2);
        all.push_str(before);
        all.push('?');
        rest = &after[end + 1..];
    }
    all + rest
}

/// Reads on after `$'`, up to the end of the quotes.
pub(super) fn decoded(letters: &mut Peekable<Chars>) -> String {
    let mut all = String::new();
    while let Some(letter) = letters.next() {
        let escaped = match letter {
            '\'' => break,
            '\\' => letters.next(),
            _ => {
                all.push(letter);
                continue;
            }
        };
        let (first, most, base) = match escaped {
            None => break,
            Some('x') => (None, 2, 16),
            Some('u') => (None, 4, 16),
            Some('U') => (None, 8, 16),
            Some(digit @ '0'..='7') => (Some(digit), 2, 8),
            Some('n' | 't' | 'r' | 'v' | 'f') => {
                all.push(' ');
                continue;
            }
            Some(other) => {
                all.push(other);
                continue;
            }
        };
        let mut digits: String = first.into_iter().collect();
        for _ in 0..most {
            digits.extend(letters.next_if(|it| it.is_digit(base)));
        }
        let code = u32::from_str_radix(&digits, base).ok();
        all.extend(code.and_then(char::from_u32));
    }
    all
}

/// The settings that a text gives to git with `-c`.
pub(super) fn given(text: &str) -> Vec<Setting> {
    let words = split(text);
    let after = words.windows(2).filter(|pair| pair[0] == "-c").map(|pair| &pair[1]);
    let settings = after.filter_map(|word| {
        let (key, value) = word.split_once('=')?;
        let (section, rest) = key.split_once('.')?;
        let (part, name) = rest.rsplit_once('.').unwrap_or(("", rest));
        let (section, name) = (section.to_lowercase(), name.to_lowercase());
        let (part, value) = (part.to_owned(), Some(value.to_owned()));
        Some(Setting { section, part, name, value, range: 0..0 })
    });
    settings.collect()
}

/// The words of a text, without the quotes around them or their parts.
fn split(text: &str) -> Vec<String> {
    let (mut all, mut word) = (Vec::new(), String::new());
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.extend(letters.next()),
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(it)) if it == letter => quote = None,
            // Texts with an odd number of quotes, as in a comment, are confused for one line at most.
            ('\n', _) | (' ' | '\t' | '\r', None) => {
                quote = None;
                all.push(std::mem::take(&mut word));
            }
            _ => word.push(letter),
        }
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all
}

/// True for a word that the shell replaces by the names that it matches.
pub(super) fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?'])
}

impl Places<'_> {
    /// The files in the workspace that a pattern matches now.
    pub(super) fn matching(&self, pattern: &str, folders: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let mut found = BTreeSet::new();
        for place in self.places(pattern, folders) {
            let Ok(below) = place.strip_prefix(self.workspace) else { continue };
            let mut at = vec![self.workspace.to_owned()];
            for part in below.components() {
                let part = Path::new(part.as_os_str());
                at = at.iter().flat_map(|folder| entries_like(folder, part)).collect();
            }
            found.extend(at.into_iter().filter(|path| self.is_file(path)));
        }
        found.into_iter().collect()
    }
}

/// What is in the folder under a name that the pattern matches.
fn entries_like(folder: &Path, pattern: &Path) -> Vec<PathBuf> {
    let Some(text) = pattern.to_str().filter(|text| is_pattern(text)) else {
        return vec![folder.join(pattern)];
    };
    let Ok(glob) = GlobBuilder::new(text).build() else { return Vec::new() };
    let glob = glob.compile_matcher();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| glob.is_match(entry.file_name())).map(|entry| entry.path()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn words_are_spelled_out_as_env_and_the_shell_do() {
        for (text, expected) in [
            ("sh scripts/{x,}.sh", Some("sh scripts/x.sh scripts/.sh")),
            ("{sh,a/{b,c}};ls", Some("sh a/b a/c;ls")),
            ("a{1..3} {c..a}", Some("a1 a2 a3 a b c")),
            ("a/[x].s[[:alpha:]]b [!a]", Some("a/?.s?b ?")),
            ("env -S sh\\_a\\tb", Some("env -S sh a b")),
            ("env -iSsh a", Some("env -iS sh a")),
            (
                "{ sh a; } ${A} ${B:-{c,d}} [ -f x ] {a}",
                Some("{ sh a; } ${A} ${B:-c} ${B:-d} [ -f x ] {a}"),
            ),
            ("{a..b..c} a{b {,", None),
            ("sh 'a'", None),
        ] {
            assert_eq!(spelled_out(text).as_deref(), expected, "{text}");
        }
        let many = "{a,b}".repeat(40);
        assert!(spelled_out(&many).is_none_or(|it| it.len() < 100_000));
    }

    #[test]
    fn escapes_in_quotes_are_decoded() {
        for (text, expected) in [
            ("sh $'scripts\\x2fx.sh' y", "sh scripts/x.sh y"),
            ("$'\\163h' $'a\\'b' $'\\u002f' $'\\q' \"$'a'\"", "sh a'b / q $a"),
            ("sh a\\\nb", "sh ab"),
            ("$'\\xff\\U00110000", "ÿ"),
        ] {
            assert_eq!(without_quotes(text), expected, "{text}");
        }
    }

    #[test]
    fn settings_that_a_text_gives_are_read() {
        let text = "-c core.hooksPath=a/h -c 'alias.B.x=!sh y z' -c a commit";
        let found = given(text);
        let found: Vec<_> =
            found.iter().map(|it| (it.key(), it.value.as_deref().unwrap())).collect();
        let expected = [("core.hookspath", "a/h"), ("alias.B.x", "!sh y z")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)));
    }
}
