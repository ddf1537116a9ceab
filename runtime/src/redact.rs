//! Removes secrets from text, both as they are and in common encodings.
//!
//! It only knows the values; each sink of text calls it. It does not recognize other encodings.

mod stream;

use aho_corasick::{AhoCorasick, MatchKind};
use async_trait::async_trait;
use futures_util::FutureExt;
use posse_agent::{Answer, SeenFiles, Tool, ToolContext, panic_text};
use posse_model::{Unescaped, forms_of_secret as forms};
use posse_protocol::{Event, Part, ToolOutput, ToolSpec};
use posse_store::Scrub;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// The shortest text that counts as a secret, and the shortest known encoding of a part of one.
const SHORTEST: usize = 8;
/// Plain letters up to this length count as a word: a key such as `lm-studio` is not secret.
const LONGEST_WORD: usize = 20;

/// The parts of variable names that mark secrets.
const MARKS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "WEBHOOK"];

/// True for the name of a variable such as `ANTHROPIC_API_KEY`. The name of a file or folder is not a secret.
pub fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let names_path =
        ["_FILE", "_PATH", "_DIR", "_HOME", "_URL"].iter().any(|it| name.ends_with(it));
    MARKS.iter().any(|mark| name.contains(mark)) && !names_path
}

/// Removes secrets from text. It is cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    forms: Option<Arc<AhoCorasick>>,
    /// The forms themselves, for adding more.
    all: Arc<Vec<Vec<u8>>>,
}

