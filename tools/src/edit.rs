//! The tool Edit: replaces texts in a file by others, all or none.
//!
//! It never guesses: if a text is missing or occurs several times, it changes nothing.

use crate::arguments::{Arguments, spec};
use crate::blocking;
use crate::built_in::BuiltIn;
use crate::change::{
    RunFacts, content, difference, one_line, refusal, require_knowledge, require_room, store,
    whole_difference,
};
use crate::failure::{Failure, answer};
use crate::path_rules::Usage;
use crate::replace::Target;
use crate::run_path::RunFiles;
use crate::text::{self, Unencodable};
use async_trait::async_trait;
use posse_agent::{Answer, SeenFiles, Tool, ToolContext};
use posse_protocol::{About, Effect, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// How many occurrences are named if a text is not unique.
const PLACES_NAMED: usize = 10;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = "Replaces old_string, exactly as in the file (without the line numbers of \
                       Read), by new_string. It must occur once, unless replace_all. Read the \
                       file first.";
    spec(
        "Edit",
        description,
        Effect::Write,
        json!({
            "type": "object",
            "properties": {
                "file_path": {"type": "string"},
                "old_string": {"type": "string"},
                "new_string": {"type": "string"},
                "replace_all": {"type": "boolean"},
                "edits": {
                    "type": "array",
                    "items": {"type": "object"},
                    "description": "several, each {old_string, new_string, replace_all}; all or none",
                },
            },
            "required": ["file_path"],
        }),
    )
    .about(About::File("file_path".into()))
    .aliases(&[
        "edit",
        "edit_file",
        "EditFile",
        "MultiEdit",
        "multi_edit",
        "str_replace",
        "replace",
        "replace_in_file",
    ])
});

pub(crate) const TOOL: BuiltIn =
    BuiltIn { spec: &SPEC, make: |run| Some(Arc::new(Edit { files: run.files(&SPEC.name) })) };

pub(crate) struct Edit {
    pub files: Arc<RunFiles>,
}

#[async_trait]
impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn preview(&self, input: &Value) -> Option<String> {
        let arguments = Arguments::check(&SPEC, input.clone()).ok()?;
        let changes = Change::asked(&arguments).ok()?;
        let path = arguments.text("file_path").to_owned();
        let files = self.files.clone();
        let shown = move || Ok(preview(&files, &path, &changes));
        blocking::to_the_end(shown).await.ok()
    }

    async fn refusal(&self, input: &Value, seen: Option<&SeenFiles>) -> Option<String> {
        refusal(&SPEC, &self.files, input, seen).await
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let (files, knows) = (self.files.clone(), RunFacts::of(context));
        answer(blocking::to_the_end(move || edit(&files, input, &knows)).await)
    }
}

/// The difference that an edit would make now. If the edit is impossible, its old and new texts.
fn preview(files: &Arc<RunFiles>, path: &str, changes: &[Change]) -> String {
    let bytes = content(files, path);
    let before = bytes.as_deref().and_then(text::decode);
    let after = before.as_ref().and_then(|before| apply(changes, path, &before.text).ok());
    let name = one_line(path);
    if let (Some(before), Some((after, count))) = (before, after) {
        let places = if count > 1 { format!(" ({count} places)") } else { String::new() };
        return format!("{name}{places}\n{}", whole_difference(&before.text, &after));
    }
    let marked = |mark: char, text: &str| -> String {
        text.lines().map(|line| format!("{mark}{line}\n")).collect()
    };
    let mut shown = format!("{name}: the text to replace is not there exactly once\n");
    for Change { old, new, places } in changes {
        if *places == Places::All {
            shown.push_str("every place of\n");
        }
        shown.push_str(&(marked('-', old) + &marked('+', new)));
    }
    shown
}

