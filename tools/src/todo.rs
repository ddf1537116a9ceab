//! The tool TodoWrite: an agent's list of tasks.
//!
//! The tool keeps no state. The list is the input of the last accepted call, so it is in the run's log.
//! Use [`todos`] to parse it.

use crate::arguments::{Arguments, spec};
use crate::built_in::BuiltIn;
use crate::failure::{Failure, answer};
use async_trait::async_trait;
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::{About, Effect, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The name of the tool, followed by its aliases.
pub const NAMES: [&str; 3] = ["TodoWrite", "todo_write", "todowrite"];

/// The maximum number of items.
const ITEMS: usize = 50;
/// The maximum number of characters of each text.
const CHARACTERS: usize = 500;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = "Replaces your todo list. For work of several steps: update it as each \
                       begins and ends.";
    spec(
        NAMES[0],
        description,
        Effect::Read,
        json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {"type": "string"},
                            "status": {
                                "type": "string",
                                "enum": ["pending", "in_progress", "completed"],
                            },
                            "activeForm": {"type": "string"},
                        },
                        "required": ["content", "status"],
                    },
                },
            },
            "required": ["todos"],
        }),
    )
    .about(About::Notes("todos".into()))
    .aliases(&NAMES[1..])
});

pub(crate) const TOOL: BuiltIn = BuiltIn { spec: &SPEC, make: |_| Some(Arc::new(TodoWrite)) };

/// A task of an agent. Displayed as `[x] content`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// The task: one line that is not empty.
    pub content: String,
    /// Its progress.
    pub status: Status,
    /// How to show it while it is in progress ("Running the tests"), if the agent gave such a text.
    pub active_form: Option<String>,
}

/// The progress of a todo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
}

impl fmt::Display for Todo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.status {
            Status::Pending => ' ',
            Status::InProgress => '>',
            Status::Completed => 'x',
        };
        write!(formatter, "[{mark}] {}", self.content)
    }
}

/// The todo list in the input of a call, if the tool accepts it.
pub fn todos(input: &Value) -> Option<Vec<Todo>> {
    read(input.get("todos")?.as_array()?).ok()
}

pub(crate) struct TodoWrite;

#[async_trait]
impl Tool for TodoWrite {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, input: Value, _context: &ToolContext) -> Answer {
        answer(write(input))
    }
}

fn write(input: Value) -> Result<ToolOutput, Failure> {
    let arguments = Arguments::check(&SPEC, input)?;
    let todos = read(arguments.list("todos"))
        .map_err(|reason| Failure(format!("TodoWrite: {reason}. The list stays as it was.")))?;
    Ok(ToolOutput::text(tell(&todos)))
}

/// The list as the model sees it.
fn tell(todos: &[Todo]) -> String {
    if todos.is_empty() {
        return "The todo list is empty.\n".to_owned();
    }
    let count = |status| todos.iter().filter(|todo| todo.status == status).count();
    let mut text = format!("{} of {} completed:\n", count(Status::Completed), todos.len());
    for todo in todos {
        text.push_str(&format!("{todo}\n"));
    }
    let begun = count(Status::InProgress);
    if begun > 1 {
        text.push_str(&format!("[{begun} are in progress; better finish one before the next]\n"));
    }
    text
}

/// Why a list is not accepted.
#[derive(Debug, thiserror::Error)]
enum Unacceptable {
    #[error("{count} items are too many; merge some or drop completed ones, {ITEMS} are allowed")]
    TooMany { count: usize },
    #[error("item {item} must be an object with `content` and `status`")]
    NoObject { item: usize },
    #[error("item {item} needs `{field}`, a text that is not empty")]
    NoText { item: usize, field: &'static str },
    #[error(
        "`{field}` of item {item} has {count} characters; say it in at most \
         {CHARACTERS}"
    )]
    TooLong { item: usize, field: &'static str, count: usize },
    #[error("`{field}` of item {item} must be a text")]
    NotText { item: usize, field: &'static str },
    #[error("item {item} has the status {status:?}; give pending, in_progress or completed")]
    Status { item: usize, status: String },
}

fn read(items: &[Value]) -> Result<Vec<Todo>, Unacceptable> {
    if items.len() > ITEMS {
        return Err(Unacceptable::TooMany { count: items.len() });
    }
    items
        .iter()
        .enumerate()
        .map(|(index, value)| Item { number: index + 1, value }.read())
        .collect()
}

/// An item from the input, and its position in the list. Unknown fields are ignored, because models add
/// their own, such as ids.
struct Item<'a> {
    number: usize,
    value: &'a Value,
}

impl Item<'_> {
    fn read(&self) -> Result<Todo, Unacceptable> {
        let item = self.number;
        if !self.value.is_object() {
            return Err(Unacceptable::NoObject { item });
        }
        let required = |field| self.text(field)?.ok_or(Unacceptable::NoText { item, field });
        let content = required("content")?;
        let status = required("status")?;
        let status = match status.to_lowercase().replace([' ', '-'], "_").as_str() {
            "pending" => Status::Pending,
            "in_progress" => Status::InProgress,
            "completed" | "done" => Status::Completed,
            _ => return Err(Unacceptable::Status { item, status }),
        };
        Ok(Todo { content, status, active_form: self.text("activeForm")? })
    }

    /// A text on one line, so that one item cannot look like several. `None` if it is missing or empty.
    fn text(&self, field: &'static str) -> Result<Option<String>, Unacceptable> {
        let item = self.number;
        let text = match &self.value[field] {
            Value::Null => return Ok(None),
            Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            _ => return Err(Unacceptable::NotText { item, field }),
        };
        match text.chars().count() {
            0 => Ok(None),
            count if count > CHARACTERS => Err(Unacceptable::TooLong { item, field, count }),
            _ => Ok(Some(text)),
        }
    }
}
