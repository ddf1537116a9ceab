//! The body of a Messages request, borrowed from its text. Only what is checked or matched is
//! read; the rest is skipped without being stored.

use crate::ask::{Ask, Role, Said};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Deserialize)]
pub(super) struct MessagesRequest<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    pub(super) max_tokens: Option<i64>,
    #[serde(borrow)]
    pub(super) system: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    pub(super) tools: Option<Vec<Tool<'a>>>,
    pub(super) stream: Option<bool>,
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
}

/// Content is one text or a list of blocks.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
    /// Something that only kinds of blocks have which are not looked into.
    Other,
}

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
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Text<'a>>,
}

/// A string that borrows unless it holds escapes. Bare in an `Option`, a `Cow` would always be
/// copied.
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Whether a value is an object; its content is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    Other,
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Block<'_> {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }
}

impl MessagesRequest<'_> {
    /// The request as scripts see it.
    pub(super) fn ask<'b>(&'b self, headers: &'b [(String, String)], body: &'b str) -> Ask<'b> {
        let messages: Vec<Said<'b>> = self.messages.iter().flatten().map(Message::said).collect();
        let tools = self.tools.iter().flatten();
        Ask {
            model: self.model.as_deref().unwrap_or_default(),
            system: self.system.as_ref().map(Content::texts).unwrap_or_default(),
            turn: messages.iter().filter(|said| said.role == Role::Assistant).count(),
            messages,
            tools: tools.filter_map(|tool| tool.name.as_deref()).collect(),
            headers,
            body,
        }
    }
}

impl Message<'_> {
    fn said(&self) -> Said<'_> {
        let role = match self.role.as_deref() {
            Some("assistant") => Role::Assistant,
            _ => Role::User,
        };
        let texts = self.content.as_ref().map(Content::texts).unwrap_or_default();
        let blocks = self.content.as_ref().map_or(&[][..], Content::blocks);
        let results = blocks.iter().filter(|block| block.kind() == "tool_result");
        let calls = blocks.iter().filter(|block| block.kind() == "tool_use");
        Said {
            role,
            texts,
            results: results
                .map(|result| result.content.as_ref().map(Content::texts).unwrap_or_default())
                .collect(),
            calls: calls.filter_map(|call| call.id.as_deref()).collect(),
        }
    }
}

impl<'a> Content<'a> {
    pub(super) fn blocks(&self) -> &[Block<'a>] {
        match self {
            Content::Blocks(blocks) => blocks,
            Content::Text(_) | Content::Other => &[],
        }
    }

    fn texts(&self) -> Vec<&str> {
        match self {
            Content::Text(text) => vec![text],
            Content::Other => Vec::new(),
            Content::Blocks(blocks) => {
                let texts = blocks.iter().filter(|block| block.kind() == "text");
                texts.filter_map(|block| block.text.as_deref()).collect()
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string or a list of blocks")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = list.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::Other)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Shape::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Shape::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }
}
