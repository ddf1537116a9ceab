//! The policy of a run: which tools it may call, and with which arguments. Rules and the mode are
//! compiled once per run.
//!
//! A call is checked against denials, then against the scopes of the grant and of skills, then
//! against rules that ask, then against rules that allow. If none applies, the mode decides. Rules
//! about the shell only decide whether to ask: the sandbox limits what a process can do.

mod command;
mod files;
mod links;
mod lists;
mod looking;
mod mode;
mod odd;
mod path;
mod program;
mod reach;
mod rule;
mod set;
mod shell;
mod subject;
mod suggestion;
#[cfg(test)]
mod tests;

pub use files::FileRules;
pub use lists::{denials, scopes, tool_names};
pub use rule::{Rule, RuleError};
pub use shell::programs_in;

#[cfg(test)]
pub(crate) use path::{Case, PathPattern};
pub(crate) use path::{Roots, escaped, names_of_machines, normal as without_detours};
pub(crate) use rule::{EDIT, READ, WRITING};

use crate::tool_facts::filter::parts;
use crate::tool_facts::{ToolFacts, find, is_of_the_run};
use mode::ModeDecision;
use path::Worktree;
use posse_agent::{AddedRules, Guard, Ruling};
use posse_protocol::{Effect, Grant, Mode, Permissions, Profile, ToolCall, ToolSpec};
use set::{PossibleMatch, Purpose, RuleMatch, Rules};
use std::collections::HashMap;
use std::sync::Arc;
use subject::{Subject, Target};

/// The words that say why a call was refused which would otherwise have been a question.
pub const NO_PERSON: &str = "no person can answer here";

/// Decides about the calls of one run.
pub struct Policy {
    workspace: String,
    worktree: Option<Worktree>,
    home: Option<String>,
    /// Folders of the run itself, which no scope takes away: the scratch folder to read and write,
    /// and the folders of its skills to read.
    scratch: Option<String>,
    skills: Vec<String>,
    deny: Rules,
    scopes: Vec<Rules>,
    ask: Rules,
    allow: Rules,
    mode: Mode,
    profile: Profile,
    attended: bool,
    tools: Arc<[ToolFacts]>,
    files: HashMap<String, String>,
}

/// The current settings that apply to a run in addition to its grant.
#[derive(Clone, Debug, Default)]
pub struct Today {
    /// The current rules of the settings. Denials and rules that ask also apply to runs that began
    /// before. A rule that allows counts only if the grant has it.
    pub permissions: Permissions,
    /// The user's home folder, for rules with `~/`.
    pub home: Option<String>,
    /// The files that rules come from, by rule. Rules from elsewhere are not in it.
    pub files: HashMap<String, String>,
}

impl Policy {
    /// Compiles the rules of `grant` and of the current settings, given the `tools` that exist.
    ///
    /// # Errors
    /// When a rule cannot be enforced. Then no call is allowed.
    pub fn new(
        grant: &Grant,
        today: &Today,
        tools: &Arc<[ToolFacts]>,
    ) -> Result<Policy, RuleError> {
        let worktree = grant.worktree.as_ref().map(Worktree::of);
        let roots = Roots {
            workspace: &grant.workspace,
            worktree: worktree.as_ref(),
            home: today.home.as_deref(),
        };
        let rules = &grant.permissions;
        let refusing = |one: &[String], other: &[String]| {
            Rules::compile(one.iter().chain(other), tools, roots, Purpose::Refuse)
        };
        let narrowing = |texts: &Vec<String>| Rules::compile(texts, tools, roots, Purpose::Narrow);
        Ok(Policy {
            workspace: grant.workspace.clone(),
            home: today.home.clone(),
            tools: tools.clone(),
            files: today.files.clone(),
            scratch: grant.scratch.clone(),
            skills: grant.skills.iter().map(|skill| skill.path.clone()).collect(),
            deny: refusing(&rules.deny, &today.permissions.deny)?,
            scopes: grant.scopes.iter().map(narrowing).collect::<Result<_, _>>()?,
            ask: refusing(&rules.ask, &today.permissions.ask)?,
            allow: Rules::compile(&rules.allow, tools, roots, Purpose::Allow)?,
            mode: grant.mode,
            profile: grant.profile(),
            attended: grant.attended,
            worktree,
        })
    }

