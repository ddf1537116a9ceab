//! How the messages of a request are written.
//!
//! Texts are written as one string each, as every vendor accepts them. A list of parts is written
//! for pictures and documents, and for vendors with cache marks, so that adding or removing a mark
//! does not change the form of a text.

use super::ids::wire_id;
use super::speech::AssistantMessage;
use super::turn::{Answer, Item, Line, Mark, lines};
use crate::wire::Dialect;
use crate::wire::turns::{NO_RESULT, is_visible};
use posse_agent::Request;
use posse_protocol::Part;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::fmt::{self, Display};

/// The system prompt and the transcript.
pub(super) struct Messages<'a> {
    system: Option<&'a str>,
    lines: Vec<Line<'a>>,
    dialect: &'a Dialect,
}

impl<'a> Messages<'a> {
    pub(super) fn of(request: &'a Request, dialect: &'a Dialect) -> Self {
        let system = Some(&*request.system).filter(|text| is_visible(text));
        Messages { system, lines: lines(&request.messages, dialect), dialect }
    }
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dialect = self.dialect;
        let mut list = serializer.serialize_seq(None)?;
        if let Some(text) = self.system {
            let mark = if dialect.cache_marks { Mark::Set } else { Mark::Unset };
            list.serialize_element(&Spoken {
                role: "system",
                content: Words { text, mark, dialect },
            })?;
        }
        for line in &self.lines {
            match line {
                Line::User(items, mark) => {
                    let content = UserContent { items, mark: *mark, dialect };
                    list.serialize_element(&Spoken { role: "user", content })?;
                }
                Line::Assistant(speech) => {
                    list.serialize_element(&AssistantMessage { speech, dialect })?;
                }
                Line::Bridge => {
                    let content = "I have the results.";
                    list.serialize_element(&Spoken { role: "assistant", content })?;
                }
                Line::Result(answer, mark) => {
                    list.serialize_element(&ResultMessage { answer, mark: *mark, dialect })?;
                }
            }
        }
        list.end()
    }
}

#[derive(serde::Serialize)]
struct Spoken<T> {
    role: &'static str,
    content: T,
}

/// A text by itself: a string, or a list of one part where there are marks.
struct Words<'a, T> {
    text: T,
    mark: Mark,
    dialect: &'a Dialect,
}

impl<T: Display> Serialize for Words<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.dialect.cache_marks {
            true => [TextPart { text: &self.text, mark: self.mark }].serialize(serializer),
            false => serializer.collect_str(&self.text),
        }
    }
}

pub(super) struct TextPart<'a, T> {
    pub(super) text: &'a T,
    pub(super) mark: Mark,
}

impl<T: Display> Serialize for TextPart<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_text(&mut map, self.text)?;
        write_mark(&mut map, self.mark)?;
        map.end()
    }
}

fn write_text<M: SerializeMap>(map: &mut M, text: impl Display) -> Result<(), M::Error> {
    map.serialize_entry("type", "text")?;
    map.serialize_entry("text", &Shown(text))
}

/// The output of `T`, as a string.
pub(super) struct Shown<T>(pub(super) T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn write_mark<M: SerializeMap>(map: &mut M, mark: Mark) -> Result<(), M::Error> {
    #[derive(serde::Serialize)]
    struct Ephemeral {
        r#type: &'static str,
    }
    match mark {
        Mark::Set => map.serialize_entry("cache_control", &Ephemeral { r#type: "ephemeral" }),
        Mark::Unset => Ok(()),
    }
}

struct UserContent<'a> {
    items: &'a [Item<'a>],
    /// Of the last part.
    mark: Mark,
    dialect: &'a Dialect,
}

impl Serialize for UserContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts = self.items.iter().map_while(|item| match item {
            Item::Part(Part::Text(text)) => Some(text.text.as_str()),
            Item::Note(words) => Some(words),
            _ => None,
        });
        if !self.dialect.cache_marks && texts.clone().count() == self.items.len() {
            return serializer.collect_str(&Texts(texts));
        }
        let last = self.items.len().saturating_sub(1);
        serializer.collect_seq(self.items.iter().enumerate().map(|(position, item)| UserPart {
            item,
            mark: if position == last { self.mark } else { Mark::Unset },
        }))
    }
}

struct UserPart<'a> {
    item: &'a Item<'a>,
    mark: Mark,
}

impl Serialize for UserPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct ImageUrl<T> {
            url: T,
        }
        #[derive(serde::Serialize)]
        struct File<'a, T> {
            filename: &'a str,
            file_data: T,
        }
        let mut map = serializer.serialize_map(None)?;
        match self.item {
            Item::Part(Part::Image { media_type, data }) => {
                let url = Shown(DataUrl { media_type, data });
                map.serialize_entry("type", "image_url")?;
                map.serialize_entry("image_url", &ImageUrl { url })?;
            }
            Item::Part(Part::Document { media_type, name, data }) => {
                let file_data = Shown(DataUrl { media_type, data });
                map.serialize_entry("type", "file")?;
                map.serialize_entry("file", &File { filename: name, file_data })?;
            }
            Item::Part(part) => {
                let text = if let Part::Text(text) = part { text.text.as_str() } else { "" };
                write_text(&mut map, text)?;
            }
            Item::Note(words) => write_text(&mut map, words)?,
            Item::Source(call) => {
                write_text(&mut map, format_args!("What the call of {} returned:", call.name))?;
            }
        }
        write_mark(&mut map, self.mark)?;
        map.end()
    }
}

struct DataUrl<'a> {
    media_type: &'a str,
    data: &'a str,
}

impl Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.media_type, self.data)
    }
}

/// Texts with an empty line between two.
pub(super) struct Texts<I>(pub(super) I);

impl<'a, I: Iterator<Item = &'a str> + Clone> Display for Texts<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(f, self.0.clone(), "\n\n")
    }
}

fn write_joined<'a>(
    f: &mut fmt::Formatter<'_>,
    texts: impl Iterator<Item = &'a str>,
    between: &str,
) -> fmt::Result {
    for (position, text) in texts.enumerate() {
        f.write_str(if position == 0 { "" } else { between })?;
        f.write_str(text)?;
    }
    Ok(())
}

struct ResultMessage<'a> {
    answer: &'a Answer<'a>,
    mark: Mark,
    dialect: &'a Dialect,
}

impl Serialize for ResultMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Answer { call, origin, .. } = self.answer;
        let content =
            Words { text: ResultText(self.answer), mark: self.mark, dialect: self.dialect };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", "tool")?;
        map.serialize_entry("tool_call_id", &*wire_id(&call.id.0, *origin, self.dialect.call_ids))?;
        map.serialize_entry("content", &content)?;
        map.end()
    }
}

/// The text of a result. Never empty: some vendors refuse that.
struct ResultText<'a>(&'a Answer<'a>);

impl Display for ResultText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(result) = self.0.result else {
            return write!(f, "Error: {NO_RESULT}");
        };
        if result.is_error {
            f.write_str("Error: ")?;
        }
        let mut texts = result.parts.iter().filter_map(|part| match part {
            Part::Text(text) if is_visible(&text.text) => Some(text.text.as_str()),
            _ => None,
        });
        match texts.next() {
            Some(first) => write_joined(f, std::iter::once(first).chain(texts), "\n"),
            None if self.0.has_attachments() => f.write_str("(what it returned follows)"),
            None => f.write_str("(no output)"),
        }
    }
}
