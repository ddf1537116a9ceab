//! Scripts as TOML. This module has all keys; any other key is an error with its line.

use super::when::Place;
use super::{CacheSetting, Conversation, KeyCheck, Reply, Rule, Script, Usage, When};
use crate::ask::Wire;
use crate::turnstile::Capacity;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::Spanned;

/// A script file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the script: {reason}")]
pub struct ScriptError {
    /// Where, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    cache: Option<Spanned<bool>>,
    cache_minimum: Option<u64>,
    #[serde(default = "yes")]
    keys: bool,
    #[serde(default)]
    models: Vec<String>,
    at_once: Option<usize>,
    retry_after_ms: Option<u64>,
    requests_per_minute: Option<u64>,
    #[serde(default)]
    rule: Vec<Spanned<RuleFile>>,
    #[serde(default)]
    conversation: Vec<Spanned<ConversationFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    when: WhenFile,
    #[serde(default)]
    reply: Vec<Spanned<ReplyFile>>,
    times: Option<Spanned<u64>>,
    #[serde(default)]
    once: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConversationFile {
    #[serde(default)]
    when: WhenFile,
    #[serde(default)]
    reply: Vec<Spanned<ReplyFile>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenFile {
    turn: Option<usize>,
    wire: Option<Spanned<String>>,
    model: Option<String>,
    tool_offered: Option<String>,
    #[serde(default)]
    header: BTreeMap<String, String>,
    last_user_contains: Option<String>,
    last_user_matches: Option<Spanned<String>>,
    first_user_contains: Option<String>,
    first_user_matches: Option<Spanned<String>>,
    last_tool_result_contains: Option<String>,
    last_tool_result_matches: Option<Spanned<String>>,
    any_message_contains: Option<String>,
    any_message_matches: Option<Spanned<String>>,
    system_contains: Option<String>,
    system_matches: Option<Spanned<String>>,
    body_contains: Option<String>,
    body_matches: Option<Spanned<String>>,
    path_contains: Option<String>,
    path_matches: Option<Spanned<String>>,
    #[serde(default)]
    field: BTreeMap<Spanned<String>, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyFile {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    tool_calls: Option<Vec<ToolCallFile>>,
    blocks: Option<Vec<BlockFile>>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
    status: Option<u16>,
    error_type: Option<String>,
    message: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    latency_ms: Option<u64>,
    token_delay_ms: Option<u64>,
    fault: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCallFile {
    name: String,
    #[serde(default = "no_input")]
    input: Value,
    id: Option<String>,
}

/// A block of a reply with `blocks`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum BlockFile {
    Text(String),
    Thinking(String),
    ToolCall(ToolCallFile),
    Raw(Value),
}

fn yes() -> bool {
    true
}

fn no_input() -> Value {
    Value::Object(serde_json::Map::new())
}

impl Script {
    /// Reads a script from TOML.
    ///
    /// `[[rule]]` and `[[conversation]]` are tried in the order of the file. Both have a table
    /// `when` of matchers, named like the methods of [`When`] (`header` is a table of names and
    /// parts, `field` one of JSON pointers and values), and `[[….reply]]` tables. A rule may have `times = n` or `once = true`. A reply
    /// has
    /// - content: `text`, `thinking` (and its `signature`), `tool_calls = [{ name, input, id }]`,
    ///   sent as thinking, text, calls; or, in an order of one's own,
    ///   `blocks = [{ text = … }, { thinking = … }, { tool_call = { … } }, { raw = { … } }]`;
    ///   with it `stop_reason` and `usage = { input_tokens, output_tokens, … }`;
    /// - or an error: `status`, `error_type`, `message`;
    /// - and either way `headers`, `latency_ms`, `token_delay_ms`, and `fault`, the name of one
    ///   of [`Fault::all`](crate::Fault::all), which some need no content for.
    ///
    /// Above them may stand `models`, a list of names; `cache = false`, or `cache_minimum` in
    /// tokens; `keys = false` for a server that asks for none; and what it takes: `at_once`
    /// requests, with `retry_after_ms` for those that are too many, and `requests_per_minute`.
    ///
    /// ```
    /// let script = posse_testkit::Script::parse(r#"
    ///     [[rule]]
    ///     when = { last_user_contains = "too fast" }
    ///     once = true
    ///     [[rule.reply]]
    ///     status = 429
    ///     headers = { retry-after = "1" }
    ///
    ///     [[conversation]]
    ///     when = { first_user_contains = "explore" }
    ///     [[conversation.reply]]
    ///     text = "Looking."
    ///     tool_calls = [{ name = "List", input = { path = "." } }]
    ///     latency_ms = 150
    ///     [[conversation.reply]]
    ///     text = "I saw {{last_tool_result}}"
    /// "#);
    /// assert!(script.is_ok());
    /// ```
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let file: ScriptFile = toml::from_str(text).map_err(|error| ScriptError {
            line: line_at(text, error.span().map_or(0, |span| span.start)),
            reason: error.message().to_owned(),
        })?;
        let rules = file.rule.into_iter().map(|rule| (rule.span().start, Either::Rule(rule)));
        let conversations = file.conversation.into_iter();
        let conversations =
            conversations.map(|found| (found.span().start, Either::Conversation(found)));
        let mut entries: Vec<(usize, Either)> = rules.chain(conversations).collect();
        entries.sort_by_key(|(start, _)| *start);

        let reader = Reader { text };
        let mut script = Script { models: file.models, ..Script::new() };
        match (file.cache, file.cache_minimum) {
            (Some(cache), Some(_)) if !cache.get_ref() => {
                return reader.refuse(&cache, "cache = false and cache_minimum exclude each other");
            }
            (Some(cache), _) if !cache.get_ref() => script.cache = CacheSetting::Off,
            (_, Some(minimum)) => script.cache = CacheSetting::From(minimum),
            _ => {}
        }
        if !file.keys {
            script.keys = KeyCheck::Skipped;
        }
        script.capacity = Capacity {
            at_once: file.at_once,
            per_span: file.requests_per_minute.map(|most| (most, Duration::from_secs(60))),
            retry_after: file.retry_after_ms.map(Duration::from_millis),
        };
        for (start, entry) in entries {
            let line = line_at(text, start);
            script = match entry {
                Either::Rule(rule) => {
                    let label = format!("rule on line {line}");
                    script.labelled_rule(label, reader.rule(line, rule.into_inner())?)
                }
                Either::Conversation(found) => {
                    let label = format!("conversation on line {line}");
                    let found = found.into_inner();
                    let when = reader.when(found.when)?;
                    let replies = reader.replies(line, found.reply)?;
                    script.labelled_conversation(label, Conversation { when, replies })
                }
            };
        }
        Ok(script)
    }
}

enum Either {
    Rule(Spanned<RuleFile>),
    Conversation(Spanned<ConversationFile>),
}

/// Turns the file into a script, and knows the line of each entry.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn rule(&self, line: usize, file: RuleFile) -> Result<Rule, ScriptError> {
        let times = match (&file.times, file.once) {
            (Some(times), true) => {
                return self.refuse(times, "times and once exclude each other; leave one out");
            }
            (Some(times), false) if *times.get_ref() == 0 => {
                return self.refuse(times, "a rule that answers 0 times is no rule; remove it");
            }
            (Some(times), false) => Some(*times.get_ref()),
            (None, true) => Some(1),
            (None, false) => None,
        };
        Ok(Rule { when: self.when(file.when)?, replies: self.replies(line, file.reply)?, times })
    }

