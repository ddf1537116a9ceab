//! The body of a Messages request, borrowed from its text. Only what is checked, matched or
//! counted is read; the rest is skipped without being stored.

use crate::ask::Wire;
use crate::ask::{Ask, Role, Said};
use crate::http::Request;
use crate::prompt::Lifetime;
use crate::wire::value::{self, Raw, Shape, Text};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
pub(in crate::wire) struct Messages<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    pub(super) max_tokens: Option<i64>,
    #[serde(borrow)]
    pub(super) system: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    pub(super) tools: Option<Vec<Raw<'a, Tool<'a>>>>,
    pub(super) stream: Option<bool>,
    #[serde(borrow)]
    pub(super) thinking: Option<Thinking<'a>>,
    /// Leaves it to the provider to mark the last block.
    #[serde(borrow)]
    pub(super) cache_control: Option<CacheControl<'a>>,
}

/// What is read of a request of which only the turns count.
#[derive(Deserialize)]
pub(super) struct Turns<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    messages: Vec<Speaker<'a>>,
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct Speaker<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
}

impl<'a> Turns<'a> {
    /// A request in which nothing is said.
    pub(super) fn into_messages(self) -> Messages<'a> {
        let silent = |speaker: Speaker<'a>| Message { role: speaker.role, content: None };
        let messages = Some(self.messages.into_iter().map(silent).collect());
        Messages { model: self.model, messages, stream: self.stream, ..Messages::default() }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tool<'a> {
    /// Missing, or `custom`, for a tool of the client's own.
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) input_schema: Option<Shape>,
    #[serde(borrow)]
    pub(super) cache_control: Option<Raw<'a, CacheControl<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Thinking<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CacheControl<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) ttl: Option<Text<'a>>,
}

pub(super) type Content<'a> = value::Content<'a, Raw<'a, Block<'a>>>;

#[derive(Debug, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) input: Option<Shape>,
    #[serde(borrow)]
    pub(super) tool_use_id: Option<Text<'a>>,
    /// Blocks within blocks are read without their texts, which would be read once more.
    #[serde(borrow)]
    pub(super) content: Option<value::Content<'a, Block<'a>>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Text<'a>>,
    /// Of redacted thinking.
    #[serde(borrow)]
    pub(super) data: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) cache_control: Option<Raw<'a, CacheControl<'a>>>,
}

impl CacheControl<'_> {
    pub(super) fn lifetime(&self) -> Lifetime {
        match self.ttl.as_deref() {
            Some("1h") => Lifetime::OneHour,
            _ => Lifetime::FiveMinutes,
        }
    }
}

impl<'a> Block<'a> {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }

    /// The blocks within it.
    pub(super) fn inner(&self) -> &[Block<'a>] {
        self.content.as_ref().map_or(&[], value::Content::parts)
    }

    /// Its cache marks: its own, and those of the blocks within it.
    pub(super) fn marks(&self) -> impl Iterator<Item = &Raw<'a, CacheControl<'a>>> {
        let inner = self.inner().iter().filter_map(|inner| inner.cache_control.as_ref());
        inner.chain(&self.cache_control)
    }

    fn texts(&self) -> Vec<&str> {
        match &self.content {
            Some(value::Content::Text(text)) => vec![text],
            _ => texts(self.inner().iter()),
        }
    }
}

fn texts<'b>(blocks: impl Iterator<Item = &'b Block<'b>>) -> Vec<&'b str> {
    let texts = blocks.filter(|block| block.kind() == "text");
    texts.filter_map(|block| block.text.as_deref()).collect()
}

fn texts_of<'b>(content: Option<&'b Content<'b>>) -> Vec<&'b str> {
    match content {
        None | Some(value::Content::Other) => Vec::new(),
        Some(value::Content::Text(text)) => vec![text],
        Some(value::Content::Parts(blocks)) => texts(blocks.iter().map(|block| &block.value)),
    }
}

impl<'a> Messages<'a> {
    /// Whether the request wants the model to think.
    pub(super) fn thinks(&self) -> bool {
        let kind = self.thinking.as_ref().and_then(|thinking| thinking.kind.as_deref());
        kind.is_some_and(|kind| kind != "disabled")
    }

    pub(super) fn said<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b> {
        let messages: Vec<Said<'b>> = self.messages.iter().flatten().map(Message::said).collect();
        let tools = self.tools.iter().flatten();
        let mut ask = Ask::new(Wire::Anthropic, request, body);
        ask.model = self.model.as_deref().unwrap_or_default();
        ask.system = texts_of(self.system.as_ref());
        ask.tools = tools.filter_map(|tool| tool.name.as_deref()).collect();
        ask.turn = messages.iter().filter(|said| said.role == Role::Assistant).count();
        ask.messages = messages;
        ask
    }
}

impl<'a> Message<'a> {
    pub(super) fn blocks(&self) -> &[Raw<'a, Block<'a>>] {
        self.content.as_ref().map_or(&[], value::Content::parts)
    }

    fn said(&self) -> Said<'_> {
        let role = match self.role.as_deref() {
            Some("assistant") => Role::Assistant,
            _ => Role::User,
        };
        let results = self.blocks().iter().filter(|block| block.kind() == "tool_result");
        let calls = self.blocks().iter().filter(|block| block.kind() == "tool_use");
        Said {
            role,
            texts: texts_of(self.content.as_ref()),
            results: results.map(|result| result.texts()).collect(),
            calls: calls.filter_map(|call| call.id.as_deref()).collect(),
        }
    }
}
