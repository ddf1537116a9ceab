//! What the real API refuses, where an agent's mistake would show: roles, kinds of content, ids,
//! the pairing of calls and outputs, tools in the shape of the other wire.

use super::request::{Item, Part, Responses};
use crate::wire::openai::{
    check_length, check_minimum, check_name, check_schema, missing, unsupported_value, wrong_type,
};
use crate::wire::refusal::Refusal;
use crate::wire::value::{Content, Shape};
use std::collections::HashSet;

const ROLES: &str = "'assistant', 'system', 'developer', and 'user'";
const OF_USERS: [&str; 3] = ["input_text", "input_image", "input_file"];
const OF_MODELS: [&str; 2] = ["output_text", "refusal"];

pub(super) fn check(request: &Responses<'_>) -> Result<(), Refusal> {
    if request.model.as_deref().is_none_or(str::is_empty) {
        return Err(missing("model"));
    }
    check_minimum("max_output_tokens", request.max_output_tokens, 16)?;
    if let Some(id) = request.previous_response_id.as_deref() {
        return Err(Refusal::invalid(format!(
            "Previous response with id '{id}' not found. (The fake model keeps no responses: send \
             the whole conversation.)"
        ))
        .param("previous_response_id")
        .code("previous_response_not_found"));
    }
    check_tools(request)?;
    match &request.input {
        None => Err(missing("input")),
        Some(Content::Other) => {
            Err(wrong_type("input", "one of a string or array of input items", Shape::Object))
        }
        Some(Content::Text(_)) => Ok(()),
        Some(Content::Parts(items)) => {
            for (index, item) in items.iter().enumerate() {
                check_item(&format!("input[{index}]"), item)?;
            }
            check_pairs(items.iter().map(|item| &item.value))
        }
    }
}

fn check_tools(request: &Responses<'_>) -> Result<(), Refusal> {
    for (index, tool) in request.tools.iter().flatten().enumerate() {
        match tool.kind.as_deref() {
            None => return Err(missing(format!("tools[{index}].type"))),
            Some("function") => {}
            Some(_) => continue,
        }
        let Some(name) = tool.name.as_deref() else {
            return Err(missing(format!("tools[{index}].name")));
        };
        check_name(format!("tools[{index}].name"), name)?;
        if let Some(schema) = &tool.parameters {
            check_schema(format!("tools[{index}].parameters"), name, schema.kind.as_ref())?;
        }
    }
    Ok(())
}

fn check_item(at: &str, item: &Item<'_>) -> Result<(), Refusal> {
    match item.kind() {
        "message" => check_message(at, item),
        "function_call" => {
            check_id(at, item, "fc")?;
            check_call_id(at, item)?;
            let Some(name) = item.name.as_deref() else {
                return Err(missing(format!("{at}.name")));
            };
            check_name(format!("{at}.name"), name)?;
            match item.arguments {
                None => Err(missing(format!("{at}.arguments"))),
                Some(Shape::Text) => Ok(()),
                Some(other) => Err(wrong_type(format!("{at}.arguments"), "a string", other)),
            }
        }
        "function_call_output" => {
            check_call_id(at, item)?;
            match &item.output {
                None => Err(missing(format!("{at}.output"))),
                Some(Content::Text(_)) => Ok(()),
                Some(Content::Parts(parts)) => {
                    check_parts(&format!("{at}.output"), parts, &OF_USERS)
                }
                Some(Content::Other) => {
                    let wanted = "one of a string or array of content parts";
                    Err(wrong_type(format!("{at}.output"), wanted, Shape::Object))
                }
            }
        }
        "reasoning" => {
            check_id(at, item, "rs")?;
            match &item.summary {
                Some(_) => Ok(()),
                None => Err(missing(format!("{at}.summary"))),
            }
        }
        _ => Ok(()),
    }
}

fn check_message(at: &str, item: &Item<'_>) -> Result<(), Refusal> {
    let allowed: &[&str] = match item.role.as_deref() {
        None => return Err(missing(format!("{at}.role"))),
        Some("assistant") => &OF_MODELS,
        Some("user" | "system" | "developer") => &OF_USERS,
        Some(role) => return Err(unsupported_value(format!("{at}.role"), role, ROLES)),
    };
    check_id(at, item, "msg")?;
    match &item.content {
        None | Some(Content::Other) => Err(missing(format!("{at}.content"))),
        Some(Content::Text(_)) => Ok(()),
        Some(Content::Parts(parts)) => check_parts(&format!("{at}.content"), parts, allowed),
    }
}

fn check_parts(at: &str, parts: &[Part<'_>], allowed: &[&str]) -> Result<(), Refusal> {
    for (index, part) in parts.iter().enumerate() {
        let Some(kind) = part.kind.as_deref() else {
            return Err(missing(format!("{at}[{index}].type")));
        };
        if !allowed.contains(&kind) {
            let quoted: Vec<String> = allowed.iter().map(|kind| format!("'{kind}'")).collect();
            let supported = quoted.join(", ");
            return Err(unsupported_value(format!("{at}[{index}]"), kind, &supported));
        }
        if kind.ends_with("_text") && part.text.is_none() {
            return Err(missing(format!("{at}[{index}].text")));
        }
    }
    Ok(())
}

fn check_id(at: &str, item: &Item<'_>, prefix: &str) -> Result<(), Refusal> {
    match item.id.as_deref() {
        Some(id) if !id.starts_with(prefix) => Err(Refusal::invalid(format!(
            "Invalid '{at}.id': '{id}'. Expected an ID that begins with '{prefix}'."
        ))
        .param(format!("{at}.id"))
        .code("invalid_value")),
        _ => Ok(()),
    }
}

fn check_call_id(at: &str, item: &Item<'_>) -> Result<(), Refusal> {
    match item.call_id.as_deref() {
        None | Some("") => Err(missing(format!("{at}.call_id"))),
        Some(id) => check_length(format!("{at}.call_id"), id, 64),
    }
}

/// Checks that each call has its output after it, once, and that nothing else is answered.
fn check_pairs<'a>(items: impl Iterator<Item = &'a Item<'a>>) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::invalid(message).param("input"));
    let mut called = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for item in items {
        let id = item.call_id.as_deref().unwrap_or_default();
        match item.kind() {
            "function_call" | "custom_tool_call" => {
                if !called.insert(id) {
                    return refuse(format!("Duplicate function call found with call_id {id}."));
                }
                open.push(id);
            }
            "function_call_output" | "custom_tool_call_output" => {
                match open.iter().position(|call| *call == id) {
                    Some(position) => drop(open.remove(position)),
                    None if called.contains(id) => {
                        return refuse(format!("Duplicate output found for call_id {id}."));
                    }
                    None => {
                        return refuse(format!(
                            "No tool call found for function call output with call_id {id}."
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    match open.first() {
        Some(id) => refuse(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}