    fn when(&self, file: WhenFile) -> Result<When, ScriptError> {
        let mut when = When::any();
        if let Some(turn) = file.turn {
            when = when.turn(turn);
        }
        if let Some(name) = &file.wire {
            let wire = Wire::ALL.into_iter().find(|wire| wire.name() == name.get_ref());
            let Some(wire) = wire else {
                let known = Wire::ALL.map(Wire::name).join(", ");
                let reason = format!("there is no wire {:?}; known are {known}", name.get_ref());
                return self.refuse(name, &reason);
            };
            when = when.wire(wire);
        }
        if let Some(model) = &file.model {
            when = when.model(model);
        }
        if let Some(tool) = &file.tool_offered {
            when = when.tool_offered(tool);
        }
        for (name, part) in &file.header {
            when = when.header(name, part);
        }
        for (place, part, pattern) in [
            (Place::LastUser, file.last_user_contains, file.last_user_matches),
            (Place::FirstUser, file.first_user_contains, file.first_user_matches),
            (Place::LastToolResult, file.last_tool_result_contains, file.last_tool_result_matches),
            (Place::AnyMessage, file.any_message_contains, file.any_message_matches),
            (Place::System, file.system_contains, file.system_matches),
            (Place::Body, file.body_contains, file.body_matches),
            (Place::Path, file.path_contains, file.path_matches),
        ] {
            if let Some(part) = part {
                when = when.contains(place, &part);
            }
            if let Some(pattern) = pattern {
                when = when.matches(place, pattern.get_ref());
                if let Some(problem) = when.problem() {
                    return self.refuse(&pattern, &problem);
                }
            }
        }
        for (pointer, value) in file.field {
            when = when.field(pointer.get_ref(), value);
            if let Some(problem) = when.problem() {
                return self.refuse(&pointer, &problem);
            }
        }
        Ok(when)
    }

