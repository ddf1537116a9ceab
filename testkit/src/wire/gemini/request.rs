//! The body of a generateContent request, borrowed from its text. The real API refuses every name
//! it does not know, and takes each in two spellings.

use crate::ask::Wire;
use crate::ask::{Ask, Role, Said};
use crate::http::Request;
use crate::wire::value::{Raw, Shape, Text};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A request: the path names the model, and says whether a stream is asked for.
#[derive(Debug)]
pub(in crate::wire) struct Generate<'a> {
    pub(super) model: &'a str,
    pub(super) verb: super::Verb,
    pub(super) framing: Framing,
    pub(super) body: Body<'a>,
}

/// How the pieces of a stream are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    ServerSentEvents,
    /// One JSON array that grows.
    Array,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Body<'a> {
    #[serde(borrow)]
    pub(super) contents: Option<Vec<Raw<'a, Content<'a>>>>,
    #[serde(borrow, alias = "system_instruction")]
    pub(super) system_instruction: Option<Raw<'a, Content<'a>>>,
    #[serde(borrow)]
    pub(super) tools: Option<Vec<Raw<'a, Tool<'a>>>>,
    #[serde(alias = "generation_config")]
    pub(super) generation_config: Option<GenerationConfig>,
    #[serde(rename = "toolConfig", alias = "tool_config")]
    _tool_config: Option<IgnoredAny>,
    #[serde(rename = "safetySettings", alias = "safety_settings")]
    _safety_settings: Option<IgnoredAny>,
    #[serde(rename = "cachedContent", alias = "cached_content")]
    _cached_content: Option<IgnoredAny>,
    #[serde(rename = "serviceTier", alias = "service_tier")]
    _service_tier: Option<IgnoredAny>,
    #[serde(rename = "labels")]
    _labels: Option<IgnoredAny>,
    #[serde(rename = "model")]
    _model: Option<IgnoredAny>,
    #[serde(rename = "store")]
    _store: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig {
    #[serde(alias = "max_output_tokens")]
    pub(super) max_output_tokens: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) parts: Option<Vec<Part<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    pub(super) thought: Option<bool>,
    #[serde(borrow, alias = "thought_signature")]
    pub(super) thought_signature: Option<Text<'a>>,
    #[serde(borrow, alias = "inline_data")]
    pub(super) inline_data: Option<Blob<'a>>,
    #[serde(borrow, alias = "function_call")]
    pub(super) function_call: Option<FunctionCall<'a>>,
    #[serde(borrow, alias = "function_response")]
    pub(super) function_response: Option<FunctionResponse<'a>>,
    #[serde(alias = "file_data")]
    file_data: Option<IgnoredAny>,
    #[serde(alias = "executable_code")]
    executable_code: Option<IgnoredAny>,
    #[serde(alias = "code_execution_result")]
    code_execution_result: Option<IgnoredAny>,
    #[serde(alias = "tool_call")]
    tool_call: Option<IgnoredAny>,
    #[serde(alias = "tool_response")]
    tool_response: Option<IgnoredAny>,
    #[serde(rename = "videoMetadata", alias = "video_metadata")]
    _video_metadata: Option<IgnoredAny>,
    #[serde(rename = "mediaResolution", alias = "media_resolution")]
    _media_resolution: Option<IgnoredAny>,
    #[serde(rename = "partMetadata", alias = "part_metadata")]
    _part_metadata: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Blob<'a> {
    #[serde(borrow, alias = "mime_type")]
    pub(super) mime_type: Option<Text<'a>>,
    pub(super) data: Option<Shape>,
    #[serde(rename = "displayName", alias = "display_name")]
    _display_name: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FunctionResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) response: Option<Answer<'a>>,
    /// Images and documents that go with it.
    #[serde(rename = "parts")]
    _parts: Option<IgnoredAny>,
    #[serde(rename = "willContinue", alias = "will_continue")]
    _will_continue: Option<IgnoredAny>,
    #[serde(rename = "scheduling")]
    _scheduling: Option<IgnoredAny>,
}

