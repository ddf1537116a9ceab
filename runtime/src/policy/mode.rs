//! What a mode says about calls that no rule is about.

use super::rule::{WRITING, is_harmless};
use posse_protocol::{Mode, Profile, ToolSpec};

/// What the mode says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Allow,
    Ask,
    Deny,
}

/// What `mode` says about a call of the tool that `spec` describes, where processes reach as far as
/// `profile`.
pub(crate) fn word(mode: Mode, profile: Profile, spec: &ToolSpec) -> Word {
    if is_harmless(spec.effect) {
        return Word::Allow;
    }
    if spec.name == "Bash" && profile == Profile::ReadOnly {
        // The kernel is the boundary: it can change nothing.
        return Word::Allow;
    }
    let within =
        WRITING.contains(&&*spec.name) || spec.name == "Bash" && profile == Profile::WorkspaceWrite;
    match mode {
        Mode::Plan | Mode::DontAsk => Word::Deny,
        Mode::Ask => Word::Ask,
        Mode::AcceptEdits if within => Word::Allow,
        Mode::AcceptEdits => Word::Ask,
        Mode::Bypass => Word::Allow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::Effect;
    use serde_json::json;

    #[test]
    fn each_mode_says_what_the_table_says() {
        use Word::{Allow, Ask, Deny};
        let check = |tool: &str, effect, profile, words: [Word; 5]| {
            let spec = ToolSpec {
                name: tool.to_owned(),
                description: String::new(),
                schema: json!({}).into(),
                effect,
                idempotent: false,
            };
            let found = Mode::ALL.map(|mode| word(mode, profile, &spec));
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
