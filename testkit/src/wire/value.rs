//! Values of a request's body, borrowed from its text.

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// A string that borrows unless it holds escapes. Bare in an `Option`, a `Cow` would always be
/// copied.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A value, and the text it was read from.
#[derive(Debug)]
pub(super) struct Raw<'a, T> {
    pub(super) source: &'a str,
    pub(super) value: T,
}

impl<T> Deref for Raw<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Raw<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = <&'de RawValue>::deserialize(deserializer)?.get();
        Ok(Raw { source, value: serde_json::from_str(source).map_err(D::Error::custom)? })
    }
}

/// What a value is; its content is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    List,
    Text,
    Number,
    Bool,
    Null,
}

impl Shape {
    /// With its article, as error messages of OpenAI have it.
    pub(super) fn described(self) -> &'static str {
        match self {
            Shape::Object => "an object",
            Shape::List => "an array",
            Shape::Text => "a string",
            Shape::Number => "a number",
            Shape::Bool => "a boolean",
            Shape::Null => "null",
        }
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

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Shape::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Shape::List)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::Text)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Bool)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Number)
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Null)
    }
}

/// One text, or a list of parts.
#[derive(Debug)]
pub(super) enum Content<'a, P> {
    Text(Cow<'a, str>),
    Parts(Vec<P>),
    /// Something that only kinds of blocks have which are not looked into.
    Other,
}

impl<P> Content<'_, P> {
    pub(super) fn parts(&self) -> &[P] {
        match self {
            Content::Parts(parts) => parts,
            Content::Text(_) | Content::Other => &[],
        }
    }
}

impl<'de: 'a, 'a, P: Deserialize<'de>> Deserialize<'de> for Content<'a, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor(std::marker::PhantomData))
    }
}

struct ContentVisitor<P>(std::marker::PhantomData<P>);

impl<'de, P: Deserialize<'de>> Visitor<'de> for ContentVisitor<P> {
    type Value = Content<'de, P>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string or a list")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element()? {
            parts.push(part);
        }
        Ok(Content::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::Other)
    }
}