fn edit(files: &Arc<RunFiles>, input: Value, knows: &RunFacts) -> Result<ToolOutput, Failure> {
    let arguments = Arguments::check(&SPEC, input)?;
    let place = files.place(arguments.text("file_path"))?;
    let path = place.show();
    let changes = Change::asked(&arguments)?;
    // Opened first, because `Target::find` would create the folders of a missing file.
    place.open_file(Usage::Change)?;
    let _lock = place.lock_for_writing();
    let target = Target::find(&place)?;
    let Some(existing) = target.existing()? else {
        return Err(Failure(format!("{path} does not exist; use Write to create it")));
    };
    require_knowledge(&place, &existing.bytes, &knows.seen)?;
    let decoded = text::decode(&existing.bytes)
        .filter(|decoded| !decoded.damaged)
        .ok_or_else(|| Failure(format!("{path} is not valid text; change it by Bash")))?;
    let (after, count) = apply(&changes, &path, &decoded.text)?;
    let bytes = text::encode(&after, decoded.encoding).map_err(|Unencodable(character)| {
        let encoding = decoded.encoding.unusual_name().unwrap_or("UTF-8");
        Failure(format!("{path} is {encoding}, which has no {character:?}"))
    })?;
    require_room(&bytes, knows.writable)?;
    store(&place, &target, &bytes, Some(&existing))?;
    let places = if count == 1 { "1 place".to_owned() } else { format!("{count} places") };
    let difference = difference(&decoded.text, &after);
    let said = format!("Edited {path} in {places}:\n{difference}");
    let written_bytes = bytes.len() as u64;
    Ok(ToolOutput { written_bytes, seen: place.seen(&bytes), ..ToolOutput::text(said) })
}

/// Which occurrences to replace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    One,
    All,
}

/// Returns the text after all `changes`, each applied to what the one before it left, and the number of replacements.
fn apply(changes: &[Change], path: &str, text: &str) -> Result<(String, usize), Failure> {
    let (mut after, mut replaced) = (text.to_owned(), 0);
    for (index, change) in changes.iter().enumerate() {
        let (text, count) = change.apply(path, &after).map_err(|Failure(why)| {
            Failure(if changes.len() == 1 { why } else { in_list(index, changes.len(), &why) })
        })?;
        (after, replaced) = (text, replaced + count);
    }
    if after == text {
        return Err(Failure::new("the edits undo each other; nothing would change"));
    }
    Ok((after, replaced))
}

/// Says that an edit in a list of `count` is wrong.
fn in_list(index: usize, count: usize, why: &str) -> String {
    format!("nothing was changed: edit {} of {count} is not possible: {why}", index + 1)
}

/// A text and its replacement.
struct Change {
    old: String,
    new: String,
    places: Places,
}

impl Change {
    /// The changes that a call asks for: one, or a list.
    fn asked(arguments: &Arguments) -> Result<Vec<Change>, Failure> {
        let has_one = ["old_string", "new_string"].map(|name| arguments.optional_text(name));
        match (arguments.list("edits"), has_one) {
            ([], [Some(old), Some(new)]) => {
                let change = Change::of(old, new, arguments.flag("replace_all"));
                change.check().map(|()| vec![change])
            }
            ([], _) => {
                Err(Failure::new("Edit needs old_string and new_string, or a list of edits"))
            }
            (edits, [None, None]) => {
                let count = edits.len();
                let change = |(index, edit): (usize, &Value)| {
                    Change::listed(edit)
                        .map_err(|Failure(why)| Failure(in_list(index, count, &why)))
                };
                edits.iter().enumerate().map(change).collect()
            }
            _ => {
                Err(Failure::new("give either old_string with new_string, or edits, and not both"))
            }
        }
    }

    /// A change in a list.
    fn listed(edit: &Value) -> Result<Change, Failure> {
        let text = |name: &str| {
            let found = edit.get(name).and_then(Value::as_str);
            found.ok_or_else(|| Failure(format!("it needs the text `{name}`")))
        };
        let all = edit.get("replace_all").and_then(Value::as_bool);
        let change = Change::of(text("old_string")?, text("new_string")?, all);
        change.check().map(|()| change)
    }

