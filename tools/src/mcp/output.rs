//! The result of a call, as a model sees it.

use posse_protocol::Part;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use std::path::Path;

/// The most bytes of text that a model gets of one result.
pub(super) const LONGEST_TEXT: usize = 50_000;
/// The most bytes of the pictures of one result, in base 64.
const LONGEST_PICTURES: usize = 5 << 20;
/// The pictures that every vendor accepts.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What a model sees of a result, before it is shortened.
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) pictures: Vec<Part>,
    pub(super) is_error: bool,
}

impl Shown {
    pub(super) fn of(result: CallToolResult) -> Shown {
        let mut parts = Parts::default();
        let is_empty = result.content.is_empty();
        for block in result.content {
            parts.add(block);
        }
        // Servers repeat the structured result as text, unless they have no other.
        if let Some(structured) = result.structured_content.filter(|_| is_empty) {
            parts.text(structured.to_string());
        }
        let Parts { texts, pictures, .. } = parts;
        Shown { text: texts.join("\n"), pictures, is_error: result.is_error == Some(true) }
    }
}

/// Returns `text`, or its beginning and its end if it is too long. `kept` is the file with the whole of it.
pub(super) fn shortened(text: String, kept: Option<&Path>) -> String {
    if text.len() <= LONGEST_TEXT {
        return text;
    }
    let begin = text.floor_char_boundary(LONGEST_TEXT / 2);
    let end = text.ceil_char_boundary(text.len() - LONGEST_TEXT / 2);
    let place = kept
        .map_or_else(String::new, |path| format!("; the whole result is in {}", path.display()));
    format!("{}\n[{} bytes omitted{place}]\n{}", &text[..begin], end - begin, &text[end..])
}

#[derive(Default)]
struct Parts {
    texts: Vec<String>,
    pictures: Vec<Part>,
    bytes_of_pictures: usize,
}

impl Parts {
    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.text(text.text),
            ContentBlock::Image(image) => self.picture(image.mime_type, image.data),
            ContentBlock::Audio(audio) => {
                self.left_out("a sound", &audio.mime_type, audio.data.len())
            }
            ContentBlock::ResourceLink(link) => {
                let about = link.description.unwrap_or(link.name);
                self.text(format!("[resource {}: {about}]", link.uri));
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    self.text(format!("[resource {uri}]\n{text}"));
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    let kind = mime_type.unwrap_or_default();
                    self.left_out(&format!("resource {uri}"), &kind, blob.len());
                }
                _ => self.left_out("a resource", "of an unknown kind", 0),
            },
            _ => self.left_out("a part", "of an unknown kind", 0),
        }
    }

    fn text(&mut self, text: String) {
        self.texts.push(text);
    }

    fn picture(&mut self, media_type: String, data: String) {
        self.bytes_of_pictures += data.len();
        if !PICTURES.contains(&media_type.as_str()) || self.bytes_of_pictures > LONGEST_PICTURES {
            return self.left_out("a picture", &media_type, data.len());
        }
        self.pictures.push(Part::Image { media_type, data });
    }

    fn left_out(&mut self, what: &str, kind: &str, bytes: usize) {
        self.text(format!("[left out: {what}, {kind}, {bytes} bytes in base 64]"));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(result: Value) -> Shown {
        Shown::of(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn every_part_of_a_result_is_there_or_named() {
        let result = of(json!({"isError": true, "content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "image", "mimeType": "image/x-odd", "data": "AAAA"},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "a:1", "text": "two"}},
            {"type": "resource", "resource": {"uri": "a:2", "blob": "AAAA", "mimeType": "x/y"}},
            {"type": "resource_link", "uri": "a:3", "name": "three"}]}));
        assert!(result.is_error);
        assert_eq!(
            result.text,
            "one\n[left out: a picture, image/x-odd, 4 bytes in base 64]\n[left out: a sound, audio/wav, 4 bytes \
             in base 64]\n[resource a:1]\ntwo\n[left out: resource a:2, x/y, 4 bytes in base 64]\n[resource a:3: \
             three]"
        );
        assert!(matches!(result.pictures.as_slice(), [Part::Image { .. }]));
    }

    #[test]
    fn a_structured_result_without_text_is_shown_and_a_long_text_is_cut() {
        let result = of(json!({"content": [], "structuredContent": {"a": 1}}));
        assert_eq!(result.text, "{\"a\":1}");
        let text = shortened("ä".repeat(LONGEST_TEXT), Some(Path::new("/s/mcp-1.txt")));
        assert!(text.len() < LONGEST_TEXT + 100, "{}", text.len());
        assert!(text.contains("[50000 bytes omitted; the whole result is in /s/mcp-1.txt]"));
        assert_eq!(shortened("a".to_owned(), None), "a");
    }
}
