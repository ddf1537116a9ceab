//! Conversations with the offline model in which the test plays the tools.

use posse_agent::{Model, Reply, Request};
use posse_offline::Offline;
use posse_protocol::{Delta, Effect, Extra, Message, Part, Role, ToolCall, ToolResult, ToolSpec};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// The most replies a question may take.
pub const MOST_REPLIES: usize = 6;

pub fn tool(name: &str) -> ToolSpec {
    let effect = match name {
        "Bash" => Effect::Execute,
        "Write" | "Edit" => Effect::Write,
        "Task" => Effect::Delegate,
        _ => Effect::Read,
    };
    ToolSpec::new(name, "", effect, json!({"type": "object"}))
}

pub const ALL: [&str; 7] = ["Read", "Write", "Edit", "Glob", "Grep", "List", "Bash"];
pub const LOOKING: [&str; 4] = ["Read", "Glob", "Grep", "List"];

/// What a tool answers: a text, or an error.
pub type Played = Result<String, String>;

pub struct World<'w> {
    pub messages: Vec<Arc<Message>>,
    pub tools: Vec<ToolSpec>,
    /// Every call so far.
    pub calls: Vec<ToolCall>,
    /// Replies to the last question.
    pub replies: usize,
    play: Box<dyn FnMut(&ToolCall) -> Played + 'w>,
}

impl<'w> World<'w> {
    pub fn new(tools: &[&str], play: impl FnMut(&ToolCall) -> Played + 'w) -> Self {
        World {
            messages: Vec::new(),
            tools: tools.iter().map(|name| tool(name)).collect(),
            calls: Vec::new(),
            replies: 0,
            play: Box::new(play),
        }
    }

    /// A world in which nothing is ever found.
    pub fn empty(tools: &[&str]) -> Self {
        World::new(tools, |call| Ok(nothing(&call.name)))
    }

    pub fn say(&mut self, text: &str) {
        self.messages.push(Arc::new(Message::user(text)));
    }

    pub fn request(&self) -> Request {
        Request {
            system: "You look.\n\nWorking folder: /home/me/harbour\n".into(),
            messages: self.messages.clone(),
            tools: self.tools.clone().into(),
            max_tokens: 16_000,
            effort: None,
            output_schema: None,
        }
    }

    /// One reply, whose calls are played.
    pub fn step(&mut self) -> Reply {
        let reply = call(self.request());
        self.messages.push(Arc::new(reply.message.clone()));
        self.replies += 1;
        let calls: Vec<ToolCall> = reply.message.tool_calls().cloned().collect();
        let results: Vec<Part> = calls.iter().map(|call| self.played(call)).collect();
        if !results.is_empty() {
            self.messages.push(Arc::new(Message::new(Role::User, results)));
        }
        self.calls.extend(calls);
        reply
    }

    fn played(&mut self, call: &ToolCall) -> Part {
        let played = (self.play)(call);
        let is_error = played.is_err();
        let text = played.unwrap_or_else(|error| error);
        Part::ToolResult(ToolResult {
            call: call.id.clone(),
            parts: vec![Part::text(text)],
            is_error,
            extra: Extra::default(),
        })
    }

    /// The answer to a question.
    pub fn ask(&mut self, question: &str) -> String {
        self.say(question);
        self.replies = 0;
        loop {
            let reply = self.step();
            if reply.message.tool_calls().next().is_none() {
                return reply.message.text();
            }
            assert!(self.replies < MOST_REPLIES, "still looking after {MOST_REPLIES} replies");
        }
    }

    /// The commands it ran.
    pub fn commands(&self) -> Vec<&str> {
        let bash = self.calls.iter().filter(|call| call.name == "Bash");
        bash.filter_map(|call| call.input["command"].as_str()).collect()
    }
}

/// What a tool says that finds nothing.
pub fn nothing(tool: &str) -> String {
    match tool {
        "Grep" => "No match. (Ignored and binary files are not searched.)\n",
        "Glob" => "No file matches. (Ignored files are not looked at.)",
        "List" => "[The folder is empty]",
        _ => "[no output]\n",
    }
    .to_owned()
}

/// A file as the tool Read shows it.
pub fn page(text: &str) -> String {
    let lines = text.lines().enumerate();
    lines.map(|(at, line)| format!("{:>6}\t{line}\n", at + 1)).collect()
}

/// Calls the model; what it streams must be what it says.
pub fn call(request: Request) -> Reply {
    let heard = Mutex::new(String::new());
    let listen = |delta: Delta| match delta {
        Delta::Text { text } => heard.lock().unwrap().push_str(&text),
        other => panic!("{other:?}"),
    };
    let cancel = CancellationToken::new();
    let model = Offline::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let reply = runtime.block_on(model.call(request, &listen, &cancel)).unwrap();
    assert_eq!(*heard.lock().unwrap(), reply.message.text());
    reply
}

/// The pattern of a search.
pub fn pattern(call: &ToolCall) -> &str {
    call.input["pattern"].as_str().unwrap_or_default()
}

pub fn path(call: &ToolCall) -> &str {
    call.input["file_path"].as_str().or(call.input["path"].as_str()).unwrap_or_default()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
