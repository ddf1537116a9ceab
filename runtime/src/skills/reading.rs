//! Reads a SKILL.md or a command: its front matter as fields, and its body. A skill grants nothing, so the
//! reader is tolerant: it leaves out invalid fields and reports them.

use super::tolerant;
use crate::error::quoted;
use crate::front_matter::node::{Content, Node};
use crate::front_matter::problem::{Findings, Position};
use crate::front_matter::yaml::{self, YamlError};
use crate::front_matter::{self, HEAD_BYTES};
use crate::policy::Rule;
use serde_json::Value;

/// The most characters of a description.
const DESCRIPTION: usize = 1_024;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A SKILL.md.
    Skill,
    /// A command, which needs no front matter.
    Command,
}

/// The content of a SKILL.md.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    pub(crate) name: Option<(String, Position)>,
    pub(crate) description: String,
    pub(crate) allowed_tools: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) argument_hint: String,
    pub(crate) is_manual: bool,
    pub(crate) license: String,
    pub(crate) body: String,
}

/// A key of the front matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Name,
    Description,
    WhenToUse,
    AllowedTools,
    Arguments,
    ArgumentHint,
    DisableModelInvocation,
    License,
    /// Information for other programs, without effect in Posse.
    Remark,
    /// Has an effect in Claude Code, but not in Posse yet.
    NotInForce,
}

const KEYS: [(&str, Key); 22] = [
    ("name", Key::Name),
    ("description", Key::Description),
    ("when_to_use", Key::WhenToUse),
    ("allowed-tools", Key::AllowedTools),
    ("arguments", Key::Arguments),
    ("argument-hint", Key::ArgumentHint),
    ("disable-model-invocation", Key::DisableModelInvocation),
    ("license", Key::License),
    ("compatibility", Key::Remark),
    ("metadata", Key::Remark),
    ("version", Key::Remark),
    ("author", Key::Remark),
    ("tags", Key::Remark),
    ("category", Key::Remark),
    ("user-invocable", Key::NotInForce),
    ("model", Key::NotInForce),
    ("effort", Key::NotInForce),
    ("context", Key::NotInForce),
    ("agent", Key::NotInForce),
    ("hooks", Key::NotInForce),
    ("paths", Key::NotInForce),
    ("shell", Key::NotInForce),
];

impl Key {
    /// Returns the key that `text` means, in any case, with its words joined by `-`, `_` or
    /// nothing.
    pub(crate) fn of(text: &str) -> Option<Key> {
        let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
        let wanted = plain(text);
        KEYS.iter().find(|(name, _)| plain(name) == wanted).map(|(_, key)| *key)
    }
}

/// Reads a text of this form; `None` if its front matter is missing or unreadable.
pub(crate) fn read(text: &str, form: Form, findings: &mut Findings) -> Option<Written> {
    let text = front_matter::plain(text);
    let first = Position { line: 1, column: 1 };
    let parts = match front_matter::split(&text) {
        Ok(Some(parts)) => parts,
        Ok(None) if form == Form::Command => {
            let mut written = Written { body: text.trim().to_owned(), ..Written::default() };
            check_body(&mut written, form, (first, 1), &text, findings);
            return Some(written);
        }
        Ok(None) => {
            let reason = "it has no front matter: begin it with lines `---`, `name: …`, \
                          `description: …`, `---`";
            findings.error(first, reason);
            return None;
        }
        Err(line) => {
            let reason = "the front matter that begins here has no end: a line `---` is missing";
            findings.error(Position { line, column: 1 }, reason);
            return None;
        }
    };
    let begin = Position { line: parts.first_line, column: 1 };
    if parts.head.len() > HEAD_BYTES {
        let reason = format!("the front matter has more than the {HEAD_BYTES} bytes that are read");
        findings.error(begin, reason);
        return None;
    }
    let node = match yaml::read(parts.head, parts.first_line) {
        Ok(node) if matches!(node.content, Content::Map(_)) => node,
        Ok(node) => {
            let reason = format!("the front matter is {}, not keys with values", node.kind());
            findings.error(begin, reason);
            return None;
        }
        Err(YamlError::Syntax { place, reason }) => {
            tolerant::read(parts.head, parts.first_line, (place, &reason), findings)
        }
        Err(YamlError::Refused { place, reason }) => {
            findings.error(place, reason);
            return None;
        }
    };
    let mut written = Written { body: parts.body.trim().to_owned(), ..Written::default() };
    fields(&mut written, &node, findings);
    let body_line = parts.first_line + parts.head.lines().count() as u32 + 1;
    check_body(&mut written, form, (begin, body_line), parts.body, findings);
    Some(written)
}