    fn of(old: &str, new: &str, all: Option<bool>) -> Self {
        let places = if all == Some(true) { Places::All } else { Places::One };
        Change { old: old.to_owned(), new: new.to_owned(), places }
    }

    fn check(&self) -> Result<(), Failure> {
        if self.old.is_empty() {
            return Err(Failure::new(
                "old_string is empty; give the text to replace, or use Write for a whole file",
            ));
        }
        if self.old == self.new {
            return Err(Failure::new(
                "old_string and new_string are the same; nothing would change",
            ));
        }
        Ok(())
    }

    /// Returns the text after the change, and the number of replacements.
    fn apply(&self, path: &str, text: &str) -> Result<(String, usize), Failure> {
        let ends = LineEnds::of(text);
        let as_given = (Cow::Borrowed(&*self.old), Cow::Borrowed(&*self.new));
        let with_returns = || (carriage_returns(&self.old), carriage_returns(&self.new));
        let (old, new) = match ends {
            LineEnds::Lf => as_given,
            LineEnds::CrLf => with_returns(),
            LineEnds::Mixed if text.contains(&*self.old) => as_given,
            LineEnds::Mixed => with_returns(),
        };
        let places: Vec<usize> = text.match_indices(&*old).map(|(place, _)| place).collect();
        match (places.len(), self.places) {
            (0, _) => Err(self.missing(path, text)),
            (1, _) | (_, Places::All) => Ok((text.replace(&*old, &new), places.len())),
            (count, Places::One) => {
                let lines = lines_of(text, &places[..count.min(PLACES_NAMED)]);
                let more = if count > PLACES_NAMED { ", …" } else { "" };
                Err(Failure(format!(
                    "old_string is in {count} places of {path} (lines {lines}{more}); add lines \
                     around it so that it is in one place only, or set replace_all"
                )))
            }
        }
    }

    fn missing(&self, path: &str, text: &str) -> Failure {
        let first = self.old.lines().map(str::trim).find(|line| !line.is_empty());
        let near = first.and_then(|first| {
            text.lines().position(|line| line.trim() == first).map(|index| index + 1)
        });
        let hint = match near {
            Some(line) => format!(
                "line {line} has its first line, so what follows or the white space differs; \
                 copy it exactly as Read shows it, without the line numbers"
            ),
            None => "read the file again and copy the text exactly".to_owned(),
        };
        Failure(format!("old_string is not in {path}: {hint}"))
    }
}

/// How the lines of a text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnds {
    Lf,
    CrLf,
    Mixed,
}

impl LineEnds {
    fn of(text: &str) -> Self {
        let with_return = text.matches("\r\n").count();
        match text.matches('\n').count() {
            _ if with_return == 0 => LineEnds::Lf,
            all if all == with_return => LineEnds::CrLf,
            _ => LineEnds::Mixed,
        }
    }
}

/// The text with every line end as CR LF.
fn carriage_returns(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
}

/// The line numbers of `places`, which are in order.
fn lines_of(text: &str, places: &[usize]) -> String {
    let mut numbers: Vec<String> = Vec::with_capacity(places.len());
    let (mut line, mut from) = (1, 0);
    for place in places {
        line += text[from..*place].matches('\n').count();
        from = *place;
        numbers.push(line.to_string());
    }
    numbers.join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(text: &str, old: &str, new: &str, expected: &str) {
        let change = Change::of(old, new, None);
        assert_eq!(change.apply("f", text).unwrap().0, expected);
    }

    #[test]
    fn line_ends_stay_as_the_file_has_them() {
        check("a\nb\n", "b", "c\nd", "a\nc\nd\n");
        check("a\r\nb\r\n", "b", "c\nd", "a\r\nc\r\nd\r\n");
        check("a\r\nb\r\n", "a\nb", "x\ny", "x\r\ny\r\n");
        check("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n");
        check("a\r\nb\nc\n", "b\nc", "x\ny", "a\r\nx\ny\n");
        check("a\r\nb\r\nc\n", "a\nb", "x\ny", "x\r\ny\r\nc\n");
    }
}