impl Redactor {
    /// Returns a redactor for these secrets. It leaves out texts that are too short.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        Redactor::default().and(secrets)
    }

    /// Returns a copy that knows these secrets as well.
    #[must_use]
    pub fn and<'s>(&self, secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut all: Vec<Vec<u8>> = self.all.to_vec();
        for secret in secrets.into_iter().map(str::trim).filter(|secret| is_secret(secret)) {
            all.extend(forms(secret).into_iter().filter(|form| form.len() >= SHORTEST));
        }
        all.sort();
        all.dedup();
        if all.is_empty() {
            return Redactor::default();
        }
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&all);
        Redactor { forms: built.ok().map(Arc::new), all: Arc::new(all) }
    }

    /// Returns `text` without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut clean, mut end) = (String::with_capacity(text.len()), 0);
        for range in found {
            clean.push_str(&text[end..range.start]);
            clean.push_str(REDACTED);
            end = range.end;
        }
        clean.push_str(&text[end..]);
        Cow::Owned(clean)
    }

    /// Returns where `text` has secrets, in order and without overlap.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let Some(forms) = &self.forms else { return Vec::new() };
        let mut found: Vec<Range<usize>> = forms.find_iter(text).map(|it| it.range()).collect();
        if let Some(read) = Unescaped::of(text.as_bytes()) {
            let ranges = forms.find_iter(&read.bytes).map(|it| it.range());
            let ranges = ranges.filter(|range| read.is_escaped(range.clone()));
            found.extend(ranges.map(|range| read.place(range)));
        }
        // The bytes of a secret may be part of a longer character.
        for range in &mut found {
            range.start = text.floor_char_boundary(range.start);
            range.end = text.ceil_char_boundary(range.end);
        }
        found.sort_by_key(|range| (range.start, range.end));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match apart.last_mut().filter(|last| range.start < last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => apart.push(range),
            }
        }
        apart
    }

    /// Returns the secrets in all forms.
    pub(crate) fn forms(&self) -> &[Vec<u8>] {
        &self.all
    }

    /// True when it knows no secrets.
    pub fn is_empty(&self) -> bool {
        self.forms.is_none()
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                let before = std::mem::take(fields);
                for (name, mut value) in before {
                    self.value(&mut value);
                    fields.insert(self.text(&name).into_owned(), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns `tool` wrapped so that its results have no secrets.
    pub(crate) fn around(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        match self.is_empty() {
            true => tool,
            false => Arc::new(Redacted { tool, redactor: self.clone() }),
        }
    }

    /// Returns `output` without secrets.
    pub(crate) fn output(&self, mut output: ToolOutput) -> ToolOutput {
        for part in &mut output.parts {
            if let Part::Text(text) = part
                && let Cow::Owned(clean) = self.text(&text.text)
            {
                text.text = clean;
            }
        }
        if let Some(change) = &mut output.change
            && let Cow::Owned(clean) = self.text(change)
        {
            *change = clean;
        }
        output
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor(hidden)")
    }
}

impl Scrub for Redactor {
    fn text(&self, text: &str) -> Option<String> {
        match Redactor::text(self, text) {
            Cow::Owned(clean) => Some(clean),
            Cow::Borrowed(_) => None,
        }
    }

    fn event(&self, event: &Event, body: &str) -> Result<Option<Event>, String> {
        if self.find(body).is_empty() {
            return Ok(None);
        }
        let mut value = serde_json::to_value(event).map_err(|error| error.to_string())?;
        self.value(&mut value);
        let clean: Event = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let left = serde_json::to_string(&clean).map_err(|error| error.to_string())?;
        match self.find(&left).is_empty() {
            true => Ok(Some(clean)),
            false => Err("it is in a place that cannot be changed".to_owned()),
        }
    }
}

/// A tool whose results have no secrets, so that neither the agent nor its vendor sees them.
struct Redacted {
    tool: Arc<dyn Tool>,
    redactor: Redactor,
}

#[async_trait]
impl Tool for Redacted {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn preview(&self, input: &Value) -> Option<String> {
        let shown = self.tool.preview(input).await?;
        Some(self.redactor.text(&shown).into_owned())
    }

    async fn refusal(&self, input: &Value, seen: Option<&SeenFiles>) -> Option<String> {
        let why = self.tool.refusal(input, seen).await?;
        Some(self.redactor.text(&why).into_owned())
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let (watched, stream) = self.redactor.watching(context);
        let answer = AssertUnwindSafe(self.tool.call(input, &watched)).catch_unwind().await;
        stream.end(&*context.deltas);
        match answer {
            Ok(Answer::Done(output)) => Answer::Done(self.redactor.output(output)),
            Ok(pending) => pending,
            // The model sees the text of a panic, like any other output.
            Err(panic) => match panic_text(&*panic).map(|text| self.redactor.text(text)) {
                Some(Cow::Owned(clean)) => resume_unwind(Box::new(clean)),
                _ => resume_unwind(panic),
            },
        }
    }
}

/// True when `text` is long enough and no plain word.
fn is_secret(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    text.len() >= SHORTEST && !(text.len() < LONGEST_WORD && text.bytes().all(plain))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use posse_protocol::MessageReceived;

    const SECRET: &str = "sk-canary/8f3b1c+\"x\"";

    fn check(text: &str) {
        let clean = Redactor::new([SECRET]).text(text).into_owned();
        assert!(clean.contains(REDACTED), "{text}");
        assert!(!clean.contains("canary") && !clean.contains("8f3b1c"), "{clean}");
    }

    #[test]
    fn a_secret_is_found_in_a_dozen_forms() {
        check(&format!("plain: {SECRET}."));
        check(&serde_json::to_string(&serde_json::json!({"key": SECRET})).unwrap());
        check("sk-canary%2F8f3b1c%2B%22x%22");
        check("sk-canary%2f8f3b1c%2b%22x%22");
        let bytes = SECRET.as_bytes();
        check(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        check(&bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>());
        for before in ["", "a", "ab", "abc", "Authorization: Bearer "] {
            let around = format!("{before}{SECRET}{before}!");
            check(&STANDARD.encode(&around));
            check(&URL_SAFE.encode(&around));
        }
        check(&SECRET.chars().rev().collect::<String>());
        check(&bytes.iter().map(|byte| format!("%{byte:02x}")).collect::<String>());
        check(&bytes.iter().map(|byte| format!("%{byte:02X}")).collect::<String>());
        let mixed = |(at, byte): (usize, &u8)| match at % 3 {
            0 => format!("%{byte:02x}"),
            1 => format!("%{byte:02X}"),
            _ => (*byte as char).to_string(),
        };
        check(&bytes.iter().enumerate().map(mixed).collect::<String>());
        let clean = Redactor::new([SECRET]).text("50%, 100%, %e2%82%ac").into_owned();
        assert_eq!(clean, "50%, 100%, %e2%82%ac", "other text stays");
    }

    #[test]
    fn words_and_short_texts_are_no_secrets() {
        for text in ["", "ollama", "sk-test", "lm-studio", "not-needed"] {
            assert!(Redactor::new([text]).is_empty(), "{text}");
        }
        for text in ["hunter22", "sk-canary-8f3b1c", "correct-horse-battery-staple"] {
            assert!(!Redactor::new([text]).is_empty(), "{text}");
        }
    }

    #[test]
    fn an_event_is_rid_of_it_wherever_it_stands() {
        let redactor = Redactor::new([SECRET, "other-secret-1"]);
        let event = Event::MessageReceived(MessageReceived::user(format!("it is {SECRET}")));
        let body = serde_json::to_string(&event).unwrap();
        let clean = redactor.event(&event, &body).unwrap().unwrap();
        assert_eq!(clean, Event::MessageReceived(MessageReceived::user("it is [redacted]")));
        let body = serde_json::to_string(&clean).unwrap();
        assert_eq!(redactor.event(&clean, &body).unwrap(), None);
        assert_eq!(format!("{redactor:?}"), "Redactor(hidden)");
    }
}
