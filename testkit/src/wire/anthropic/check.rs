//! What the real API refuses, where an agent's mistake would show: the pairing of tool calls and
//! results, empty texts, missing fields. Roles need not alternate.

use super::request::{Block, CacheControl, Message, Messages, Tool};
use crate::prompt::Lifetime;
use crate::wire::value::{Content, Raw, Shape};
use std::collections::HashSet;

/// Blocks that a request may mark for the cache.
const MARKS: usize = 4;

/// Says what is wrong with a request, in the manner of the real API.
pub(super) fn check(request: &Messages<'_>) -> Result<(), String> {
    if request.model.as_deref().is_none_or(str::is_empty) {
        return refuse("model: Field required");
    }
    match request.max_tokens {
        None => return refuse("max_tokens: Field required"),
        Some(..1) => return refuse("max_tokens: Input should be greater than or equal to 1"),
        Some(_) => {}
    }
    if let Some(Content::Parts(blocks)) = &request.system {
        for (index, block) in blocks.iter().enumerate() {
            check_text(block).map_err(|reason| format!("system.{index}: {reason}"))?;
        }
    }
    check_tools(request.tools.as_deref().unwrap_or_default())?;
    let Some(messages) = &request.messages else {
        return refuse("messages: Field required");
    };
    check_messages(messages)?;
    check_marks(request)
}

fn refuse(reason: impl Into<String>) -> Result<(), String> {
    Err(reason.into())
}