fn fields(written: &mut Written, node: &Node, findings: &mut Findings) {
    let Content::Map(entries) = &node.content else { return };
    let mut when = String::new();
    for (key, value) in entries {
        let place = value.place;
        match Key::of(&key.name) {
            _ if value.is_null() => {
                findings.note(key.place, format!("{} is empty", quoted(&key.name)));
            }
            Some(Key::Name) => match value.text() {
                Some(text) => written.name = Some((text.trim().to_owned(), place)),
                None => wrong(&key.name, value, "a text", findings),
            },
            Some(Key::Description) => match one_line(value) {
                Some(text) => written.description = text,
                None => wrong(&key.name, value, "a text", findings),
            },
            Some(Key::WhenToUse) => when = one_line(value).unwrap_or_default(),
            Some(Key::AllowedTools) => {
                written.allowed_tools = words(value);
                let reason = "`allowed-tools` grants nothing: once the skill is loaded the agent may \
                              call only these, of those it has, until it is given another task";
                findings.note(key.place, reason);
                for rule in &written.allowed_tools {
                    let Err(error) = Rule::parse(rule) else { continue };
                    match rule.contains('(') {
                        true => findings.error(key.place, error.to_string()),
                        false => findings.warning(key.place, error.to_string()),
                    }
                }
            }
            Some(Key::Arguments) => written.arguments = words(value),
            Some(Key::ArgumentHint) => {
                written.argument_hint = one_line(value).unwrap_or_else(|| words(value).join(" "));
            }
            Some(Key::DisableModelInvocation) => match &value.content {
                Content::Plain { value: Value::Bool(is_manual), .. } => {
                    written.is_manual = *is_manual;
                }
                _ => wrong(&key.name, value, "true or false", findings),
            },
            Some(Key::License) => written.license = one_line(value).unwrap_or_default(),
            Some(Key::Remark) => {}
            Some(Key::NotInForce) => {
                let reason = format!("{} is known; nothing acts on it yet", quoted(&key.name));
                findings.not_in_force(key.place, reason);
            }
            None => {
                let reason = format!("{} is no field of a skill", quoted(&key.name));
                findings.note(key.place, reason);
            }
        }
    }
    if !when.is_empty() {
        written.description = format!("{} {when}", written.description).trim().to_owned();
    }
}

/// Checks that the body has instructions, and takes a description from it if there is no other.
fn check_body(
    written: &mut Written,
    form: Form,
    (begin, body_line): (Position, u32),
    body: &str,
    findings: &mut Findings,
) {
    if written.body.is_empty() {
        let reason = "there is no text below the front matter; write there how it is done";
        findings.error(Position { line: body_line, column: 1 }, reason);
    }
    if written.description.is_empty() {
        let is_text = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '`', '<']);
        match written.body.lines().find(is_text) {
            // People know what their commands do; models choose skills by the description.
            Some(line) if form == Form::Command => line.trim().clone_into(&mut written.description),
            Some(line) => {
                written.description = line.trim().to_owned();
                let reason = "it has no `description`, so the first line of its text is taken; \
                              say in a line what it does and when to use it";
                findings.warning(begin, reason);
            }
            None if form == Form::Command => {}
            None => findings.error(begin, "it has no `description`; say when to use it"),
        }
    }
    if let Some((end, _)) = written.description.char_indices().nth(DESCRIPTION) {
        written.description.truncate(end);
        let reason = format!("the description is cut after {DESCRIPTION} characters");
        findings.warning(begin, reason);
    }
    let takes_arguments = !written.arguments.is_empty() || !written.argument_hint.is_empty();
    for (index, line) in body.lines().enumerate() {
        let place = |column: usize| Position {
            line: body_line + index as u32,
            column: line[..column].chars().count() as u32 + 1,
        };
        if let Some(at) = line.find("!`") {
            let reason = "a command in !`…` is not run here; the agent sees it as it stands";
            findings.note(place(at), reason);
        }
        let is_digit = |at: usize| line[at + 1..].starts_with(|char: char| char.is_ascii_digit());
        let escaped = |at: usize| line[..at].ends_with('\\');
        let mut dollars = line.match_indices('$').map(|(at, _)| at);
        if let Some(at) = dollars.find(|at| is_digit(*at) && !escaped(*at))
            && !takes_arguments
            && form == Form::Skill
        {
            let reason = "a number after `$` stands for an argument, counted from 0; write `\\$` \
                          if none is meant, or say with `argument-hint` which there are";
            findings.note(place(at), reason);
        }
    }
}

fn wrong(key: &str, node: &Node, wanted: &str, findings: &mut Findings) {
    let reason = format!("{} is {}: give {wanted}", quoted(key), node.kind());
    findings.error(node.place, reason);
}

