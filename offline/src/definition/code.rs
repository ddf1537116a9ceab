//! What a line of a programming language defines, one function for each.

use super::data::json_key;
use super::parts::{
    annotated, assigned, by_keyword, identifier, is_statement, last_identifier, signature,
    without_modifiers,
};
use super::{Kind, Named};

const RUST: [(&str, Kind); 11] = [
    ("fn", Kind::Function),
    ("struct", Kind::Struct),
    ("enum", Kind::Enum),
    ("trait", Kind::Trait),
    ("type", Kind::Type),
    ("const", Kind::Constant),
    ("static", Kind::Constant),
    ("mod", Kind::Module),
    ("union", Kind::Struct),
    ("macro_rules", Kind::Macro),
    ("let", Kind::Variable),
];
const SCRIPT: [(&str, Kind); 9] = [
    ("function", Kind::Function),
    ("class", Kind::Class),
    ("interface", Kind::Interface),
    ("type", Kind::Type),
    ("enum", Kind::Enum),
    ("namespace", Kind::Module),
    ("const", Kind::Constant),
    ("let", Kind::Variable),
    ("var", Kind::Variable),
];
const GO: [(&str, Kind); 4] = [
    ("func", Kind::Function),
    ("type", Kind::Type),
    ("var", Kind::Constant),
    ("const", Kind::Constant),
];
const JAVA: [(&str, Kind); 17] = [
    ("class", Kind::Class),
    ("interface", Kind::Interface),
    ("enum", Kind::Enum),
    ("record", Kind::Class),
    ("struct", Kind::Struct),
    ("object", Kind::Class),
    ("trait", Kind::Trait),
    ("protocol", Kind::Interface),
    ("fun", Kind::Function),
    ("func", Kind::Function),
    ("function", Kind::Function),
    ("def", Kind::Function),
    ("namespace", Kind::Module),
    ("const", Kind::Constant),
    ("val", Kind::Variable),
    ("var", Kind::Variable),
    ("let", Kind::Variable),
];
const OTHER: [(&str, Kind); 16] = [
    ("function", Kind::Function),
    ("fn", Kind::Function),
    ("def", Kind::Function),
    ("defp", Kind::Function),
    ("defmodule", Kind::Module),
    ("sub", Kind::Function),
    ("class", Kind::Class),
    ("struct", Kind::Struct),
    ("enum", Kind::Enum),
    ("message", Kind::Type),
    ("service", Kind::Interface),
    ("rpc", Kind::Function),
    ("interface", Kind::Interface),
    ("type", Kind::Type),
    ("const", Kind::Constant),
    ("data", Kind::Type),
];

pub(super) fn rust(text: &str, indent: usize) -> Named<'_> {
    if let Some((kind, name, _)) = by_keyword(text, &RUST) {
        return Some((kind, name));
    }
    if indent == 0 {
        return None;
    }
    let plain = without_modifiers(text);
    if let Some(name) = annotated(plain) {
        return Some((if plain.len() < text.len() { Kind::Field } else { Kind::Variable }, name));
    }
    let (name, rest) = identifier(text)?;
    let variant = name.starts_with(|first: char| first.is_uppercase())
        && (rest.is_empty()
            || rest == ","
            || rest == " {"
            || rest.starts_with('(') && rest.ends_with("),")
            || rest.starts_with(" {") && rest.ends_with("},"));
    variant.then_some((Kind::Variant, name))
}

pub(super) fn python(text: &str, indent: usize) -> Named<'_> {
    const KEYWORDS: [(&str, Kind); 2] = [("def", Kind::Function), ("class", Kind::Class)];
    if let Some((kind, name, _)) = by_keyword(text, &KEYWORDS) {
        return Some((kind, name));
    }
    if let Some(name) = text.strip_prefix("self.").and_then(assigned) {
        return Some((Kind::Field, name));
    }
    let name = assigned(text).or_else(|| annotated(text))?;
    if indent == 0 {
        return Some((Kind::Constant, name));
    }
    Some((if annotated(text).is_some() { Kind::Field } else { Kind::Variable }, name))
}

/// Whether `tail` assigns a function, and not a call with a function as its argument.
fn is_function(tail: &str) -> bool {
    let value = tail.split_once("= ").map_or(tail, |(_, value)| value).trim_start();
    let value = value.strip_prefix("async ").unwrap_or(value);
    let arrow = value.starts_with(['(', '<'])
        || identifier(value).is_some_and(|(_, rest)| rest.trim_start().starts_with("=>"));
    value.starts_with("function") || arrow && value.contains("=>")
}

pub(super) fn script(text: &str, indent: usize) -> Named<'_> {
    if let Some((kind, name, tail)) = by_keyword(text, &SCRIPT) {
        let function = is_function(tail);
        let kind = match kind {
            Kind::Constant | Kind::Variable if function => Kind::Function,
            Kind::Constant if indent > 0 => Kind::Variable,
            kind => kind,
        };
        return Some((kind, name));
    }
    for prefix in ["module.exports.", "exports."] {
        if let Some(name) = text.strip_prefix(prefix).and_then(assigned) {
            let function = text.split_once('=').is_some_and(|(_, value)| is_function(value));
            return Some((if function { Kind::Function } else { Kind::Constant }, name));
        }
    }
    if indent == 0 {
        return None;
    }
    let plain = without_modifiers(text).trim_start_matches(['#', '*']);
    if text.ends_with('{')
        && let Some((name, rest)) = identifier(plain)
        && rest.trim_start().starts_with(['(', '<'])
        && !is_statement(name)
        && name != "function"
    {
        return Some((Kind::Function, name));
    }
    annotated(plain).map(|name| (Kind::Field, name)).or_else(|| json_key(text))
}

