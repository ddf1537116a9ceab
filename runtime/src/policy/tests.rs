//! Decisions about whole calls.
#![allow(clippy::unwrap_used)]

mod bypasses;
mod commands;
mod denials;
mod everyday;
mod hidden;
mod order;
mod readings;
mod spellings;

use super::*;
use crate::tool_facts::built_in_tools;
use posse_protocol::{CallId, Extra, SkillOffer};
use serde_json::{Value, json};

/// The policy of a run, and calls to check.
struct Case {
    grant: Grant,
    standing: AddedRules,
    files: HashMap<String, String>,
}

fn list(rules: &[&str]) -> Vec<String> {
    rules.iter().map(|rule| (*rule).to_owned()).collect()
}

impl Case {
    /// An unattended run that may write, in the mode that asks.
    fn new() -> Case {
        let grant = Grant {
            tools: list(&[
                "Read", "Write", "Edit", "Grep", "Glob", "List", "Bash", "Task", "Skill",
            ]),
            workspace: "/w".to_owned(),
            mode: Mode::Ask,
            reach: Profile::WorkspaceWrite,
            ..Grant::default()
        };
        Case { grant, standing: AddedRules::default(), files: HashMap::new() }
    }

    fn allow(mut self, rules: &[&str]) -> Case {
        self.grant.permissions.allow.extend(list(rules));
        self
    }

    fn ask(mut self, rules: &[&str]) -> Case {
        self.grant.permissions.ask.extend(list(rules));
        self
    }

    fn deny(mut self, rules: &[&str]) -> Case {
        self.grant.permissions.deny.extend(list(rules));
        self
    }

    fn scope(mut self, rules: &[&str]) -> Case {
        self.grant.scopes.push(list(rules));
        self
    }

    fn mode(mut self, mode: Mode) -> Case {
        self.grant.mode = mode;
        self
    }

    fn attended(mut self) -> Case {
        self.grant.attended = true;
        self
    }

    fn judge(&self, tool: &str, input: Value) -> Ruling {
        let facts: Arc<[ToolFacts]> = built_in_tools().into();
        let today = Today { files: self.files.clone(), ..Today::default() };
        let policy =
            Policy::new(&self.grant, &today, &facts).unwrap_or_else(|error| panic!("{error}"));
        let known = facts.iter().find(|it| it.name == tool).cloned();
        let mut spec = ToolSpec::new(tool, "", Effect::Network, json!({}));
        spec.facts = known.unwrap_or(spec.facts);
        let (id, extra) = (CallId::from("c1"), Extra::default());
        let call = ToolCall { id, name: tool.to_owned(), input, extra };
        policy.judge(&call, &spec, &self.standing)
    }

    fn bash(&self, command: &str) -> Ruling {
        self.judge("Bash", json!({"command": command}))
    }

    fn file(&self, tool: &str, path: &str) -> Ruling {
        let key = if ["Grep", "Glob", "List"].contains(&tool) { "path" } else { "file_path" };
        self.judge(tool, json!({key: path}))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Allow,
    Ask,
    Deny,
}

fn kind(ruling: &Ruling) -> Kind {
    match ruling {
        Ruling::Allow { .. } => Kind::Allow,
        Ruling::Ask { .. } => Kind::Ask,
        Ruling::Deny { .. } => Kind::Deny,
    }
}

#[track_caller]
fn check(ruling: &Ruling, expected: Kind) {
    assert_eq!(kind(ruling), expected, "{ruling:?}");
}
