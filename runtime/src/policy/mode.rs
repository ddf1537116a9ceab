//! What a mode decides about calls that no rule matches.

use super::rule::is_harmless;
use crate::tool_facts::ToolFacts;
use posse_protocol::{Mode, Profile};

/// The decision of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModeDecision {
    Allow,
    Ask,
    Deny,
}

/// Returns the decision of `mode` about a call of `tool`, if processes have the sandbox `profile`.
pub(crate) fn word(mode: Mode, profile: Profile, tool: &ToolFacts) -> ModeDecision {
    if is_harmless(tool.effect) {
        return ModeDecision::Allow;
    }
    let is_shell = tool.runs_commands() && tool.confined;
    if is_shell && profile == Profile::ReadOnly {
        // The kernel is the boundary: the command can change nothing.
        return ModeDecision::Allow;
    }
    let within = tool.changes_files() || is_shell && profile == Profile::WorkspaceWrite;
    match mode {
        Mode::Plan | Mode::DontAsk => ModeDecision::Deny,
        Mode::Ask => ModeDecision::Ask,
        Mode::AcceptEdits if within => ModeDecision::Allow,
        Mode::AcceptEdits => ModeDecision::Ask,
        Mode::Bypass => ModeDecision::Allow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_facts::built_in_tools;
    use posse_protocol::Effect;

    #[test]
    fn each_mode_says_what_the_table_says() {
        use ModeDecision::{Allow, Ask, Deny};
        let check = |tool: &str, effect, profile, words: [ModeDecision; 5]| {
            let known = built_in_tools().into_iter().find(|known| known.name == tool);
            let facts = known.unwrap_or_else(|| ToolFacts::new(tool, effect));
            assert_eq!(facts.effect, effect);
            let found = Mode::ALL.map(|mode| word(mode, profile, &facts));
            assert_eq!(found, words, "{tool} {profile}: plan, dont-ask, ask, accept-edits, bypass");
        };
        for profile in [Profile::ReadOnly, Profile::WorkspaceWrite, Profile::Full] {
            check("Read", Effect::Read, profile, [Allow; 5]);
            check("TodoWrite", Effect::Read, profile, [Allow; 5]);
            check("Task", Effect::Delegate, profile, [Allow; 5]);
            check("Write", Effect::Write, profile, [Deny, Deny, Ask, Allow, Allow]);
            check("Edit", Effect::Write, profile, [Deny, Deny, Ask, Allow, Allow]);
            check("web", Effect::Network, profile, [Deny, Deny, Ask, Ask, Allow]);
            check("deploy", Effect::Execute, profile, [Deny, Deny, Ask, Ask, Allow]);
            check("save", Effect::Write, profile, [Deny, Deny, Ask, Ask, Allow]);
        }
        check("Bash", Effect::Execute, Profile::ReadOnly, [Allow; 5]);
        check("Bash", Effect::Execute, Profile::WorkspaceWrite, [Deny, Deny, Ask, Allow, Allow]);
        check("Bash", Effect::Execute, Profile::Full, [Deny, Deny, Ask, Ask, Allow]);
    }
}
