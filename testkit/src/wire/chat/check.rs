//! What the real API refuses, where an agent's mistake would show: roles, the pairing of tool
//! calls and results, ids and names, content that does not belong where it stands.

use super::request::{Chat, Message, Part, ToolCall};
use crate::wire::openai::{
    check_length, check_minimum, check_name, check_schema, empty_list, is_reasoning_model, missing,
    unsupported_value, wrong_type,
};
use crate::wire::refusal::Refusal;
use crate::wire::value::{Content, Shape};
use std::collections::HashSet;

const ROLES: &str = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'";
const PARTS: &str = "'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'";

pub(super) fn check(request: &Chat<'_>) -> Result<(), Refusal> {
    let Some(model) = request.model.as_deref().filter(|model| !model.is_empty()) else {
        return Err(Refusal::invalid("you must provide a model parameter"));
    };
    check_caps(request, model)?;
    check_tools(request)?;
    let Some(messages) = &request.messages else {
        return Err(missing("messages"));
    };
    if messages.is_empty() {
        return Err(empty_list("messages"));
    }
    for (index, message) in messages.iter().enumerate() {
        check_message(index, message)?;
    }
    check_pairs(messages.iter().map(|message| &message.value))
}

fn check_caps(request: &Chat<'_>, model: &str) -> Result<(), Refusal> {
    check_minimum("max_tokens", request.max_tokens, 1)?;
    check_minimum("max_completion_tokens", request.max_completion_tokens, 1)?;
    if request.max_tokens.is_some() && request.max_completion_tokens.is_some() {
        return Err(Refusal::invalid(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        )
        .param("max_tokens")
        .code("invalid_parameter_combination"));
    }
    if request.max_tokens.is_some() && is_reasoning_model(model) {
        return Err(Refusal::invalid(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        )
        .param("max_tokens")
        .code("unsupported_parameter"));
    }
    if request.stream_options.is_some() && request.stream != Some(true) {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Refusal::invalid(message).param("stream_options"));
    }
    Ok(())
}

fn check_tools(request: &Chat<'_>) -> Result<(), Refusal> {
    let Some(tools) = &request.tools else {
        return Ok(());
    };
    if tools.is_empty() {
        return Err(empty_list("tools"));
    }
    for (index, tool) in tools.iter().enumerate() {
        match tool.kind.as_deref() {
            None => return Err(missing(format!("tools[{index}].type"))),
            Some("function") => {}
            // Tools with free text, and those of vendors.
            Some(_) => continue,
        }
        let Some(offer) = &tool.function else {
            return Err(missing(format!("tools[{index}].function")));
        };
        let Some(name) = offer.name.as_deref() else {
            return Err(missing(format!("tools[{index}].function.name")));
        };
        check_name(format!("tools[{index}].function.name"), name)?;
        if let Some(schema) = &offer.parameters {
            let param = format!("tools[{index}].function.parameters");
            check_schema(param, name, schema.kind.as_ref())?;
        }
    }
    Ok(())
}

fn check_message(index: usize, message: &Message<'_>) -> Result<(), Refusal> {
    let calls = message.tool_calls.as_deref();
    match message.role() {
        "" => return Err(missing(format!("messages[{index}].role"))),
        "system" | "developer" | "user" | "assistant" | "function" => {}
        "tool" if message.tool_call_id.is_none() => {
            return Err(Refusal::invalid(
                "Missing parameter 'tool_call_id': messages with role 'tool' must have a \
                 'tool_call_id'.",
            )
            .param(format!("messages.[{index}].tool_call_id")));
        }
        "tool" => {}
        role => return Err(unsupported_value(format!("messages[{index}].role"), role, ROLES)),
    }
    let may_be_silent =
        message.role() == "assistant" && (calls.is_some() || message.refusal.is_some());
    match &message.content {
        None if may_be_silent => {}
        None => {
            return Err(Refusal::invalid(
                "Invalid value for 'content': expected a string, got null.",
            )
            .param(format!("messages.[{index}].content")));
        }
        Some(Content::Text(_)) => {}
        Some(Content::Other) => {
            let param = format!("messages[{index}].content");
            return Err(wrong_type(param, "one of a string or array of objects", Shape::Object));
        }
        Some(Content::Parts(parts)) => check_parts(index, message.role(), parts)?,
    }
    match calls {
        Some([]) => Err(empty_list(format!("messages[{index}].tool_calls"))),
        Some(calls) => {
            let numbered = calls.iter().enumerate();
            numbered.into_iter().try_for_each(|(position, call)| {
                check_call(&format!("messages[{index}].tool_calls[{position}]"), call)
            })
        }
        None => Ok(()),
    }
}

