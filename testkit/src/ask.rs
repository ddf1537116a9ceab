//! A request to a model as scripts see it: the same for every wire format.

use crate::http::Request;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::OnceCell;

/// Makes the enum and its names from one table.
macro_rules! wires {
    ($($(#[$doc:meta])+ $wire:ident = $name:literal,)+) => {
        /// A wire format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Wire {
            $($(#[$doc])+ $wire,)+
        }

        impl Wire {
            /// All of them.
            pub const ALL: [Wire; [$($name),+].len()] = [$(Wire::$wire),+];

            /// What people call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Wire::$wire => $name,)+
                }
            }
        }
    };
}

wires! {
    /// Anthropic Messages.
    Anthropic = "anthropic",
    /// OpenAI Chat Completions.
    OpenAiChat = "openai-chat",
    /// OpenAI Responses.
    OpenAiResponses = "openai-responses",
    /// Gemini generateContent.
    Gemini = "gemini",
}

/// What a request asks, borrowed from its body.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) wire: Wire,
    /// With its query.
    pub(crate) path: &'a str,
    pub(crate) model: &'a str,
    pub(crate) system: Vec<&'a str>,
    pub(crate) messages: Vec<Said<'a>>,
    pub(crate) tools: Vec<&'a str>,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: &'a str,
    /// The number of assistant messages in the transcript.
    pub(crate) turn: usize,
    /// The body as a tree, parsed when the first rule needs it.
    tree: OnceCell<Value>,
}

/// One message of the transcript.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) role: Role,
    pub(crate) texts: Vec<&'a str>,
    /// Each tool result, as the pieces of text it consists of.
    pub(crate) results: Vec<Vec<&'a str>>,
    /// The ids of the tool calls in it.
    pub(crate) calls: Vec<&'a str>,
}

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
}

impl<'a> Ask<'a> {
    /// A request of which only the path is known so far.
    pub(crate) fn new(wire: Wire, request: &'a Request, body: &'a str) -> Self {
        Ask {
            wire,
            path: &request.target,
            model: "",
            system: Vec::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            headers: &request.headers,
            body,
            turn: 0,
            tree: OnceCell::new(),
        }
    }

    /// The value at this JSON pointer of the body.
    pub(crate) fn field(&self, pointer: &str) -> Option<&Value> {
        let read = || serde_json::from_str(self.body).unwrap_or_default();
        self.tree.get_or_init(read).pointer(pointer)
    }

    /// The text of the first user message that has text.
    pub(crate) fn first_user(&self) -> Cow<'_, str> {
        self.messages.iter().find(|said| said.is_user_text()).map_or(Cow::Borrowed(""), Said::text)
    }

    /// The text of the last user message that has text.
    pub(crate) fn last_user(&self) -> Cow<'_, str> {
        let last = self.messages.iter().rev().find(|said| said.is_user_text());
        last.map_or(Cow::Borrowed(""), Said::text)
    }

    /// The tool results that came after the last assistant message, the newest first. Some
    /// clients spread them over several messages.
    pub(crate) fn new_results(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let new = self.messages.iter().rev().take_while(|said| said.role == Role::User);
        new.flat_map(|said| said.results.iter().rev()).map(|pieces| joined(pieces))
    }

    /// The newest of the new tool results.
    pub(crate) fn last_result(&self) -> Cow<'_, str> {
        self.new_results().next().unwrap_or(Cow::Borrowed(""))
    }

    /// The first value of the header with this lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Said<'_> {
    /// A message that says nothing yet.
    pub(crate) fn nothing(role: Role) -> Self {
        Said { role, texts: Vec::new(), results: Vec::new(), calls: Vec::new() }
    }

    fn is_user_text(&self) -> bool {
        self.role == Role::User && !self.texts.is_empty()
    }

    /// Its text blocks, one after the other.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        joined(&self.texts)
    }
}

/// Pieces of text, joined by line ends.
pub(crate) fn joined<'a>(pieces: &[&'a str]) -> Cow<'a, str> {
    match pieces {
        [] => Cow::Borrowed(""),
        [one] => Cow::Borrowed(one),
        several => Cow::Owned(several.join("\n")),
    }
}
