//! The log of a run as `posse runs export` writes it, read without the types of the runtime, so that
//! the checker shares no mistake with what it checks.

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
    /// When a line is not JSON; the error says which.
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

    /// How often the run received exactly the message `text`.
    pub(crate) fn heard(&self, text: &str) -> usize {
        let said = |event: &&Value| kind(event) == "message_received" && says(event, text);
        self.events().filter(said).count()
    }

    /// The first message to the run, or an empty text.
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

/// True for an announcement that is recorded and does not start the run again.
pub(crate) fn is_only_recorded(event: &Value) -> bool {
    let told = &event["from"]["child"];
    told["kept"] == true || told["announce"] == "silent"
}

/// The runs above a run that starts with this event, the root first.
pub(crate) fn ancestors(event: &Value) -> Vec<&str> {
    let above = event["parent"]["ancestors"].as_array().into_iter().flatten();
    above.filter_map(Value::as_str).collect()
}

fn says(event: &Value, text: &str) -> bool {
    let parts = event["message"]["parts"].as_array();
    parts.into_iter().flatten().any(|part| part["text"].as_str() == Some(text))
}