fn check_parts(index: usize, role: &str, parts: &[Part<'_>]) -> Result<(), Refusal> {
    if parts.is_empty() {
        return Err(empty_list(format!("messages[{index}].content")));
    }
    for (position, part) in parts.iter().enumerate() {
        let at = |field: &str| format!("messages[{index}].content[{position}].{field}");
        match part.kind.as_deref() {
            None => return Err(missing(at("type"))),
            Some("text") if part.text.is_none() => return Err(missing(at("text"))),
            Some("text" | "refusal") => {}
            Some("image_url" | "file" | "input_audio") if role != "user" => {
                let message = format!(
                    "Image URLs, files and audio are only allowed for messages with role 'user', \
                     but this message with role '{role}' contains one."
                );
                let param = format!("messages.[{index}].content");
                return Err(Refusal::invalid(message).param(param).code("invalid_value"));
            }
            Some("image_url") => check_object(at("image_url"), part.image_url)?,
            Some("file") => check_object(at("file"), part.file)?,
            Some("input_audio" | "audio") => {}
            Some(kind) => return Err(unsupported_value(at("type"), kind, PARTS)),
        }
    }
    Ok(())
}

fn check_object(param: String, found: Option<Shape>) -> Result<(), Refusal> {
    match found {
        None => Err(missing(param)),
        Some(Shape::Object) => Ok(()),
        Some(other) => Err(wrong_type(param, "an object", other)),
    }
}

fn check_call(at: &str, call: &ToolCall<'_>) -> Result<(), Refusal> {
    let Some(id) = call.id.as_deref() else {
        return Err(missing(format!("{at}.id")));
    };
    check_length(format!("{at}.id"), id, 40)?;
    match call.kind.as_deref() {
        None => return Err(missing(format!("{at}.type"))),
        Some("function") => {}
        Some(_) => return Ok(()),
    }
    let Some(function) = &call.function else {
        return Err(missing(format!("{at}.function")));
    };
    let Some(name) = function.name.as_deref() else {
        return Err(missing(format!("{at}.function.name")));
    };
    check_name(format!("{at}.function.name"), name)?;
    match function.arguments {
        None => Err(missing(format!("{at}.function.arguments"))),
        Some(Shape::Text) => Ok(()),
        Some(other) => Err(wrong_type(format!("{at}.function.arguments"), "a string", other)),
    }
}

/// Checks that each call is answered right after it, once, and that nothing else is answered.
fn check_pairs<'a>(messages: impl Iterator<Item = &'a Message<'a>>) -> Result<(), Refusal> {
    // The calls that may still be answered, and those of them that have not been.
    let mut asked: Vec<&str> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    let mut count = 0;
    for (index, message) in messages.enumerate() {
        count = index + 1;
        let Some(id) = message.tool_call_id.as_deref().filter(|_| message.role() == "tool") else {
            check_answered(index, &open)?;
            let calls = message.tool_calls.iter().flatten();
            asked = calls.filter_map(|call| call.id.as_deref()).collect();
            open.clone_from(&asked);
            if let Some(id) = asked.iter().find(|id| !ids.insert(**id)) {
                let message = format!("Duplicate value for 'tool_calls[].id': '{id}'.");
                return Err(Refusal::invalid(message).param(format!("messages.[{index}]")));
            }
            continue;
        };
        if asked.is_empty() {
            return Err(Refusal::invalid(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding \
                 message with 'tool_calls'.",
            )
            .param(format!("messages.[{index}].role")));
        }
        let answered = open.iter().position(|call| *call == id);
        match answered {
            Some(position) => drop(open.remove(position)),
            None => {
                return Err(Refusal::invalid(format!(
                    "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of \
                     previous message, or answered already."
                ))
                .param(format!("messages.[{index}].tool_call_id")));
            }
        }
    }
    check_answered(count, &open)
}

fn check_answered(index: usize, open: &[&str]) -> Result<(), Refusal> {
    if open.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    ))
    .param(format!("messages.[{index}].role")))
}