    fn replies(
        &self,
        line: usize,
        files: Vec<Spanned<ReplyFile>>,
    ) -> Result<Vec<Reply>, ScriptError> {
        if files.is_empty() {
            let reason = "it has no reply; give it at least one".to_owned();
            return Err(ScriptError { line, reason });
        }
        let replies = files.into_iter().map(|file| {
            let line = line_at(self.text, file.span().start);
            let reply = reply(file.into_inner());
            let reply = reply.and_then(|reply| reply.problem().map_or(Ok(reply), Err));
            reply.map_err(|reason| ScriptError { line, reason })
        });
        replies.collect()
    }

    fn refuse<T, U>(&self, place: &Spanned<T>, reason: &str) -> Result<U, ScriptError> {
        let line = line_at(self.text, place.span().start);
        Err(ScriptError { line, reason: reason.to_owned() })
    }
}

fn reply(file: ReplyFile) -> Result<Reply, String> {
    let brings_parts = file.text.is_some() || file.thinking.is_some() || file.tool_calls.is_some();
    let brings_content = brings_parts || file.blocks.is_some();
    let refuse = |reason: &str| Err(reason.to_owned());
    let mut reply = if let Some(status) = file.status {
        if brings_content || file.stop_reason.is_some() || file.usage.is_some() {
            return refuse("a reply with a status is an error and has no content; split it in two");
        }
        let message = file.message.unwrap_or_else(|| "scripted error".to_owned());
        match file.error_type {
            Some(kind) => Reply::error_of_type(status, &kind, &message),
            None => Reply::error(status, &message),
        }
    } else {
        if file.error_type.is_some() || file.message.is_some() {
            return refuse("error_type and message belong to an error; give its status too");
        }
        if !brings_content && file.fault.is_none() {
            return refuse("the reply says nothing; give text, thinking, tool_calls or blocks");
        }
        if brings_parts && file.blocks.is_some() {
            return refuse("blocks replaces text, thinking and tool_calls; use one or the other");
        }
        if file.signature.is_some() && file.thinking.is_none() {
            return refuse("a signature signs thinking, and there is none; give thinking too");
        }
        let mut reply = Reply::empty();
        for block in file.blocks.unwrap_or_default() {
            reply = match block {
                BlockFile::Text(text) => reply.and_text(&text),
                BlockFile::Thinking(text) => reply.and_thinking(&text),
                BlockFile::ToolCall(call) => and_call(reply, call),
                BlockFile::Raw(block) => reply.and_raw(block),
            };
        }
        reply = match (file.thinking, file.signature) {
            (Some(text), Some(signature)) => reply.and_signed_thinking(&text, &signature),
            (Some(text), None) => reply.and_thinking(&text),
            (None, _) => reply,
        };
        if let Some(text) = file.text {
            reply = reply.and_text(&text);
        }
        reply = file.tool_calls.unwrap_or_default().into_iter().fold(reply, and_call);
        if let Some(reason) = file.stop_reason {
            reply = reply.stop_reason(&reason);
        }
        reply.usage(file.usage.unwrap_or_default())
    };
    for (name, value) in file.headers {
        reply = reply.header(&name, &value);
    }
    if let Some(name) = &file.fault {
        reply = reply.fault(name);
    }
    let milliseconds = |given: Option<u64>| Duration::from_millis(given.unwrap_or_default());
    Ok(reply.latency(milliseconds(file.latency_ms)).token_delay(milliseconds(file.token_delay_ms)))
}

fn and_call(reply: Reply, call: ToolCallFile) -> Reply {
    match call.id {
        Some(id) => reply.and_tool_call_with_id(&id, &call.name, call.input),
        None => reply.and_tool_call(&call.name, call.input),
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
