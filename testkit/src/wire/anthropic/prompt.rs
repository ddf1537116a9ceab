//! The prompt in the order Anthropic caches it: tools, system, messages. Cache marks are no part
//! of it, since they move on from turn to turn.

use super::request::{Block, CacheControl, Content, Messages};
use crate::prompt::{Lifetime, Prompt};
use crate::wire::value::{self, Raw};

pub(super) fn of(request: &Messages<'_>) -> Prompt {
    let mut prompt = Prompt::default();
    for tool in request.tools.iter().flatten() {
        push_without_marks(&mut prompt, tool.source, tool.cache_control.iter());
        prompt.end_block(tool.cache_control.as_ref().map(|mark| mark.lifetime()));
    }
    if let Some(system) = &request.system {
        push_content(&mut prompt, system);
    }
    let mut speaker = None;
    for message in request.messages.iter().flatten() {
        // Messages of one role in a row are one to the provider.
        let role = message.role.as_deref();
        if role != speaker {
            prompt.push(role.unwrap_or_default());
            speaker = role;
        }
        if let Some(content) = &message.content {
            push_content(&mut prompt, content);
        }
    }
    if let Some(mark) = &request.cache_control {
        prompt.mark_last_block(mark.lifetime());
    }
    prompt
}

fn push_content(prompt: &mut Prompt, content: &Content<'_>) {
    match content {
        value::Content::Text(text) => {
            prompt.push(text);
            prompt.end_block(None);
        }
        value::Content::Parts(blocks) => {
            for block in blocks {
                push_block(prompt, block);
            }
        }
        value::Content::Other => {}
    }
}

fn push_block(prompt: &mut Prompt, block: &Raw<'_, Block<'_>>) {
    match &block.text {
        // A text is the same however it is written down.
        Some(text) if block.kind() == "text" => prompt.push(text),
        _ => push_without_marks(prompt, block.source, block.marks()),
    }
    prompt.end_block(lifetime(block));
}

/// The longest lifetime that a block asks for.
fn lifetime(block: &Block<'_>) -> Option<Lifetime> {
    block.marks().map(|mark| mark.lifetime()).max_by_key(|life| *life == Lifetime::OneHour)
}

/// Adds the text of an object without its members `cache_control`, whose values are `marks`.
fn push_without_marks<'m, 'a: 'm>(
    prompt: &mut Prompt,
    text: &str,
    marks: impl Iterator<Item = &'m Raw<'a, CacheControl<'a>>>,
) {
    let mut rest = 0;
    for mark in marks {
        // Both are slices of the same body.
        let start = mark.source.as_ptr().addr() - text.as_ptr().addr();
        let (from, to) = member(text, start, start + mark.source.len());
        prompt.push(&text[rest..from.max(rest)]);
        rest = to;
    }
    prompt.push(&text[rest..]);
}

/// The range of the member whose value lies between `start` and `end`, with one of its commas.
fn member(text: &str, start: usize, end: usize) -> (usize, usize) {
    let before = text[..start].rfind("\"cache_control\"").map_or(start, |key| key);
    let before = text[..before].trim_end();
    match before.strip_suffix(',') {
        Some(before) => (before.len(), end),
        None => {
            let after = text[end..].trim_start();
            let after = after.strip_prefix(',').unwrap_or(after);
            (before.len(), text.len() - after.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::prompt::Lifetime;

    /// Checks the text of the prompt of a request, and where it is marked.
    #[track_caller]
    fn check(body: &str, text: &str, marks: &[Option<Lifetime>]) {
        let request = serde_json::from_str(body).unwrap();
        let prompt = of(&request);
        assert_eq!(std::str::from_utf8(prompt.text()).unwrap(), text);
        let found: Vec<_> = prompt.blocks().iter().map(|block| block.mark).collect();
        assert_eq!(found, marks);
    }

    const SHORT: Option<Lifetime> = Some(Lifetime::FiveMinutes);
    const LONG: Option<Lifetime> = Some(Lifetime::OneHour);

    #[test]
    fn tools_come_first_then_system_then_messages() {
        check(
            r#"{"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": "!"},
                {"role": "assistant", "content": [{"type": "text", "text": "ho"}]}],
                "system": "be kind", "tools": [{"name": "a"}]}"#,
            r#"{"name": "a"}be kinduserhi!assistantho"#,
            &[None; 5],
        );
    }

    #[test]
    fn marks_are_cut_out_wherever_they_stand() {
        check(
            r#"{"tools": [{"name":"a","cache_control":{"type":"ephemeral","ttl":"1h"}},
                { "cache_control" : {"type":"ephemeral"} , "name": "b"},
                {"cache_control":{"type":"ephemeral"}}, {"name":"c","cache_control":null}]}"#,
            r#"{"name":"a"}{ "name": "b"}{}{"name":"c","cache_control":null}"#,
            &[LONG, SHORT, SHORT, None],
        );
        check(
            r#"{"messages":[{"role":"user","content":[
                {"type":"tool_result","content":[{"type":"text","text":"\"cache_control\"",
                "cache_control":{"type":"ephemeral"}},{"x":1}],"cache_control":{"type":"ephemeral"}},
                {"type":"text","text":"t","cache_control":{"type":"ephemeral"}}]}]}"#,
            "user{\"type\":\"tool_result\",\"content\":[{\"type\":\"text\",\
             \"text\":\"\\\"cache_control\\\"\"},{\"x\":1}]}t",
            &[SHORT, SHORT],
        );
    }

    #[test]
    fn the_last_block_can_be_left_to_the_provider() {
        check(
            r#"{"cache_control":{"type":"ephemeral"},"messages":[{"role":"user","content":"hi"}]}"#,
            "userhi",
            &[SHORT],
        );
    }
}
