//! The body of a Responses request, borrowed from its text.

use crate::ask::Wire;
use crate::ask::{Ask, Role, Said};
use crate::http::Request;
use crate::wire::value::{Content, Raw, Shape, Text};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(in crate::wire) struct Responses<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) instructions: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) input: Option<Content<'a, Raw<'a, Item<'a>>>>,
    #[serde(borrow)]
    pub(super) tools: Option<Vec<Raw<'a, Tool<'a>>>>,
    pub(super) max_output_tokens: Option<i64>,
    pub(super) stream: Option<bool>,
    pub(super) store: Option<bool>,
    #[serde(borrow)]
    include: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub(super) previous_response_id: Option<Text<'a>>,
}

/// Something that was said, called, answered or thought.
#[derive(Debug, Deserialize)]
pub(super) struct Item<'a> {
    /// Missing for a message.
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Content<'a, Part<'a>>>,
    #[serde(borrow)]
    pub(super) call_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) arguments: Option<Shape>,
    #[serde(borrow)]
    pub(super) output: Option<Content<'a, Part<'a>>>,
    #[serde(borrow)]
    pub(super) summary: Option<Content<'a, Part<'a>>>,
    #[serde(borrow)]
    pub(super) encrypted_content: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) parameters: Option<Schema>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Schema {
    #[serde(rename = "type")]
    pub(super) kind: Option<Value>,
}

/// Where an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    System,
    User,
    Model,
    Result,
}

impl<'a> Item<'a> {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("message")
    }

    pub(super) fn origin(&self) -> Origin {
        match (self.kind(), self.role.as_deref()) {
            ("message", Some("system" | "developer")) => Origin::System,
            ("message", Some("assistant")) => Origin::Model,
            ("message", _) => Origin::User,
            (kind, _) if kind.ends_with("_output") => Origin::Result,
            // Reasoning, and calls of all kinds.
            _ => Origin::Model,
        }
    }

    pub(super) fn texts(&self) -> Vec<&str> {
        texts(self.content.as_ref())
    }

    /// What reasoning was about, for those who may know.
    pub(super) fn summary(&self) -> String {
        texts(self.summary.as_ref()).concat()
    }
}

fn texts<'b>(content: Option<&'b Content<'_, Part<'_>>>) -> Vec<&'b str> {
    match content {
        Some(Content::Text(text)) => vec![text],
        Some(Content::Parts(parts)) => {
            parts.iter().filter_map(|part| part.text.as_deref()).collect()
        }
        Some(Content::Other) | None => Vec::new(),
    }
}

impl<'a> Responses<'a> {
    pub(super) fn items(&self) -> &[Raw<'a, Item<'a>>] {
        self.input.as_ref().map_or(&[], Content::parts)
    }

    /// Whether reasoning is to be returned in a form that can be sent back.
    pub(super) fn wants_encrypted_reasoning(&self) -> bool {
        let mut wanted = self.include.iter().flatten();
        wanted.any(|what| &**what == "reasoning.encrypted_content")
    }

    pub(super) fn said<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b> {
        let mut ask = Ask::new(Wire::OpenAiResponses, request, body);
        ask.model = self.model.as_deref().unwrap_or_default();
        ask.system.extend(self.instructions.as_deref());
        if let Some(Content::Text(text)) = &self.input {
            ask.messages.push(Said { texts: vec![text], ..Said::nothing(Role::User) });
        }
        let mut before = None;
        for item in self.items() {
            let origin = item.origin();
            match origin {
                Origin::System => ask.system.extend(item.texts()),
                Origin::User => {
                    ask.messages.push(Said { texts: item.texts(), ..Said::nothing(Role::User) })
                }
                Origin::Result => {
                    let results = vec![texts(item.output.as_ref())];
                    ask.messages.push(Said { results, ..Said::nothing(Role::User) });
                }
                Origin::Model => {
                    // Items of the model in a row were one reply.
                    if before != Some(Origin::Model) {
                        ask.messages.push(Said::nothing(Role::Assistant));
                    }
                    if let Some(said) = ask.messages.last_mut() {
                        said.texts.extend(item.texts());
                        said.calls.extend(item.call_id.as_deref());
                    }
                }
            }
            before = Some(origin);
        }
        ask.turn = ask.messages.iter().filter(|said| said.role == Role::Assistant).count();
        let tools = self.tools.iter().flatten();
        ask.tools = tools.filter_map(|tool| tool.name.as_deref()).collect();
        ask
    }
}