    /// Returns why `rule` would not allow `call` of the tool `tool`; `None` if it would.
    pub(crate) fn misses(&self, rule: &str, tool: &str, call: &ToolCall) -> Option<String> {
        let parsed = Rule::parse_among(rule, &self.tools);
        let texts = [rule.to_owned()];
        let rules =
            parsed.and_then(|_| Rules::compile(&texts, &self.tools, self.roots(), Purpose::Allow));
        let facts = find(&self.tools, tool)
            .map_or_else(|| ToolFacts::new(tool, Effect::Network), |(facts, _)| facts.clone());
        match rules {
            Err(error) => Some(error.to_string()),
            Ok(rules) => match rules.allow(tool, &Subject::of(call, &facts, &self.workspace)) {
                Ok(Some(_)) => None,
                _ => Some(format!(
                    "the rule `{rule}` does not mean the call of `{tool}` that is asked about"
                )),
            },
        }
    }

    /// Returns the rules that deny or ask, as written.
    pub(crate) fn refusing(&self) -> Vec<String> {
        [self.deny.texts(), self.ask.texts()].concat()
    }

    /// Returns the folder that the run would work in without its worktree.
    fn origin(&self) -> Option<&String> {
        self.worktree.as_ref().map(|worktree| &worktree.origin)
    }

    fn roots(&self) -> Roots<'_> {
        Roots {
            workspace: &self.workspace,
            worktree: self.worktree.as_ref(),
            home: self.home.as_deref(),
        }
    }

    /// True when a rule can apply to calls of `tool`, so that their subject matters.
    fn has_rules_about(&self, tool: &str, standing: &AddedRules) -> bool {
        let mut sets = [&self.deny, &self.ask, &self.allow].into_iter().chain(&self.scopes);
        sets.any(|rules| rules.are_about(tool))
            || !standing.approved.is_empty()
            || !standing.narrowed.is_empty()
    }

    /// True when Posse does not ask about commands that only read. They must be confined, so that a
    /// command that does more than it seems can change only the workspace.
    fn may_look(&self, tool: &ToolFacts) -> bool {
        tool.runs_commands() && tool.confined && self.profile == Profile::WorkspaceWrite
    }

    /// Returns the denial or the scope that excludes this call, if there is one.
    fn outside(
        &self,
        facts: &ToolFacts,
        subject: &Subject,
        standing: &AddedRules,
    ) -> Option<Ruling> {
        let tool = facts.name.as_str();
        if let Subject::Path(target) = subject
            && self.is_own(target, tool)
        {
            return None;
        }
        let refuse = |by: &str, texts: &[String], why: Option<String>| {
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            Some(Ruling::Deny {
                by: by.to_owned(),
                reason: format!(
                    "this call is outside of what `{tool}` may be used for here{why}: it may be \
                     called as {} says",
                    texts.join(", ")
                ),
            })
        };
        for scope in self.scopes.iter().filter(|scope| scope.are_about(tool)) {
            // The search tools of Posse skip files outside the scope one by one.
            if let Subject::Path(target) = subject
                && target.extent == subject::Extent::All
                && facts.confined
            {
                continue;
            }
            match scope.allow(tool, subject) {
                Ok(Some(_)) => {}
                Ok(None) => return refuse(GRANT, scope.texts(), None),
                Err(why) => return refuse(GRANT, scope.texts(), Some(why)),
            }
        }
        // A skill cannot take away tools that affect only the run.
        if is_of_the_run(facts) {
            return None;
        }
        for list in &standing.narrowed {
            // An invalid list allows nothing.
            let rules = Rules::compile(list, &self.tools, self.roots(), Purpose::Allow);
            let found = rules.as_ref().map_or(Ok(None), |rules| rules.allow(tool, subject));
            match found {
                Ok(Some(_)) => {}
                Ok(None) => return refuse(SKILL, list, None),
                Err(why) => return refuse(SKILL, list, Some(why)),
            }
        }
        None
    }

    /// True when `target` is in a folder of the run itself that `tool` may use.
    fn is_own(&self, target: &Target, tool: &str) -> bool {
        let writes = find(&self.tools, tool).is_some_and(|(tool, _)| tool.writes_files());
        let read = (!writes && !WRITING.contains(&tool)).then_some(&self.skills);
        let mut folders = self.scratch.iter().chain(read.into_iter().flatten());
        folders.any(|folder| {
            let below = target.path.strip_prefix(folder.as_str());
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        })
    }

    /// Returns the ruling for a call that a rule of `list` may match.
    fn ask_about(&self, list: &str, tool: &str, doubt: &PossibleMatch) -> Ruling {
        let PossibleMatch { rule, why, words } = doubt;
        let by = format!("the rule {list} {rule}, which may cover it: {why}");
        if self.attended || words.is_empty() {
            return self.ask(by, None);
        }
        let what = suggestion::shown(words);
        let meant = match parts(rule).1.and_then(suggestion::program) {
            Some(program) => format!("start `{program}`, which"),
            None => "be a command that".to_owned(),
        };
        let file = self.files.get(rule).map_or_else(String::new, |file| format!(" of {file}"));
        let verb = if list == "deny" { "denies" } else { "asks about" };
        let next = suggestion::settling(tool, words).map_or_else(String::new, |rule| {
            format!("; the user can permit it with --allow '{rule}'")
        });
        let reason = format!(
            "not run: `{what}` could {meant} the rule `{rule}`{file} {verb}, and {NO_PERSON}; do \
             it in another way, or say what you could not do{next}"
        );
        Ruling::Deny { by, reason }
    }

    fn ask(&self, by: String, rule: Option<String>) -> Ruling {
        match self.attended {
            true => Ruling::Ask { by, rule },
            false => Ruling::Deny {
                reason: format!(
                    "this needs a person's approval ({by}), and {NO_PERSON}; do without it, or \
                     say what you could not do"
                ),
                by,
            },
        }
    }
}

