//! Replaces content that a model does not accept by words, so that one picture in a transcript does
//! not make every later request fail.

use posse_agent::Request;
use posse_protocol::{Message, Part};
use std::sync::Arc;

/// What a model accepts besides text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputKinds {
    pub(crate) images: bool,
    pub(crate) documents: bool,
}

impl InputKinds {
    /// Replaces content that the model does not accept. The same request gives the same words.
    pub(crate) fn adapt(self, request: &mut Request) {
        if self.images && self.documents {
            return;
        }
        for message in &mut request.messages {
            if message.parts.iter().any(|part| self.is_too_much(part)) {
                let parts = message.parts.iter().map(|part| self.seen(part)).collect();
                *message = Arc::new(Message { parts, ..Message::clone(message) });
            }
        }
    }

    fn is_too_much(self, part: &Part) -> bool {
        match part {
            Part::Image { .. } => !self.images,
            Part::Document { .. } => !self.documents,
            Part::ToolResult(result) => result.parts.iter().any(|part| self.is_too_much(part)),
            _ => false,
        }
    }

    fn seen(self, part: &Part) -> Part {
        match part {
            Part::Image { media_type, .. } if !self.images => {
                Part::text(format!("[a picture ({media_type}) that this model cannot see]"))
            }
            Part::Document { media_type, name, .. } if !self.documents => {
                let name = name.trim();
                Part::text(format!(
                    "[a document {name} ({media_type}) that this model cannot read]"
                ))
            }
            Part::ToolResult(result) => {
                let parts = result.parts.iter().map(|part| self.seen(part)).collect();
                let mut result = result.clone();
                result.parts = parts;
                Part::ToolResult(result)
            }
            other => other.clone(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use posse_protocol::{CallId, Extra, Role, ToolResult};

    fn request(parts: Vec<Part>) -> Request {
        Request {
            system: "".into(),
            messages: vec![
                Arc::new(Message::user("look")),
                Arc::new(Message::new(Role::User, parts)),
            ],
            tools: Vec::new().into(),
            max_tokens: 1,
            effort: None,
            output_schema: None,
        }
    }

    fn picture() -> Part {
        Part::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() }
    }

    #[test]
    fn a_model_that_sees_nothing_is_told_what_it_does_not_see() {
        let result = ToolResult {
            call: CallId("c1".into()),
            parts: vec![Part::text("here"), picture()],
            is_error: false,
            extra: Extra::default(),
        };
        let paper = Part::Document {
            media_type: "application/pdf".to_owned(),
            name: "plan.pdf".to_owned(),
            data: "AAAA".to_owned(),
        };
        let mut asked = request(vec![Part::ToolResult(result), paper, picture()]);
        let untouched = asked.messages[0].clone();
        InputKinds { images: false, documents: false }.adapt(&mut asked);
        assert!(Arc::ptr_eq(&asked.messages[0], &untouched), "nothing else is copied");
        let text = serde_json::to_string(&asked.messages[1]).unwrap();
        assert!(!text.contains("AAAA") && text.contains("\"here\""), "{text}");
        assert_eq!(text.matches("that this model cannot see").count(), 2, "{text}");
        assert!(text.contains("plan.pdf (application/pdf) that this model cannot read"), "{text}");
    }

    #[test]
    fn a_model_that_sees_gets_what_was_sent() {
        let mut asked = request(vec![picture()]);
        let before = asked.messages[1].clone();
        InputKinds { images: true, documents: false }.adapt(&mut asked);
        assert!(Arc::ptr_eq(&asked.messages[1], &before));
    }
}