/// Returns a text as one line, without control characters.
fn one_line(node: &Node) -> Option<String> {
    let words = node.text()?.split(|char: char| char.is_whitespace() || char.is_control());
    Some(words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
}

/// Returns a list, or the words of a text, separated by commas or blanks outside brackets.
fn words(node: &Node) -> Vec<String> {
    if let Content::List(nodes) = &node.content {
        let texts = nodes.iter().filter_map(Node::text);
        return texts.map(|text| text.trim().to_owned()).collect();
    }
    let mut depth = 0_usize;
    let is_end = |char: char| {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (char == ',' || char.is_whitespace())
    };
    let text = node.text().unwrap_or_default();
    text.split(is_end).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::agents::Level;

    fn read_all(text: &str) -> (Option<Written>, Vec<String>) {
        let mut findings = Findings::default();
        let written = read(text, Form::Skill, &mut findings);
        let told = findings.0.iter().map(|it| {
            format!("{}:{}: {}: {}", it.place.line, it.place.column, it.level, it.reason)
        });
        (written, told.collect())
    }

    #[test]
    fn every_field_of_a_skill_is_read() {
        let text = "---\nname: pdf\ndescription: >\n  Fills\n  forms\nwhen_to_use: for PDFs\n\
                    allowed-tools: Read, Bash(git add *) Grep\narguments: [file, out]\n\
                    argument-hint: '[file]'\ndisable-model-invocation: true\nlicense: MIT\n\
                    metadata: {a: b}\n---\n\n# How\n\nDo $file.\n";
        let (written, told) = read_all(text);
        let written = written.unwrap();
        assert_eq!(written.name.unwrap().0, "pdf");
        assert_eq!(written.description, "Fills forms for PDFs");
        assert_eq!(written.allowed_tools, ["Read", "Bash(git add *)", "Grep"]);
        assert_eq!(written.arguments, ["file", "out"]);
        assert_eq!((written.argument_hint.as_str(), written.license.as_str()), ("[file]", "MIT"));
        assert!(written.is_manual);
        assert_eq!(written.body, "# How\n\nDo $file.");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("7:1: note: `allowed-tools` grants nothing"), "{told:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, says) in [
            ("# No front matter", "1:1: error: it has no front matter"),
            ("---\nname: x\n", "1:1: error: the front matter that begins here has no end"),
            ("---\n- a\n---\nx", "2:1: error: the front matter is a list"),
            ("---\nname: x\nname: y\n---\nx", "3:1: error: the key `name` stands there twice"),
            ("---\nname: [a]\ndescription: d\n---\nx", "2:7: error: `name` is a list"),
            ("---\nname: a\ndescription: d\n---\n", "5:1: error: there is no text below"),
            ("---\nname: a\n---\n# Title\nDo it.", "2:1: warning: it has no `description`"),
            ("---\nname: a\n---\n# Title", "2:1: error: it has no `description`"),
            ("---\ndescription: d\nmodel: x\n---\nx", "3:1: not yet in force: `model`"),
            ("---\ndescription: d\nnonsense: x\n---\nx", "3:1: note: `nonsense` is no field"),
            ("---\ndescription: d\n---\n\nawk '{print $1}'", "5:13: note: a number after `$`"),
            ("---\ndescription: d\n---\nsee !`git log`", "4:5: note: a command in !`…` is not run"),
        ] {
            let (_, told) = read_all(text);
            assert!(told.iter().any(|it| it.starts_with(says)), "{says}: {told:?}");
        }
        let (_, told) = read_all("---\ndescription: d\n---\nawk '{print \\$1}' costs $ 1");
        assert!(told.is_empty(), "{told:?}");
    }

    #[test]
    fn a_command_needs_neither_front_matter_nor_a_description() {
        for (text, about) in [
            ("# Title\n\nDo $1.\n", "Do $1."),
            ("---\nallowed-tools: Read\n---\nDo it.", "Do it."),
            ("# Only a title", ""),
        ] {
            let mut findings = Findings::default();
            let written = read(text, Form::Command, &mut findings).unwrap();
            assert_eq!(written.description, about, "{text}");
            assert!(findings.0.iter().all(|it| it.level == Level::Note), "{:?}", findings.0);
        }
        let mut findings = Findings::default();
        read(" \n", Form::Command, &mut findings);
        assert!(findings.first_error().is_some(), "there is nothing in it");
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_read(
            head in "(name|description|allowed-tools|arguments|x)?:? ?[-:a\\[{\"'|>$`!é\n\t]{0,30}",
            body in "[-$!`\\\\1aé\n ]{0,30}",
        ) {
            let (written, told) = read_all(&format!("---\n{head}\n---\n{body}"));
            proptest::prop_assert!(written.is_some() || !told.is_empty());
        }
    }

    #[test]
    fn a_long_description_is_cut_and_that_is_said() {
        let text = format!("---\ndescription: {}\n---\nx", "é".repeat(2_000));
        let (written, told) = read_all(&text);
        assert_eq!(written.unwrap().description.chars().count(), DESCRIPTION);
        assert!(told[0].contains("is cut after 1024 characters"), "{told:?}");
    }

    #[test]
    fn front_matter_that_is_no_yaml_is_read_line_by_line() {
        let text = "---\nname: pdf\ndescription: Use this: when \"forms\" come\n  in: more lines\n\
                    allowed-tools: Read\n---\nDo.";
        let (written, told) = read_all(text);
        let written = written.unwrap();
        assert_eq!(written.description, "Use this: when \"forms\" come in: more lines");
        assert_eq!(written.allowed_tools, ["Read"]);
        assert!(told[0].contains("not valid YAML"), "{told:?}");
        let mut findings = Findings::default();
        read(text, Form::Skill, &mut findings);
        assert!(findings.0.iter().all(|it| it.level == Level::Note));
    }
}
