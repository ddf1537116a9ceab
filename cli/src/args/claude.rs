//! Options of Claude Code with the same meaning here, and the alternatives for the others.

use super::{AgentOptions, AgentsVerb, Arguments, ChatOptions, Command, Global, Later, RunOptions};
use crate::exit::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, ValueEnum};
use posse::protocol::{Instructions, Limits, MessageOptions, Mode};

/// The heading of these options in the help.
const HEADING: &str = "Options that Claude Code has, too";

// The options of both `posse run` and `posse chat`. A doc comment would become their help.
#[derive(Args, Default)]
pub struct ClaudeOptions {
    /// Several --allow rules in one text: "Bash(git log:*) Edit"
    #[arg(long, alias = "allowedTools", value_name = "RULES", help_heading = HEADING, hide_short_help = true)]
    allowed_tools: Vec<String>,
    /// Several --deny rules in one text
    #[arg(long, alias = "disallowedTools", value_name = "RULES", help_heading = HEADING, hide_short_help = true)]
    disallowed_tools: Vec<String>,
    /// Same as --mode, with the names of Claude Code
    #[arg(long, value_name = "MODE", value_parser = modes(), conflicts_with = "mode", help_heading = HEADING, hide_short_help = true)]
    permission_mode: Option<Mode>,
    /// Same as --mode bypass: never ask. Deny rules still apply, and commands stay in the sandbox
    #[arg(long, conflicts_with_all = ["mode", "permission_mode"], help_heading = HEADING, hide_short_help = true)]
    dangerously_skip_permissions: bool,
    /// Replace the instructions of the agent with this text
    #[arg(long, value_name = "TEXT", conflicts_with = "append_system_prompt", help_heading = HEADING, hide_short_help = true)]
    system_prompt: Option<String>,
    /// Add this text to the instructions of the agent
    #[arg(long, value_name = "TEXT", help_heading = HEADING, hide_short_help = true)]
    append_system_prompt: Option<String>,
    /// Use this model if the first is not available: same as a second name in --model
    #[arg(long, value_name = "MODEL", value_parser = super::model_name, help_heading = HEADING, hide_short_help = true)]
    fallback_model: Option<String>,
    /// No effect: Posse always shows progress, unless you add --quiet
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    verbose: bool,
}

// The options of `posse run` only.
#[derive(Args, Default)]
pub struct ClaudeRunOptions {
    /// No effect: `posse -p "…"` is the same as `posse run "…"`
    #[arg(long, short, help_heading = HEADING, hide_short_help = true)]
    print: bool,
    /// Send the prompt to the newest run or chat of this folder
    #[arg(long = "continue", short = 'c', help_heading = HEADING, hide_short_help = true, conflicts_with = "resume", conflicts_with_all = NEW_RUN)]
    continues: bool,
    /// Send the prompt to this run or chat
    #[arg(long, short, value_name = "RUN", help_heading = HEADING, hide_short_help = true, conflicts_with_all = NEW_RUN)]
    resume: Option<String>,
    /// Output format: json is the same as --json, stream-json the same as --stream-json
    #[arg(long, value_name = "FORMAT", value_enum, help_heading = HEADING, hide_short_help = true)]
    output_format: Option<OutputFormat>,
}

/// Options that define a new chat and what it may do.
pub const NEW_CHAT: [&str; 19] = [
    "agent",
    "effort",
    "max_turns",
    "max_cost",
    "budget",
    "timeout",
    "mode",
    "sandbox",
    "network",
    "allow",
    "deny",
    "allowed_tools",
    "disallowed_tools",
    "permission_mode",
    "dangerously_skip_permissions",
    "system_prompt",
    "append_system_prompt",
    "record",
    "replay",
];