/// What a function returned: an object. One that holds a single string counts as that string,
/// any other as its JSON.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) shape: Shape,
    text: Cow<'a, str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Answer<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = <&'de RawValue>::deserialize(deserializer)?.get();
        let value: Value = serde_json::from_str(source).map_err(D::Error::custom)?;
        let (shape, lone) = match value {
            Value::Object(members) if members.len() == 1 => {
                let lone = members.into_iter().next().map(|(_, value)| value);
                (Shape::Object, lone)
            }
            Value::Object(_) => (Shape::Object, None),
            Value::Array(_) => (Shape::List, None),
            Value::String(_) => (Shape::Text, None),
            Value::Number(_) => (Shape::Number, None),
            Value::Bool(_) => (Shape::Bool, None),
            Value::Null => (Shape::Null, None),
        };
        let text = match lone {
            Some(Value::String(text)) => Cow::Owned(text),
            _ => Cow::Borrowed(source),
        };
        Ok(Answer { shape, text })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool<'a> {
    #[serde(borrow, alias = "function_declarations")]
    pub(super) function_declarations: Option<Vec<Declaration<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Declaration<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    /// In the provider's own schema language.
    pub(super) parameters: Option<Value>,
    #[serde(alias = "parameters_json_schema")]
    pub(super) parameters_json_schema: Option<Shape>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    #[serde(rename = "behavior")]
    _behavior: Option<IgnoredAny>,
    #[serde(rename = "response")]
    _response: Option<IgnoredAny>,
    #[serde(rename = "responseJsonSchema", alias = "response_json_schema")]
    _response_json_schema: Option<IgnoredAny>,
}

impl Part<'_> {
    /// Whether it is something at all.
    pub(super) fn has_data(&self) -> bool {
        let others = [
            &self.file_data,
            &self.executable_code,
            &self.code_execution_result,
            &self.tool_call,
            &self.tool_response,
        ];
        self.text.is_some()
            || self.inline_data.is_some()
            || self.function_call.is_some()
            || self.function_response.is_some()
            || others.iter().any(|other| other.is_some())
    }

    pub(super) fn is_thought(&self) -> bool {
        self.thought == Some(true)
    }
}

impl<'a> Content<'a> {
    pub(super) fn parts(&self) -> &[Part<'a>] {
        self.parts.as_deref().unwrap_or_default()
    }

    pub(super) fn is_model(&self) -> bool {
        self.role.as_deref() == Some("model")
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &FunctionCall<'a>> {
        self.parts().iter().filter_map(|part| part.function_call.as_ref())
    }

    pub(super) fn responses(&self) -> impl Iterator<Item = &FunctionResponse<'a>> {
        self.parts().iter().filter_map(|part| part.function_response.as_ref())
    }

    fn texts(&self) -> Vec<&str> {
        let spoken = self.parts().iter().filter(|part| !part.is_thought());
        spoken.filter_map(|part| part.text.as_deref()).collect()
    }

    fn said(&self) -> Said<'_> {
        let results = self.responses().map(|found| {
            found.response.as_ref().map(|answer| answer.text.as_ref()).into_iter().collect()
        });
        Said {
            role: if self.is_model() { Role::Assistant } else { Role::User },
            texts: self.texts(),
            results: results.collect(),
            calls: self.calls().filter_map(|call| call.id.as_deref()).collect(),
        }
    }
}

impl<'a> Generate<'a> {
    pub(super) fn contents(&self) -> &[Raw<'a, Content<'a>>] {
        self.body.contents.as_deref().unwrap_or_default()
    }

    pub(super) fn declarations(&self) -> impl Iterator<Item = &Declaration<'a>> {
        let tools = self.body.tools.iter().flatten();
        tools.flat_map(|tool| tool.function_declarations.iter().flatten())
    }

    pub(super) fn said<'b>(&'b self, request: &'b Request, body: &'b str) -> Ask<'b> {
        let mut ask = Ask::new(Wire::Gemini, request, body);
        ask.model = self.model;
        let system = self.body.system_instruction.as_ref();
        ask.system = system.map(|system| system.texts()).unwrap_or_default();
        ask.messages = self.contents().iter().map(|content| content.said()).collect();
        ask.turn = ask.messages.iter().filter(|said| said.role == Role::Assistant).count();
        ask.tools = self.declarations().filter_map(|offer| offer.name.as_deref()).collect();
        ask
    }
}
