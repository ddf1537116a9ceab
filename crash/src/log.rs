//! A run's log as `posse runs export` writes it, read without the types of the runtime: the
//! checker must not share a mistake with what it checks.

use serde_json::Value;

/// The exported log of one run.
#[derive(Clone, Debug)]
pub struct RunLog {
    /// Which run.
    pub run: String,
    /// Its records, in the order they were exported.
    pub records: Vec<Value>,
}

impl RunLog {
    /// Reads lines of JSON, one record each.
    ///
    /// # Errors
    /// When a line is no JSON; says which.
    pub fn parse(run: &str, text: &str) -> Result<Self, String> {
        let record = |(index, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", index + 1))
        };
        let records = text.lines().enumerate().map(record).collect::<Result<_, _>>()?;
        Ok(RunLog { run: run.to_owned(), records })
    }

    /// The events, without their envelopes.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Value> {
        self.records.iter().map(|record| &record["event"])
    }

    /// How often someone said exactly `text` to the run.
    pub(crate) fn heard(&self, text: &str) -> usize {
        let said = |event: &&Value| kind(event) == "message_received" && says(event, text);
        self.events().filter(said).count()
    }

    /// What was first said to the run; empty if nothing was.
    pub(crate) fn prompt(&self) -> &str {
        let first = self.events().find(|event| kind(event) == "message_received");
        first.map(message_text).unwrap_or_default()
    }

    pub(crate) fn count(&self, wanted: &str) -> usize {
        self.events().filter(|event| kind(event) == wanted).count()
    }
}

/// The name of an event's variant.
pub(crate) fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

/// The tool calls of a reply: id and input.
pub(crate) fn tool_calls(event: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let parts = event["message"]["parts"].as_array().into_iter().flatten();
    let calls = parts.filter(|part| part["type"] == "tool_call");
    calls.map(|call| (call["id"].as_str().unwrap_or_default(), &call["input"]))
}

/// The text of a tool's result.
pub(crate) fn output_text(event: &Value) -> Option<&str> {
    let parts = event["output"]["parts"].as_array()?;
    parts.iter().find_map(|part| part["text"].as_str())
}

/// The text of a message.
pub(crate) fn message_text(event: &Value) -> &str {
    let parts = event["message"]["parts"].as_array();
    parts.into_iter().flatten().find_map(|part| part["text"].as_str()).unwrap_or_default()
}

/// True for the end of another run that is put down and sets nobody to work.
pub(crate) fn is_only_recorded(event: &Value) -> bool {
    let told = &event["from"]["child"];
    told["kept"] == true || told["announce"] == "silent"
}

fn says(event: &Value, text: &str) -> bool {
    let parts = event["message"]["parts"].as_array();
    parts.into_iter().flatten().any(|part| part["text"].as_str() == Some(text))
}
