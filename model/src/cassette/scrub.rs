//! Removes what must not be in a cassette: keys, and paths of this machine.
//!
//! Replaces such passages in texts by marks, and marks by the paths of the present machine. The
//! same text gives the same marks in a recording and in a replay. Does no I/O.

use super::secret;
use crate::{Unescaped, forms_of_secret};
use memchr::memmem;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Stands for the workspace.
pub(super) const WORKSPACE: &str = "{{posse:workspace}}";
/// Stands for the user's home.
pub(super) const HOME: &str = "{{posse:home}}";
/// Stands for a key, or for a text that looks like one.
pub(super) const SECRET: &str = "{{posse:secret}}";

/// A shorter key is a placeholder for a local server, and may be a common word.
const SHORTEST_KEY: usize = 8;

/// Folders of this machine. Neither path is written into a cassette.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The workspace of the run.
    pub workspace: PathBuf,
    /// The home folder of the user.
    pub home: Option<PathBuf>,
}

/// The texts to look for.
#[derive(Debug, Default)]
pub(super) struct Scrub {
    needles: Vec<Needle>,
    /// The path for each mark, escaped for a JSON string.
    places: Vec<(&'static str, String)>,
}

#[derive(Debug)]
struct Needle {
    text: String,
    mark: Cow<'static, str>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A path: `/work` is not in `/workshop` and not in `/home/work`.
    Path,
    /// Anywhere.
    Key,
}

/// A passage and the mark that replaces it.
pub(super) type Passage<'s> = (Range<usize>, &'s str);

impl Scrub {
    pub(super) fn new<'a>(places: &Places, keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut scrub = Scrub::default();
        scrub.place(WORKSPACE, &places.workspace);
        if let Some(home) = &places.home {
            scrub.place(HOME, home);
        }
        for key in keys.into_iter().map(str::trim).filter(|key| key.len() >= SHORTEST_KEY) {
            let forms = forms_of_secret(key).into_iter().map(String::from_utf8);
            for text in forms.flatten().filter(|form| form.len() >= SHORTEST_KEY) {
                scrub.hide(text);
            }
        }
        scrub
    }

    /// The same, which also removes these texts.
    pub(super) fn and<'a>(mut self, texts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        for text in texts.into_iter().filter_map(|text| std::str::from_utf8(text).ok()) {
            self.hide(text.to_owned());
        }
        self
    }

    fn hide(&mut self, text: String) {
        if !text.is_empty() && !self.needles.iter().any(|needle| needle.text == text) {
            self.needles.push(Needle { text, mark: Cow::Borrowed(SECRET), kind: Kind::Key });
        }
    }

    fn place(&mut self, mark: &'static str, path: &Path) {
        let real = path.canonicalize().ok();
        let known = [Some(path), real.as_deref()].into_iter().flatten();
        for text in known.filter_map(Path::to_str).map(|text| text.trim_end_matches('/')) {
            let absolute = text.len() > 1 && text.starts_with('/');
            if absolute && !self.needles.iter().any(|needle| needle.text == text) {
                let (text, mark) = (text.to_owned(), Cow::Borrowed(mark));
                self.needles.push(Needle { text, mark, kind: Kind::Path });
            }
        }
        let quoted = Value::from(path.display().to_string().trim_end_matches('/')).to_string();
        let inside = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        self.places.push((mark, inside.unwrap_or_default().to_owned()));
    }

    /// Replaces names by other names.
    pub(super) fn renaming<'a>(names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let needle = |(text, name): (&str, &str)| Needle {
            text: text.to_owned(),
            mark: Cow::Owned(name.to_owned()),
            kind: Kind::Key,
        };
        Scrub { needles: names.into_iter().map(needle).collect(), places: Vec::new() }
    }

    /// The passages of `text` that must go, in order and without overlap.
    pub(super) fn find(&self, text: &str) -> Vec<Passage<'_>> {
        let mut found: Vec<Passage<'_>> = secret::find(text).map(|range| (range, SECRET)).collect();
        for needle in &self.needles {
            let starts = memmem::find_iter(text.as_bytes(), needle.text.as_bytes());
            let ranges = starts.map(|start| start..start + needle.text.len());
            let ranges = ranges.filter(|range| match needle.kind {
                Kind::Key => true,
                Kind::Path => is_path(text, range),
            });
            found.extend(ranges.map(|range| (range, &*needle.mark)));
        }
        let keys = || self.needles.iter().filter(|needle| needle.mark == SECRET);
        if let Some(read) = Unescaped::of(text.as_bytes()).filter(|_| keys().next().is_some()) {
            for needle in keys() {
                let starts = memmem::find_iter(&read.bytes, needle.text.as_bytes());
                let ranges = starts.map(|start| start..start + needle.text.len());
                let ranges = ranges.filter(|range| read.is_escaped(range.clone()));
                found.extend(ranges.map(|range| (read.place(range), SECRET)));
            }
        }
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut end = 0;
        found.retain(|(range, _)| {
            let free = range.start >= end;
            end = if free { range.end } else { end };
            free
        });
        found
    }

    /// `text` with marks.
    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let passages = self.find(text);
        if passages.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut out, mut end) = (String::with_capacity(text.len()), 0);
        for (range, mark) in passages {
            out.push_str(&text[end..range.start]);
            out.push_str(mark);
            end = range.end;
        }
        out.push_str(&text[end..]);
        Cow::Owned(out)
    }

    /// Puts marks into every text of `value`, names of fields included.
    pub(super) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(scrubbed) = self.text(text) {
                    *text = scrubbed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                if fields.keys().any(|name| !self.find(name).is_empty()) {
                    let old = std::mem::take(fields);
                    fields.extend(
                        old.into_iter().map(|(name, value)| (self.text(&name).into_owned(), value)),
                    );
                }
                fields.values_mut().for_each(|value| self.value(value));
            }
            _ => {}
        }
    }

    /// Bytes that are not text, with marks in place of what is found in them.
    pub(super) fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        for needle in &self.needles {
            let starts: Vec<usize> = memmem::find_iter(&out, needle.text.as_bytes()).collect();
            for start in starts.into_iter().rev() {
                out.splice(start..start + needle.text.len(), needle.mark.bytes());
            }
        }
        out
    }

    /// A path and query of a URL with marks: no value of a parameter that may be secret remains.
    pub(super) fn path(&self, path: &str, query: Option<&str>) -> String {
        let mut out = self.text(path).into_owned();
        for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
            out.push(if index == 0 { '?' } else { '&' });
            match pair.split_once('=') {
                Some((name, _)) if is_secret_name(name) => {
                    out.push_str(name);
                    out.push('=');
                    out.push_str(SECRET);
                }
                _ => out.push_str(&self.text(pair)),
            }
        }
        out
    }

    /// The body of a recorded answer, with the paths of this machine in place of marks.
    pub(super) fn fill<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for (mark, place) in &self.places {
            if text.contains(mark) {
                text = Cow::Owned(text.replace(mark, place));
            }
        }
        text
    }
}

