//! What the real API refuses, where an agent's mistake would show: names it does not know, roles,
//! empty parts, the order and number of function calls and responses, schemas.

use super::request::{Content, Declaration, Generate, Part};
use super::schema;
use crate::wire::refusal::Refusal;
use crate::wire::value::{Shape, Text};
use std::collections::HashSet;

/// A body that cannot be read. What serde says of an unknown name is put in the words of the API.
pub(super) fn unreadable(error: &serde_json::Error) -> Refusal {
    let reason = error.to_string();
    let name = reason.split_once("unknown field `").and_then(|(_, rest)| rest.split_once('`'));
    let message = match name {
        Some((name, _)) => format!("Unknown name \"{name}\": Cannot find field."),
        None => reason,
    };
    Refusal::invalid(format!("Invalid JSON payload received. {message}"))
}

pub(super) fn check(request: &Generate<'_>) -> Result<(), String> {
    let contents = request.contents();
    if contents.is_empty() {
        return refuse("* GenerateContentRequest.contents: contents is not specified\n");
    }
    if let Some(config) = &request.body.generation_config
        && config.max_output_tokens.is_some_and(|most| most < 1)
    {
        return refuse(
            "* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must \
             be positive.\n",
        );
    }
    check_declarations(request)?;
    if let Some(system) = &request.body.system_instruction {
        check_parts("system_instruction", system)?;
    }
    for (index, content) in contents.iter().enumerate() {
        match content.role.as_deref() {
            // A single prompt needs no role.
            None if contents.len() == 1 => {}
            Some("user" | "model" | "function") => {}
            _ => return refuse("Please use a valid role: user, model."),
        }
        check_parts(&format!("contents[{index}]"), content)?;
    }
    check_turns(contents.iter().map(|content| &content.value))
}

fn refuse(reason: impl Into<String>) -> Result<(), String> {
    Err(reason.into())
}

fn check_declarations(request: &Generate<'_>) -> Result<(), String> {
    let mut names = HashSet::new();
    for (tool, found) in request.body.tools.iter().flatten().enumerate() {
        let declarations = found.function_declarations.iter().flatten();
        for (index, declaration) in declarations.enumerate() {
            let at = format!("tools[{tool}].function_declarations[{index}]");
            check_declaration(&at, declaration)?;
            let name = declaration.name.as_deref().unwrap_or_default();
            if !names.insert(name) {
                return refuse(format!("Duplicate function declaration found: {name}"));
            }
        }
    }
    Ok(())
}

fn check_declaration(at: &str, declaration: &Declaration<'_>) -> Result<(), String> {
    let name = declaration.name.as_deref().unwrap_or_default();
    let begins = |first: char| first.is_ascii_alphabetic() || first == '_';
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    if !name.starts_with(begins) || !name.bytes().all(allowed) || name.len() > 128 {
        return refuse(format!(
            "* GenerateContentRequest.{at}.name: Invalid function name. Must start with a letter \
             or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), \
             colons (:), or dashes (-), with a maximum length of 128.\n"
        ));
    }
    match (&declaration.parameters, declaration.parameters_json_schema) {
        (Some(_), Some(_)) => refuse(format!(
            "* GenerateContentRequest.{at}: parameters and parameters_json_schema exclude each \
             other.\n"
        )),
        (_, Some(shape)) if shape != Shape::Object => refuse(format!(
            "* GenerateContentRequest.{at}.parameters_json_schema: must be an object.\n"
        )),
        (Some(parameters), None) => schema::check(&format!("{at}.parameters"), parameters),
        _ => Ok(()),
    }
}

fn check_parts(at: &str, content: &Content<'_>) -> Result<(), String> {
    if content.parts().is_empty() {
        return refuse(format!(
            "* GenerateContentRequest.{at}.parts: contents.parts must not be empty.\n"
        ));
    }
    for (index, part) in content.parts().iter().enumerate() {
        check_part(&format!("{at}.parts[{index}]"), part)?;
    }
    Ok(())
}

