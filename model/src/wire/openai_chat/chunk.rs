//! The data of an event, borrowed from it.
//!
//! A chunk of a stream and a whole reply have the same form but for `delta` and `message`.
//! Descriptive fields may have any type, since vendors differ; content may not.

use super::usage::Counts;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A chunk of a stream, or a whole reply.
#[derive(serde::Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) id: Words<'a>,
    #[serde(borrow, default)]
    pub(super) object: Words<'a>,
    #[serde(borrow, default)]
    pub(super) choices: SmallList<Choice<'a>>,
    pub(super) usage: Option<Counts>,
    pub(super) x_groq: Option<Groq>,
    #[serde(borrow, default)]
    pub(super) service_tier: Words<'a>,
    /// Addresses that the text refers to; every chunk repeats all of them.
    pub(super) citations: Option<Vec<Value>>,
    pub(super) error: Option<Value>,
}

/// Where Groq puts the usage of a stream.
#[derive(serde::Deserialize)]
pub(super) struct Groq {
    pub(super) usage: Option<Counts>,
    pub(super) error: Option<Value>,
}

#[derive(serde::Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Index,
    #[serde(borrow)]
    pub(super) delta: Option<Piece<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Piece<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Words<'a>,
    /// Where Moonshot puts it.
    pub(super) usage: Option<Counts>,
    pub(super) error: Option<Value>,
}

/// More of the message, or all of it.
#[derive(serde::Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow, default)]
    pub(super) content: Content<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Words<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Words<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_details: SmallList<Fields<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Words<'a>,
    pub(super) annotations: Option<Vec<Value>>,
    #[serde(borrow, default)]
    pub(super) tool_calls: SmallList<CallPiece<'a>>,
}

#[derive(serde::Deserialize)]
pub(super) struct CallPiece<'a> {
    #[serde(default)]
    pub(super) index: Index,
    #[serde(borrow, default)]
    pub(super) id: Words<'a>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionPiece<'a>>,
    pub(super) extra_content: Option<Value>,
}

impl CallPiece<'_> {
    /// How much of the call's input it brings.
    pub(super) fn bytes(&self) -> usize {
        match self.function.as_ref().map(|function| &function.arguments) {
            Some(Field::Text(text)) => text.len(),
            Some(Field::Other(value)) if !value.is_null() => value.to_string().len(),
            _ => 0,
        }
    }
}

#[derive(Default, serde::Deserialize)]
pub(super) struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    pub(super) name: Words<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Field<'a>,
}

/// A text; empty where there is none or something else.
#[derive(Default)]
pub(super) struct Words<'a>(pub(super) Cow<'a, str>);

impl Words<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, unless there is none.
    pub(super) fn into_text(self) -> Option<String> {
        (!self.is_empty()).then(|| self.0.into_owned())
    }
}

/// An index; none for anything else.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Index(pub(super) Option<u64>);

/// A list that nearly always has one element or none, and needs no allocation for it.
pub(super) struct SmallList<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Default for SmallList<T> {
    fn default() -> Self {
        SmallList { first: None, rest: Vec::new() }
    }
}

impl<T> IntoIterator for SmallList<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

/// What is said: a text, or blocks.
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Fields<'a>>),
}

impl Default for Content<'_> {
    fn default() -> Self {
        Content::Text(Cow::Borrowed(""))
    }
}

/// An object as it came, its texts borrowed.
pub(super) struct Fields<'a>(pub(super) Vec<(Cow<'a, str>, Field<'a>)>);

impl<'a> Fields<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&Field<'a>> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, field)| field)
    }

    /// The text under `key`; empty when there is none.
    pub(super) fn text(&self, key: &str) -> &str {
        match self.get(key) {
            Some(Field::Text(text)) => text,
            _ => "",
        }
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        let owned = |(key, field): (Cow<'_, str>, Field<'_>)| (key.into_owned(), field.into());
        self.0.into_iter().map(owned).collect()
    }
}

/// A value as it came, borrowed if it is a text.
pub(super) enum Field<'a> {
    Text(Cow<'a, str>),
    Other(Value),
}

impl Default for Field<'_> {
    fn default() -> Self {
        Field::Other(Value::Null)
    }
}

impl From<Field<'_>> for Value {
    fn from(field: Field<'_>) -> Self {
        match field {
            Field::Text(text) => Value::String(text.into_owned()),
            Field::Other(value) => value,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Field::deserialize(deserializer)? {
            Field::Text(text) => Words(text),
            Field::Other(Value::Number(number)) => Words(Cow::Owned(number.to_string())),
            Field::Other(_) => Words::default(),
        })
    }
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Field::deserialize(deserializer)? {
            Field::Text(_) => Ok(Index(None)),
            Field::Other(value) => Ok(Index(value.as_u64())),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SmallList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = SmallList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list or nothing")
            }

            fn visit_unit<E: Error>(self) -> Result<SmallList<T>, E> {
                Ok(SmallList::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SmallList<T>, A::Error> {
                let first = list.next_element()?;
                let mut rest = Vec::new();
                while let Some(more) = list.next_element()? {
                    rest.push(more);
                }
                Ok(SmallList { first, rest })
            }
        }
        deserializer.deserialize_any(List(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBlocks;
        impl<'de> Visitor<'de> for TextOrBlocks {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a list of blocks or nothing")
            }

            fn visit_unit<E: Error>(self) -> Result<Content<'de>, E> {
                Ok(Content::default())
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Content<'de>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Content::Blocks)
            }
        }
        deserializer.deserialize_any(TextOrBlocks)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(Words(key)) = map.next_key()? {
                    fields.push((key, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Field<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Field<'de>, E> {
                Ok(Field::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Field<'de>, E> {
                Ok(Field::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E: Error>(self) -> Result<Field<'de>, E> {
                Ok(Field::default())
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Field<'de>, E> {
                Ok(Field::Other(Value::Bool(value)))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Field<'de>, E> {
                Ok(Field::Other(value.into()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Field<'de>, E> {
                Ok(Field::Other(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Field<'de>, E> {
                Ok(Field::Other(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Field<'de>, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(list)).map(Field::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Field<'de>, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(Field::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