fn check_tools(tools: &[Raw<'_, Tool<'_>>]) -> Result<(), String> {
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let Some(name) = tool.name.as_deref() else {
            return refuse(format!("tools.{index}.name: Field required"));
        };
        if !is_identifier(name) || name.len() > 128 {
            return refuse(format!(
                "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if !names.insert(name) {
            return refuse(format!("tools.{index}: Tool names must be unique; {name} is not"));
        }
        let is_own = tool.kind.as_deref().is_none_or(|kind| kind == "custom");
        if is_own && tool.input_schema != Some(Shape::Object) {
            return refuse(format!(
                "tools.{index}.custom.input_schema: Input should be a valid dictionary"
            ));
        }
    }
    Ok(())
}

fn check_messages(messages: &[Message<'_>]) -> Result<(), String> {
    match messages.first() {
        None => return refuse("messages: at least one message is required"),
        Some(first) if first.role.as_deref() == Some("assistant") => {
            return refuse("messages.0: first message must use the \"user\" role");
        }
        Some(_) => {}
    }
    let mut ids = HashSet::new();
    // The calls of the message before, which this one has to answer.
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        check_role(index, message)?;
        check_content(index, message)?;
        check_last_block(index, message)?;
        let blocks = message.blocks();
        check_results(index, blocks, &open)?;
        let calls = blocks.iter().filter(|block| block.kind() == "tool_use");
        open = calls.filter_map(|block| block.id.as_deref()).collect();
        for id in &open {
            if message.role.as_deref() == Some("user") {
                return refuse(format!(
                    "messages.{index}: `tool_use` blocks can only be in `assistant` messages: {id}"
                ));
            }
            if !ids.insert(*id) {
                return refuse(format!("messages.{index}: `tool_use` ids must be unique: {id}"));
            }
        }
    }
    check_answered(messages.len() - 1, &open)?;
    check_prefill(messages)
}

fn check_role(index: usize, message: &Message<'_>) -> Result<(), String> {
    match message.role.as_deref() {
        Some("user" | "assistant") => Ok(()),
        Some(role) => refuse(format!(
            "messages.{index}.role: Unexpected role \"{role}\". The Messages API accepts a \
             top-level `system` parameter, and the roles \"user\" and \"assistant\""
        )),
        None => refuse(format!("messages.{index}.role: Field required")),
    }
}

/// Checks a last message of the assistant, which the reply would continue.
fn check_prefill(messages: &[Message<'_>]) -> Result<(), String> {
    let Some(last) = messages.last().filter(|last| last.role.as_deref() == Some("assistant"))
    else {
        return Ok(());
    };
    let text = match &last.content {
        Some(Content::Text(text)) => Some(text.as_ref()),
        Some(Content::Parts(blocks)) => blocks.last().and_then(|block| block.text.as_deref()),
        _ => None,
    };
    if text.is_some_and(|text| text.ends_with(char::is_whitespace)) {
        return refuse(format!(
            "messages.{}: final assistant content cannot end with trailing whitespace",
            messages.len() - 1
        ));
    }
    Ok(())
}

fn check_content(index: usize, message: &Message<'_>) -> Result<(), String> {
    match &message.content {
        None | Some(Content::Other) => {
            return refuse(format!("messages.{index}.content: Field required"));
        }
        Some(Content::Text(text)) if text.is_empty() => return no_content(index),
        Some(Content::Parts(blocks)) if blocks.is_empty() => return no_content(index),
        Some(Content::Text(text)) if text.trim().is_empty() => {
            return refuse(format!("messages.{index}: {BLANK}"));
        }
        Some(Content::Text(_)) => {}
        Some(Content::Parts(blocks)) => {
            for (position, block) in blocks.iter().enumerate() {
                let at = |reason| format!("messages.{index}.content.{position}{reason}");
                check_block(block).map_err(at)?;
            }
        }
    }
    Ok(())
}

fn check_last_block(index: usize, message: &Message<'_>) -> Result<(), String> {
    match message.blocks().last().map(|block| block.kind()) {
        Some("thinking") if message.role.as_deref() == Some("assistant") => refuse(format!(
            "messages.{index}: The final block in an assistant message cannot be `thinking`."
        )),
        _ => Ok(()),
    }
}

fn no_content(index: usize) -> Result<(), String> {
    refuse(format!("messages.{index}: all messages must have non-empty content"))
}

const BLANK: &str = "text content blocks must contain non-whitespace text";

fn check_block(block: &Block<'_>) -> Result<(), String> {
    let missing = |field: &str| Err(format!(".{field}: Field required"));
    match block.kind() {
        "" => missing("type"),
        "text" => check_text(block).map_err(|reason| format!(": {reason}")),
        "thinking" if block.signature.as_deref().is_none_or(str::is_empty) => {
            missing("thinking.signature")
        }
        "thinking" if block.cache_control.is_some() => {
            refuse(".thinking.cache_control: Extra inputs are not permitted")
        }
        "tool_use" if block.id.is_none() => missing("tool_use.id"),
        "tool_use" if !block.id.as_deref().is_some_and(is_identifier) => {
            refuse(".tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        }
        "tool_use" if block.name.as_deref().is_none_or(str::is_empty) => missing("tool_use.name"),
        "tool_use" if block.input != Some(Shape::Object) => {
            refuse(".tool_use.input: Input should be a valid dictionary")
        }
        "tool_result" if block.tool_use_id.is_none() => missing("tool_result.tool_use_id"),
        "tool_result" => {
            let mut texts = block.inner().iter().filter(|inner| inner.kind() == "text");
            texts.try_for_each(check_text).map_err(|reason| format!(".tool_result: {reason}"))
        }
        _ => Ok(()),
    }
}

fn check_text(block: &Block<'_>) -> Result<(), String> {
    match block.text.as_deref() {
        None => refuse("text: Field required"),
        Some("") => refuse("text content blocks must be non-empty"),
        Some(text) if text.trim().is_empty() => refuse(BLANK),
        Some(_) => Ok(()),
    }
}

/// Checks that the results of a message answer `open`, the calls of the message before, each
/// once and before anything else.
fn check_results(index: usize, blocks: &[Raw<'_, Block<'_>>], open: &[&str]) -> Result<(), String> {
    let mut answered = HashSet::new();
    let mut leading = HashSet::new();
    let mut only_results = true;
    for (position, block) in blocks.iter().enumerate() {
        let Some(id) = block.tool_use_id.as_deref().filter(|_| block.kind() == "tool_result")
        else {
            only_results = false;
            continue;
        };
        if !open.contains(&id) {
            return refuse(format!(
                "messages.{index}.content.{position}: unexpected `tool_use_id` found in \
                 `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding \
                 `tool_use` block in the previous message."
            ));
        }
        if !answered.insert(id) {
            return refuse(format!(
                "messages.{index}.content.{position}: each tool_use must have a single result. \
                 Found multiple `tool_result` blocks with id: {id}"
            ));
        }
        if only_results {
            leading.insert(id);
        }
    }
    let missing: Vec<&str> = open.iter().copied().filter(|id| !leading.contains(id)).collect();
    check_answered(index.saturating_sub(1), &missing)
}

/// Refuses `open`, the calls of a message that have no result after it.
fn check_answered(index: usize, open: &[&str]) -> Result<(), String> {
    if open.is_empty() {
        return Ok(());
    }
    refuse(format!(
        "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately \
         after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the \
         next message.",
        open.join(", ")
    ))
}

/// Checks the marks for the cache: how many there are, of what kind, and that those which are kept
/// longer come first.
fn check_marks(request: &Messages<'_>) -> Result<(), String> {
    let tools = request.tools.iter().flatten().filter_map(|tool| tool.cache_control.as_ref());
    let system = request.system.as_ref().map_or(&[][..], Content::parts).iter();
    let said = request.messages.iter().flatten().flat_map(Message::blocks);
    let blocks = system.chain(said).flat_map(|block| block.marks());
    let marks = tools.chain(blocks).map(|mark| &mark.value).chain(&request.cache_control);
    let mut count = 0;
    let mut before = Lifetime::OneHour;
    for mark in marks {
        check_mark(mark)?;
        count += 1;
        if before == Lifetime::FiveMinutes && mark.lifetime() == Lifetime::OneHour {
            return refuse(
                "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control \
                 block. Note that blocks are processed in the following order: `tools`, \
                 `system`, `messages`.",
            );
        }
        before = mark.lifetime();
    }
    if count > MARKS {
        return refuse(format!(
            "A maximum of {MARKS} blocks with cache_control may be provided. Found {count}."
        ));
    }
    Ok(())
}

fn check_mark(mark: &CacheControl<'_>) -> Result<(), String> {
    if mark.kind.as_deref() != Some("ephemeral") {
        return refuse("cache_control.type: Input should be 'ephemeral'");
    }
    match mark.ttl.as_deref() {
        None | Some("5m" | "1h") => Ok(()),
        Some(_) => refuse("cache_control.ephemeral.ttl: Input should be '5m' or '1h'"),
    }
}

fn is_identifier(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.bytes().all(allowed)
}