/// Options that define a new run and what it may do.
const NEW_RUN: [&str; 20] = [
    "agent",
    "effort",
    "mode",
    "sandbox",
    "network",
    "allow",
    "deny",
    "allowed_tools",
    "disallowed_tools",
    "permission_mode",
    "dangerously_skip_permissions",
    "system_prompt",
    "append_system_prompt",
    "record",
    "replay",
    "output_schema",
    "label",
    "priority",
    "key",
    "background",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

/// The run that a prompt is sent to.
pub enum Earlier {
    /// The newest run of the folder.
    Newest,
    /// The run with this name.
    Named(String),
}

impl Arguments {
    /// Copies the values of Claude Code's options to the options with the same meaning.
    pub fn understand(&mut self) {
        match &mut self.command {
            Command::Run(Later(options)) => options.understand(&mut self.global),
            Command::Agents(Later(AgentsVerb::Run { options, .. })) => {
                options.understand(&mut self.global);
            }
            Command::Chat(Later(options)) => options.understand(),
            _ => {}
        }
    }
}

impl RunOptions {
    fn understand(&mut self, global: &mut Global) {
        self.agent.understand();
        match self.claude.output_format {
            Some(OutputFormat::Json) => global.json = true,
            Some(OutputFormat::StreamJson) => self.stream_json = !global.json,
            Some(OutputFormat::Text) | None => {}
        }
    }

    /// The earlier run that gets the prompt, if the command does not start a new run.
    pub fn earlier(&self) -> Option<Earlier> {
        match (&self.claude.resume, self.claude.continues) {
            (Some(run), _) => Some(Earlier::Named(run.clone())),
            (None, true) => Some(Earlier::Newest),
            (None, false) => None,
        }
    }
}

/// The changes for an earlier run with `--continue` or `--resume`: its model, and the limits for this message.
pub fn asks(agent: &AgentOptions) -> Result<MessageOptions, Failure> {
    let limits = Limits { turns: agent.max_turns, wall_ms: agent.timeout, ..Limits::default() };
    let limits = (limits != Limits::default()).then_some(limits);
    if !agent.fallback.is_empty() {
        return Err(Failure::usage("an earlier run keeps its fallback models")
            .hint("leave out --fallback-model, or start a new run with it"));
    }
    match agent.model.as_slice() {
        [] => Ok(MessageOptions { limits, ..MessageOptions::default() }),
        [model] => {
            Ok(MessageOptions { model: Some(model.clone()), limits, ..MessageOptions::default() })
        }
        _ => Err(Failure::usage("an earlier run continues with one model, but you named several")
            .hint("name the model that answers from now on")),
    }
}

/// The error for an option that cannot be combined with `--continue` or `--resume`, if `error` is about that.
pub fn keeps_what_it_has(error: &clap::Error) -> Option<Failure> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => name.split(' ').next().map(str::to_owned),
        _ => None,
    };
    let (one, other) = (named(ContextKind::InvalidArg)?, named(ContextKind::PriorArg)?);
    let is_earlier = |name: &str| matches!(name, "--continue" | "--resume");
    let (earlier, option) = match (is_earlier(&one), is_earlier(&other)) {
        (true, false) => (one, other),
        (false, true) => (other, one),
        _ => return None,
    };
    let message = format!(
        "`{option}` cannot be used with `{earlier}`: a run keeps the agent, the limits and the rules \
         that it was started with"
    );
    let hint = format!("leave out `{option}`, or leave out `{earlier}` to start a new run");
    (error.kind() == ErrorKind::ArgumentConflict).then(|| Failure::usage(message).hint(hint))
}

impl ChatOptions {
    fn understand(&mut self) {
        self.agent.understand();
    }
}

impl AgentOptions {
    fn understand(&mut self) {
        let claude = std::mem::take(&mut self.claude);
        self.allow.extend(claude.allowed_tools.iter().flat_map(|text| rules(text)));
        self.deny.extend(claude.disallowed_tools.iter().flat_map(|text| rules(text)));
        self.mode = self.mode.or(claude.permission_mode);
        if claude.dangerously_skip_permissions {
            self.mode = Some(Mode::Bypass);
        }
        self.fallback.extend(claude.fallback_model);
        self.instructions = match (claude.system_prompt, claude.append_system_prompt) {
            (Some(text), _) => Instructions::Replace(text),
            (None, Some(text)) => Instructions::Append(text),
            (None, None) => Instructions::Own,
        };
    }
}

/// The rules in a list. They are separated by commas or spaces outside of parentheses.
fn rules(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (character == ',' || character.is_whitespace())
    });
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The modes with their names in Claude Code.
const MODES: [(&str, Mode); 5] = [
    ("default", Mode::Ask),
    ("acceptEdits", Mode::AcceptEdits),
    ("plan", Mode::Plan),
    ("dontAsk", Mode::DontAsk),
    ("bypassPermissions", Mode::Bypass),
];

fn modes() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(MODES.map(|(word, _)| word)).map(|word| {
        let known = MODES.iter().find(|(known, _)| *known == word);
        known.map_or(Mode::Ask, |(_, mode)| *mode)
    })
}

/// Options of Claude Code without a counterpart, and their alternatives.
const OTHERS: [(&str, &str); 13] = [
    ("--add-dir", "an agent works in one folder: --cwd names a folder that holds all of them"),
    (
        "--mcp-config",
        "`.mcp.json` of the folder and your settings name MCP servers: `posse mcp list`",
    ),
    ("--strict-mcp-config", "an agent has the servers that its `mcpServers` and `tools` name"),
    ("--json-schema", "--output-schema FILE takes the schema from a file"),
    ("--tools", "an agent's definition lists its tools (--agents); --deny takes some away"),
    ("--settings", "settings are read from files: `posse config path` lists them"),
    ("--setting-sources", "settings are read from files: `posse config path` lists them"),
    ("--session-id", "Posse chooses the id; --label gives a run a name, --resume continues one"),
    ("--fork-session", "--resume continues the run itself; there is no copy of it"),
    ("--input-format", "the prompt is text; `posse chat --json` takes several, one on each line"),
    ("--include-partial-messages", "--stream-json always includes them"),
    ("--plugin-dir", "`plugins` in the settings names folders of plugins"),
    ("--debug", "`posse runs log RUN` prints all that a run did"),
];

/// The alternative to an option of Claude Code that Posse does not have.
pub fn instead_of(option: &str) -> Option<&'static str> {
    OTHERS.iter().find(|(other, _)| *other == option).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use super::rules;

    #[test]
    fn a_list_of_rules_is_cut_outside_of_parentheses() {
        assert_eq!(rules("Bash(git log:*) Edit"), ["Bash(git log:*)", "Edit"]);
        assert_eq!(rules("Read,Bash(a, b), Write"), ["Read", "Bash(a, b)", "Write"]);
        assert_eq!(rules(" "), [""; 0]);
    }
}
