//! The rule that Posse offers when it asks a person: it would have allowed the call, and only
//! similar calls.

use super::command::CommandPattern;
use super::program::offered;
use super::set::{Purpose, Rules};
use super::shell::Word;
use super::subject::Subject;
use super::{Policy, Rule};
use crate::policy::rule::{EDIT, WRITING};
use crate::tool_facts::ToolFacts;
use posse_protocol::{Effect, ToolCall};

/// Returns a rule that would allow `call`, if one can be written.
pub(super) fn rule(
    policy: &Policy,
    call: &ToolCall,
    facts: &ToolFacts,
    subject: &Subject,
) -> Option<String> {
    let tool = facts.name.as_str();
    // If there are no rules about the tool, its subject was not determined.
    let own;
    let subject = match subject {
        Subject::Other => {
            own = Subject::of(call, facts, &policy.workspace);
            &own
        }
        subject => subject,
    };
    let candidates = match subject {
        Subject::Command(command) => commands(tool, command.only()?),
        Subject::Path(target) if facts.effect != Effect::Read => {
            let below = target.path.strip_prefix(&policy.workspace)?.strip_prefix('/')?;
            let word = if WRITING.contains(&tool) { EDIT } else { tool };
            vec![format!("{word}(/{})", escaped(below))]
        }
        Subject::Text(text) => vec![format!("{tool}({})", text.as_ref()?)],
        Subject::Host(host) => vec![format!("{tool}(domain:{})", host.as_ref()?)],
        _ => vec![tool.to_owned()],
    };
    let would_allow = |text: &String| {
        let parsed = Rule::parse_among(text, &policy.tools).is_ok();
        let rules = Rules::compile([text], &policy.tools, policy.roots(), Purpose::Allow);
        parsed && rules.is_ok_and(|rules| rules.allow(tool, subject).is_ok_and(|it| it.is_some()))
    };
    candidates.into_iter().find(would_allow)
}

/// Returns rules for a command: by its program and subcommand, or the whole command.
fn commands(tool: &str, words: &[Word]) -> Vec<String> {
    let texts: Option<Vec<&str>> = words.iter().map(Word::exact).collect();
    let plain = |text: &&str| {
        !text.is_empty()
            && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_./".contains(&it))
    };
    // A program given by its path is not known by its name, and the arguments of an unknown program
    // may make it run anything. For both, only a rule for the whole command is safe.
    let known: Vec<&str> = words.iter().map_while(Word::exact).take_while(plain).collect();
    let beginning = offered(&known).and_then(|said| known.get(..said));
    let mut rules: Vec<String> =
        beginning.map(|words| format!("{tool}({}:*)", words.join(" "))).into_iter().collect();
    if let Some(texts) = texts {
        let quoted = texts.iter().map(|text| match plain(text) {
            true => (*text).to_owned(),
            false => format!("'{}'", text.replace('\'', "'\\''")),
        });
        rules.push(format!("{tool}({})", quoted.collect::<Vec<_>>().join(" ")));
    }
    rules
}

/// Returns the rule with which a person accepts that it is unknown what the command `words` of
/// `tool` runs.
pub(super) fn settling(tool: &str, words: &[Word]) -> Option<String> {
    let plain =
        |text: &&str| text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
    let texts: Vec<&str> = words.iter().map_while(Word::exact).take_while(plain).collect();
    let is_option = texts.get(1).is_some_and(|text| text.starts_with('-'));
    let beginning = texts.get(..if is_option { 2 } else { 1 })?.join(" ");
    let pattern = CommandPattern::parse(&format!("{beginning}:*")).ok()?;
    pattern.settles(words).then(|| format!("{tool}({beginning}:*)"))
}

/// Returns the program that a rule with `specifier` names, if it names one.
pub(super) fn program(specifier: &str) -> Option<String> {
    CommandPattern::parse(specifier).ok()?.program().map(str::to_owned)
}

/// Returns a command, shortened for display.
pub(super) fn shown(words: &[Word]) -> String {
    const LONGEST: usize = 60;
    let texts: Vec<&str> = words.iter().map(|word| word.exact().unwrap_or("…")).collect();
    let line = texts.join(" ").replace(['\n', '\t', '`'], " ");
    match line.chars().count() > LONGEST {
        true => line.chars().take(LONGEST).chain(['…']).collect(),
        false => line,
    }
}

/// Returns a pattern that matches only `path`.
fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut text, char| {
        if "*?[\\".contains(char) {
            text.push('\\');
        }
        text.push(char);
        text
    })
}