pub(super) fn go(text: &str, indent: usize) -> Named<'_> {
    if let Some((kind, name, tail)) = by_keyword(text, &GO) {
        let tail = tail.trim_start();
        let kind = match kind {
            Kind::Type if tail.starts_with("struct") => Kind::Struct,
            Kind::Type if tail.starts_with("interface") => Kind::Interface,
            Kind::Constant if indent > 0 => Kind::Variable,
            kind => kind,
        };
        return Some((kind, name));
    }
    if indent == 0 {
        return None;
    }
    if let Some(name) = assigned(text) {
        return Some((Kind::Variable, name));
    }
    let (name, rest) = identifier(text)?;
    let plain = rest.starts_with(' ') && !rest.contains(['=', '(', '{', '.', '"']);
    (plain && !is_statement(name)).then_some((Kind::Field, name))
}

pub(super) fn java(text: &str, indent: usize) -> Named<'_> {
    if let Some((_, rest)) = text.split_once("@interface ") {
        return identifier(rest).map(|(name, _)| (Kind::Interface, name));
    }
    if let Some((kind, name, _)) = by_keyword(text, &JAVA) {
        return Some((kind, name));
    }
    if let Some(named) = signature(text, true) {
        return Some(named);
    }
    if indent == 0 || !(text.ends_with(';') || text.ends_with(',')) {
        return None;
    }
    let before = text.split('=').next()?.trim_end_matches([';', ' ']);
    let (prefix, name) = last_identifier(before)?;
    let typed = prefix.ends_with(' ') && !prefix.contains(['(', '"', '.']);
    (typed && !is_statement(identifier(text)?.0))
        .then_some((Kind::Field, name.trim_start_matches('$')))
}

pub(super) fn c(text: &str, indent: usize) -> Named<'_> {
    if let Some(rest) = text.strip_prefix('#') {
        let rest = rest.trim_start().strip_prefix("define")?.trim_start();
        return identifier(rest).map(|(name, _)| (Kind::Constant, name));
    }
    if let Some(rest) = text.strip_prefix('}') {
        let (name, rest) = identifier(rest.trim_start())?;
        return (rest == ";").then_some((Kind::Type, name));
    }
    let plain = text.strip_prefix("typedef ").unwrap_or(text);
    for (keyword, kind) in [
        ("struct ", Kind::Struct),
        ("enum class ", Kind::Enum),
        ("enum ", Kind::Enum),
        ("union ", Kind::Struct),
        ("class ", Kind::Class),
        ("namespace ", Kind::Module),
    ] {
        if let Some((name, tail)) = plain.strip_prefix(keyword).and_then(identifier) {
            let tail = tail.trim_start();
            if tail.is_empty() || tail.starts_with(['{', ':']) {
                return Some((kind, name));
            }
            if tail == ";" && plain.len() == text.len() {
                return Some((Kind::Declaration, name));
            }
        }
    }
    if plain.len() < text.len() {
        let before = text.strip_suffix(';')?;
        return last_identifier(before).map(|(_, name)| (Kind::Type, name));
    }
    if let Some(rest) = text.strip_prefix("using ")
        && let Some(name) = assigned(rest)
    {
        return Some((Kind::Type, name));
    }
    let found = signature(text, true)?;
    // Inside a function a call looks like a declaration.
    (indent == 0 || found.0 == Kind::Function && text.ends_with('{')).then_some(found)
}

pub(super) fn ruby(text: &str) -> Named<'_> {
    const KEYWORDS: [(&str, Kind); 3] =
        [("def", Kind::Function), ("class", Kind::Class), ("module", Kind::Module)];
    if let Some(rest) = text.strip_prefix("def self.") {
        return identifier(rest).map(|(name, _)| (Kind::Function, name));
    }
    if let Some((kind, name, tail)) = by_keyword(text, &KEYWORDS) {
        let nested = tail.strip_prefix("::").and_then(identifier);
        return Some((kind, nested.map_or(name, |(name, _)| name)));
    }
    if let Some(rest) = text.strip_prefix("attr_") {
        let (_, rest) = rest.split_once(':')?;
        return identifier(rest).map(|(name, _)| (Kind::Field, name));
    }
    if let Some(rest) = text.strip_prefix("task ") {
        return identifier(rest.trim_start_matches(':')).map(|(name, _)| (Kind::Target, name));
    }
    if let Some(name) = text.strip_prefix('@').and_then(assigned) {
        return Some((Kind::Field, name));
    }
    let name = assigned(text)?;
    let constant = name.starts_with(|first: char| first.is_uppercase());
    Some((if constant { Kind::Constant } else { Kind::Variable }, name))
}

/// Languages that are known by their keywords alone.
pub(super) fn other(text: &str) -> Named<'_> {
    by_keyword(text, &OTHER).map(|(kind, name, _)| (kind, name))
}
