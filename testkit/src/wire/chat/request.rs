//! The body of a Chat Completions request, borrowed from its text.

use crate::ask::Wire;
use crate::ask::{Ask, Role, Said};
use crate::http::Request;
use crate::wire::value::{Content, Raw, Shape, Text};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(in crate::wire) struct Chat<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) messages: Option<Vec<Raw<'a, Message<'a>>>>,
    #[serde(borrow)]
    pub(super) tools: Option<Vec<Raw<'a, Tool<'a>>>>,
    pub(super) max_tokens: Option<i64>,
    pub(super) max_completion_tokens: Option<i64>,
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptions>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Content<'a, Part<'a>>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow)]
    pub(super) tool_call_id: Option<Text<'a>>,
    /// What models refuse with, in place of content.
    pub(super) refusal: Option<Shape>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    pub(super) image_url: Option<Shape>,
    pub(super) file: Option<Shape>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) arguments: Option<Shape>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<Offer<'a>>,
}

/// A function that is offered.
#[derive(Debug, Deserialize)]
pub(super) struct Offer<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) parameters: Option<Schema>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Schema {
    #[serde(rename = "type")]
    pub(super) kind: Option<Value>,
}

impl Message<'_> {
    pub(super) fn role(&self) -> &str {
        self.role.as_deref().unwrap_or_default()
    }

    fn texts(&self) -> Vec<&str> {
        match &self.content {
            Some(Content::Text(text)) => vec![text],
            Some(Content::Parts(parts)) => {
                parts.iter().filter_map(|part| part.text.as_deref()).collect()
            }
            Some(Content::Other) | None => Vec::new(),
        }
    }

    fn said(&self) -> Said<'_> {
        let calls = self.tool_calls.iter().flatten();
        let (role, texts, results) = match self.role() {
            "assistant" => (Role::Assistant, self.texts(), Vec::new()),
            "tool" => (Role::User, Vec::new(), vec![self.texts()]),
            _ => (Role::User, self.texts(), Vec::new()),
        };
        Said { role, texts, results, calls: calls.filter_map(|call| call.id.as_deref()).collect() }
    }
}

impl Chat<'_> {
    pub(super) fn said<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b> {
        let is_system =
            |message: &&Raw<'_, Message<'_>>| matches!(message.role(), "system" | "developer");
        let messages = || self.messages.iter().flatten();
        let mut ask = Ask::new(Wire::OpenAiChat, request, body);
        ask.model = self.model.as_deref().unwrap_or_default();
        ask.system = messages().filter(is_system).flat_map(|message| message.texts()).collect();
        let said = messages().filter(|message| !is_system(message)).map(|message| message.said());
        ask.messages = said.collect();
        ask.turn = ask.messages.iter().filter(|said| said.role == Role::Assistant).count();
        let offers = self.tools.iter().flatten().filter_map(|tool| tool.function.as_ref());
        ask.tools = offers.filter_map(|offer| offer.name.as_deref()).collect();
        ask
    }
}