fn check_part(at: &str, part: &Part<'_>) -> Result<(), String> {
    if !part.has_data() {
        return refuse(format!(
            "* GenerateContentRequest.{at}.data: required oneof field 'data' must have one \
             initialized field\n"
        ));
    }
    if let Some(blob) = &part.inline_data
        && (blob.mime_type.as_deref().is_none_or(str::is_empty) || blob.data != Some(Shape::Text))
    {
        return refuse(format!(
            "* GenerateContentRequest.{at}.inline_data: mime_type and data must be set.\n"
        ));
    }
    if let Some(call) = &part.function_call {
        if call.name.as_deref().is_none_or(str::is_empty) {
            return refuse(format!(
                "* GenerateContentRequest.{at}.function_call.name: Name cannot be empty.\n"
            ));
        }
        if call.args.is_some_and(|args| !args.get().starts_with('{')) {
            return not_a_struct(&format!("{at}.function_call.args"));
        }
    }
    if let Some(found) = &part.function_response {
        if found.name.as_deref().is_none_or(str::is_empty) {
            return refuse(format!(
                "* GenerateContentRequest.{at}.function_response.name: Name cannot be empty.\n"
            ));
        }
        if found.response.as_ref().is_none_or(|answer| answer.shape != Shape::Object) {
            return not_a_struct(&format!("{at}.function_response.response"));
        }
    }
    Ok(())
}

fn not_a_struct(at: &str) -> Result<(), String> {
    refuse(format!("Invalid value at '{at}' (type.googleapis.com/google.protobuf.Struct)"))
}

/// By what a call and its response are known: the name, and the id where one was given.
type Names<'a> = (&'a str, Option<&'a str>);

/// Checks that calls and their responses follow each other, as many of one as of the other.
fn check_turns<'a>(contents: impl Iterator<Item = &'a Content<'a>>) -> Result<(), String> {
    // The calls of the turn before, and the responses given to them so far.
    let mut open: Vec<Names<'_>> = Vec::new();
    let mut answered: Vec<Names<'_>> = Vec::new();
    // Whether a call may stand here: after a user, or after responses.
    let mut may_call = false;
    for content in contents {
        if content.is_model() {
            check_counts(&open, &answered)?;
            open = content.calls().map(|call| names(&call.name, &call.id)).collect();
            answered.clear();
            if !open.is_empty() && !may_call {
                return refuse(
                    "Please ensure that function call turn comes immediately after a user turn or \
                     after a function response turn.",
                );
            }
            // Several contents of the model in a row are one turn.
            may_call = open.is_empty() && may_call;
            continue;
        }
        let responses = content.responses().map(|found| names(&found.name, &found.id));
        let responses: Vec<Names<'_>> = responses.collect();
        match (responses.is_empty(), open.is_empty()) {
            (false, true) => {
                return refuse(
                    "Please ensure that function response turn comes immediately after a function \
                     call turn.",
                );
            }
            (false, false) => answered.extend(responses),
            (true, _) => {
                check_counts(&open, &answered)?;
                open.clear();
                answered.clear();
            }
        }
        may_call = true;
    }
    check_counts(&open, &answered)
}

fn names<'a>(name: &'a Option<Text<'_>>, id: &'a Option<Text<'_>>) -> Names<'a> {
    (name.as_deref().unwrap_or_default(), id.as_deref())
}

fn check_counts(open: &[Names<'_>], answered: &[Names<'_>]) -> Result<(), String> {
    if open.len() != answered.len() {
        return refuse(
            "Please ensure that the number of function response parts is equal to the number of \
             function call parts of the function call turn.",
        );
    }
    let mut open = open.to_vec();
    for (name, id) in answered {
        let answers = |(called, call_id): &Names<'_>| {
            called == name && (id.is_none() || call_id.is_none() || id == call_id)
        };
        let Some(position) = open.iter().position(answers) else {
            return refuse(format!(
                "Please ensure that function response `{name}` answers a function call of the turn \
                 before."
            ));
        };
        open.remove(position);
    }
    Ok(())
}
