//! The content of one file, before it is ranked among other sources. A draft depends on its file
//! alone, so it is cached until the file changes.

use super::json;
use crate::definition::markdown;
use crate::definition::reading::{self, Form, Written};
use crate::files;
use crate::front_matter::FILE_BYTES;
use crate::front_matter::node::Node;
use crate::front_matter::problem::{Findings, Position};
use posse_protocol::AgentName;
use std::path::Path;

/// A definition as it was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    /// The name, if it could be read.
    pub(crate) name: Option<AgentName>,
    /// The line it begins at.
    pub(crate) line: Option<u32>,
    pub(crate) written: Written,
    pub(crate) findings: Findings,
}

/// Reads the Markdown file at `path`. The draft has only findings if the file is not a definition.
pub(crate) fn of_file(path: &Path, form: Form) -> Draft {
    let mut draft = Draft::default();
    match files::read(path, FILE_BYTES) {
        Ok(text) => of_text(&text, path, form, &mut draft),
        Err(reason) => {
            draft.findings.error(Position::UNKNOWN, reason);
            draft.name = stem(path).and_then(|stem| stem.parse().ok());
        }
    }
    draft
}

/// Fills `draft` from `text`, the content of the file at `path`.
pub(crate) fn of_text(text: &str, path: &Path, form: Form, draft: &mut Draft) {
    let Some(written) = markdown::read(text, form, &mut draft.findings) else {
        let reason = "this is no agent: it has no front matter between lines `---`";
        draft.findings.warning(Position::UNKNOWN, reason);
        return;
    };
    draft.written = written;
    draft.line = Some(1);
    draft.name = draft.written.definition.name.clone();
    let is_named = draft
        .written
        .places
        .iter()
        .any(|(field, _)| *field == crate::definition::field::Field::Name);
    if draft.name.is_some() {
        return;
    }
    let stem = stem(path).unwrap_or_default();
    match stem.parse::<AgentName>() {
        // `name` is invalid or unreadable. The name of the file then names the broken agent.
        Ok(name) if is_named || draft.findings.first_error().is_some() => draft.name = Some(name),
        Ok(name) => {
            let reason = format!("it has no `name`, so it is called like its file, `{name}`");
            draft.findings.note(Position { line: 1, column: 1 }, reason);
            draft.name = Some(name);
        }
        Err(error) if draft.findings.first_error().is_none() => {
            let reason = format!("it has no `name`, and its file's cannot be one: {error}");
            draft.findings.error(Position { line: 1, column: 1 }, reason);
        }
        Err(_) => {}
    }
}

/// Reads a map of agents in JSON, entry by entry, or says why it is not one.
pub(crate) fn of_map(text: &str) -> Result<Vec<Draft>, crate::front_matter::problem::Finding> {
    let entries = json::read(text)?;
    Ok(entries.into_iter().map(|(key, node)| of_entry(&key.name, &node)).collect())
}

fn of_entry(name: &str, node: &Node) -> Draft {
    let mut findings = Findings::default();
    let name = name.parse::<AgentName>();
    let name = name.map_err(|error| findings.error(node.place, error.to_string())).ok();
    let written = reading::read(node, Form::Json, &mut findings);
    if findings.first_error().is_none() {
        reading::require(&written.definition, node.place, &mut findings);
    }
    if let (Some(name), Some(own)) = (&name, &written.definition.name)
        && name != own
    {
        let reason = format!("it is called `{name}`, by its key; `name` has no effect");
        findings.warning(node.place, reason);
    }
    Draft { name, line: Some(node.place.line), written, findings }
}

fn stem(path: &Path) -> Option<String> {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_agents_may_use_the_words_of_other_systems() {
        let map = r#"{"finder": {"agentType": "finder", "whenToUse": "To find",
                      "systemPrompt": "Find.", "source": "userSettings"}}"#;
        let drafts = of_map(map).unwrap();
        let [draft] = drafts.as_slice() else { panic!("{drafts:?}") };
        assert!(draft.findings.first_error().is_none(), "{:?}", draft.findings);
        let definition = &draft.written.definition;
        assert_eq!((&*definition.description, &*definition.prompt), ("To find", "Find."));
    }
}
