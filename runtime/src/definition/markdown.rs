//! Reads a definition in a Markdown file: first as YAML. If that fails, it reads line by line as
//! Claude Code does, and reports its assumptions.

use super::field::Field;
use super::reading::{self, Form, Written};
use super::tolerant;
use crate::front_matter::node::{Content, Node};
use crate::front_matter::problem::{Findings, Position};
use crate::front_matter::yaml::{self, YamlError};
use crate::front_matter::{HEAD_BYTES, plain, split};

/// Reads the text of a file. Returns `None` if it has no front matter, so is not a definition.
pub(crate) fn read(text: &str, form: Form, findings: &mut Findings) -> Option<Written> {
    let text = plain(text);
    let parts = match split(&text) {
        Ok(parts) => parts?,
        Err(line) => {
            let reason = "the front matter that begins here has no end: a line `---` is missing";
            findings.error(Position { line, column: 1 }, reason);
            return Some(Written::default());
        }
    };
    let first = Position { line: parts.first_line, column: 1 };
    if parts.head.len() > HEAD_BYTES {
        let reason = format!(
            "the front matter has {} bytes, more than the {HEAD_BYTES} that are read; put what the \
             agent is to do below it",
            parts.head.len()
        );
        findings.error(first, reason);
        return Some(Written::default());
    }
    let node = match yaml::read(parts.head, parts.first_line) {
        Ok(node) if matches!(node.content, Content::Map(_)) => node,
        Ok(Node { content: Content::Null, .. }) => {
            findings.error(first, "the front matter is empty; write `name` and `description`");
            return Some(Written::default());
        }
        Ok(node) => {
            let wrong = (node.place, format!("it is {}, not keys with values", node.kind()));
            tolerant::read(parts.head, parts.first_line, wrong, findings)
        }
        Err(YamlError::Syntax { place, reason }) => {
            tolerant::read(parts.head, parts.first_line, (place, reason), findings)
        }
        Err(YamlError::Refused { place, reason }) => {
            findings.error(place, reason);
            return Some(Written::default());
        }
    };
    let mut written = reading::read(&node, form, findings);
    written.definition.prompt = parts.body.trim().to_owned();
    if written.definition.prompt.is_empty() {
        let line = text.lines().count().max(1) as u32;
        let reason = "there is no text below the front matter; write there what the agent is to do";
        findings.error(Position { line, column: 1 }, reason);
    }
    let has_description = written.places.iter().any(|(field, _)| *field == Field::Description);
    if written.definition.description.is_empty()
        && (!has_description || findings.first_error().is_none())
    {
        findings.error(first, "it has no description; say in a line what the agent is for");
    }
    Some(written)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::front_matter::problem::Level;

    fn read_own(text: &str) -> (Written, Findings) {
        let mut findings = Findings::default();
        (read(text, Form::Own, &mut findings).unwrap(), findings)
    }

    #[test]
    fn front_matter_is_split_from_the_body_whatever_the_line_ends_and_marks() {
        for text in [
            "---\nname: a\ndescription: d\n---\nbody\nmore\n",
            "\u{feff}---\nname: a\ndescription: d\n---\nbody\nmore\n",
            "---\r\nname: a\r\ndescription: d\r\n---\r\nbody\r\nmore\r\n",
            "\n\n---  \nname: a\ndescription: d\n--- \n\nbody\nmore",
        ] {
            let (written, findings) = read_own(text);
            assert_eq!(findings, Findings::default(), "{text:?}");
            assert_eq!(written.definition.prompt, "body\nmore", "{text:?}");
            assert_eq!(written.definition.description, "d", "{text:?}");
        }
    }

    #[test]
    fn the_words_of_other_systems_are_read() {
        let text = "---\nagentType: finder\nwhenToUse: To find\nsource: built-in\n---\nFind.";
        let (written, findings) = read_own(text);
        let definition = &written.definition;
        assert_eq!(definition.name.as_ref().unwrap().as_str(), "finder");
        assert_eq!(definition.description, "To find");
        assert!(findings.0.iter().all(|it| it.level == Level::Note), "{findings:?}");
        let said = |what: &str| findings.0.iter().any(|it| it.reason.contains(what));
        assert!(said("`whenToUse` is read as `description`"), "{findings:?}");
        assert!(said("`source` has no effect"), "{findings:?}");
    }

    #[test]
    fn a_file_without_front_matter_is_no_definition() {
        for text in ["", "# Read me\n---\n", "   \n", "--\nname: a\n--\n"] {
            assert!(read(text, Form::Own, &mut Findings::default()).is_none(), "{text:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said_with_its_line() {
        for (text, line, says) in [
            ("\n---\nname: a\nbody", 2, "has no end"),
            ("---\nname: a\ndescription: d\n---\n \n", 5, "no text below"),
            ("---\n---\nbody", 2, "front matter is empty"),
            ("---\nname: a\n---\nbody", 2, "no description"),
            ("---\nname: a\ndescription:\n---\nbody", 2, "no description"),
            ("---\nname: a\ndescription: 'x'\nname: b\n---\nbody", 4, "twice"),
        ] {
            let (_, findings) = read_own(text);
            let errors: Vec<_> =
                findings.0.iter().filter(|finding| finding.level == Level::Error).collect();
            assert_eq!(errors.len(), 1, "{text:?}: {findings:?}");
            assert_eq!(errors[0].place.line, line, "{text:?}: {findings:?}");
            assert!(errors[0].reason.contains(says), "{findings:?}");
        }
    }

    #[test]
    fn a_long_front_matter_is_refused_unread() {
        let text = format!("---\nname: a\ndescription: {}\n---\nbody", "x".repeat(HEAD_BYTES));
        let (written, findings) = read_own(&text);
        assert_eq!(written, Written::default());
        assert!(findings.first_error().unwrap().reason.contains("more than the 65536"));
    }
}