const GRANT: &str = "the grant";
const SKILL: &str = "the tools of a skill in use";

impl Guard for Policy {
    fn judge(&self, call: &ToolCall, spec: &ToolSpec, standing: &AddedRules) -> Ruling {
        let tool = spec.name.as_str();
        let word = mode::word(self.mode, self.profile, spec);
        let may_look = word != ModeDecision::Allow && self.may_look(spec);
        let subject = match may_look || self.has_rules_about(tool, standing) {
            true => Subject::of(call, spec, &self.workspace),
            false => Subject::Other,
        };
        let approved = match standing.approved.is_empty() {
            true => Rules::default(),
            // An invalid list allows nothing.
            false => Rules::compile(&standing.approved, &self.tools, self.roots(), Purpose::Allow)
                .unwrap_or_default(),
        };
        let allowed = [&self.allow, &approved];
        let denied = self.deny.may_mean(tool, &subject, &allowed);
        if let RuleMatch::By(rule) = denied {
            let reason = format!("the rule `{rule}` denies this; do without it");
            return Ruling::Deny { by: format!("the rule deny {rule}"), reason };
        }
        if let Some(refused) = self.outside(spec, &subject, standing) {
            return refused;
        }
        if let RuleMatch::Maybe(doubt) = denied {
            return self.ask_about("deny", tool, &doubt);
        }
        match self.ask.may_mean(tool, &subject, &allowed) {
            RuleMatch::By(rule) => return self.ask(format!("the rule ask {rule}"), None),
            RuleMatch::Maybe(doubt) => return self.ask_about("ask", tool, &doubt),
            RuleMatch::No => {}
        }
        let near = match Rules::allow_any(&allowed, tool, &subject) {
            Ok(Some(rule)) => return Ruling::Allow { by: format!("the rule allow {rule}") },
            Ok(None) => None,
            Err(why) => Some(why),
        };
        if may_look
            && let Ok(Some(_)) =
                Rules::allow_any(&[&looking::LOOKING, &self.allow, &approved], tool, &subject)
        {
            return Ruling::Allow { by: "the command only looks".to_owned() };
        }
        let by = format!("the mode {}", self.mode);
        match word {
            ModeDecision::Allow => Ruling::Allow { by },
            ModeDecision::Ask => {
                let rule = suggestion::rule(self, call, spec, &subject);
                let by = near.map_or(by.clone(), |why| format!("{by}; {why}"));
                self.ask(by, rule)
            }
            ModeDecision::Deny => {
                let why = near.map_or_else(String::new, |why| format!(" ({why})"));
                let what = match spec.effect {
                    Effect::Network => "talks to other machines",
                    Effect::Execute => "runs programs",
                    _ => "changes something",
                };
                let reason = format!("`{tool}` {what}, which {by} refuses{why}; do without it");
                Ruling::Deny { by, reason }
            }
        }
    }
}