/// Whether the path in `range` is not a part of a longer name.
fn is_path(text: &str, range: &Range<usize>) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let before = text[..range.start].chars().next_back();
    let mut after = text[range.end..].chars();
    let ends = match after.next() {
        // `/work.` ends a sentence, `/work.bak` is another file.
        Some('.') => !after.next().is_some_and(part),
        Some(next) => !part(next),
        None => true,
    };
    ends && !before.is_some_and(|c| part(c) || c == '.')
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "password", "sig"].iter().any(|sign| name.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scrub() -> Scrub {
        let places = Places { workspace: "/home/ann/work".into(), home: Some("/home/ann".into()) };
        Scrub::new(&places, ["key-of-anthropic", "short"])
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(scrub().text(text), expected);
    }

    #[test]
    fn places_and_keys_get_their_marks() {
        check("in /home/ann/work/a.rs", "in {{posse:workspace}}/a.rs");
        check("/home/ann/work", WORKSPACE);
        check("see /home/ann/work.", "see {{posse:workspace}}.");
        check("file:///home/ann/.cargo", "file://{{posse:home}}/.cargo");
        check("it is key-of-anthropic!", "it is {{posse:secret}}!");
        check("XXkey-of-anthropicXX", "XX{{posse:secret}}XX");
        check("a %6bey-%6F%66-anthropi%63!", "a {{posse:secret}}!");
        let more = scrub().and([&b"ghp_TokenValue"[..], b""]);
        assert_eq!(more.text("it is ghp_TokenValue."), "it is {{posse:secret}}.");
        assert_eq!(more.text("%67hp_TokenValue"), SECRET);
    }

    #[test]
    fn what_only_looks_like_a_place_or_is_too_short_stays() {
        for text in ["/home/ann/workshop", "/home/ann-b", "/mnt/home/ann/work2"] {
            let marked = scrub().text(text).into_owned();
            assert!(!marked.contains(WORKSPACE), "{marked}");
        }
        check("/home/annette and /srv/home/ann", "/home/annette and /srv/home/ann");
        check("/home/ann/work.bak/x", "{{posse:home}}/work.bak/x");
        check("a short word", "a short word");
    }

    #[test]
    fn a_value_is_marked_in_all_its_texts_and_filled_again() {
        let mut value = json!({"/home/ann/work/a": ["/home/ann/work", 1], "b": {"c": "/home/ann"}});
        let before = value.to_string();
        scrub().value(&mut value);
        let marked = value.to_string();
        assert!(!marked.contains("ann"), "{marked}");
        assert_eq!(scrub().fill(&marked), before);
    }

    #[test]
    fn a_place_with_strange_letters_is_filled_so_that_json_stays_json() {
        let places = Places { workspace: "/tmp/a \"b\"\\c".into(), home: None };
        let scrub = Scrub::new(&places, []);
        let value = json!({"cwd": "/tmp/a \"b\"\\c/d"});
        let mut marked = value.clone();
        scrub.value(&mut marked);
        assert_eq!(marked, json!({"cwd": "{{posse:workspace}}/d"}));
        let filled: Value = serde_json::from_str(&scrub.fill(&marked.to_string())).unwrap();
        assert_eq!(filled, value);
    }

    #[test]
    fn a_query_loses_the_values_that_may_be_secret() {
        let shown = scrub().path("/v1/models", Some("alt=sse&api_key=abc&x-token=1"));
        let expected = "/v1/models?alt=sse&api_key={{posse:secret}}&x-token={{posse:secret}}";
        assert_eq!(shown, expected);
        assert_eq!(scrub().path("/v1", None), "/v1");
    }

    #[test]
    fn bytes_that_are_no_text_lose_keys_too() {
        let scrubbed = scrub().bytes(b"\xff key-of-anthropic \xfe");
        assert_eq!(scrubbed, b"\xff {{posse:secret}} \xfe");
    }
}
