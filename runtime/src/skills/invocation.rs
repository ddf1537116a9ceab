//! Messages `/name arguments`: they invoke a skill or a command. The text of it follows the message.

use super::{Skill, SkillCatalog};
use posse_protocol::piped;

/// What follows a message that invokes a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// The text of the skill, for the agent.
    pub(crate) text: String,
    /// The calls that the agent may make until its next task; `None` for all that it may.
    pub(crate) narrows: Option<Vec<String>>,
}

impl SkillCatalog {
    /// Returns the skill or command that `message` invokes, and its arguments: the message begins with
    /// `/name`. `None` if there is no such skill in use.
    pub fn invoked<'t>(&self, message: &'t str) -> Option<(&Skill, &'t str)> {
        let line = piped::parted(message).0.trim().strip_prefix('/')?;
        let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let skill = self.iter().find(|skill| skill.name.eq_ignore_ascii_case(name))?;
        Some((skill, arguments.trim()))
    }

    /// Returns what follows `message`, if it invokes a skill.
    ///
    /// # Errors
    /// When the skill cannot be read, or has scripts and is not trusted, with the reason.
    pub(crate) fn invocation(&self, message: &str) -> Result<Option<Invocation>, String> {
        let Some((skill, arguments)) = self.invoked(message) else { return Ok(None) };
        let kind = if skill.is_command { "command" } else { "skill" };
        let failed = |why: String| format!("the {kind} `/{}` cannot be used: {why}", skill.name);
        if let Some(why) = self.held_back(&skill.folder).filter(|_| !skill.is_command) {
            return Err(failed(why));
        }
        let loaded = skill.load().map_err(failed)?;
        let tools = loaded.allowed_tools();
        let only = match tools {
            [] => String::new(),
            tools => format!(
                " Until you are given another task you may call nothing but: {}. It grants none of them.",
                tools.join(", ")
            ),
        };
        let text = format!(
            "[The user invokes the {kind} `{}`, from {}.{only} Do what it says:]\n\n{}",
            skill.name,
            skill.file.display(),
            loaded.filled(arguments, &skill.folder)
        );
        Ok(Some(Invocation { text, narrows: (!tools.is_empty()).then(|| tools.to_vec()) }))
    }
}
