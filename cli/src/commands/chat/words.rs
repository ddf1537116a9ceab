//! Parses a line of a chat: a command, or a message. Pure.

/// The meaning of a typed line.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning<'a> {
    Nothing,
    /// A message to the agent.
    Say(&'a str),
    Command(Command<'a>),
    /// An unknown command.
    Unknown(&'a str),
    /// A known command with wrong arguments, and its usage.
    Misused(&'static str),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Command<'a> {
    Help,
    Agents,
    Runs,
    Cancel {
        run: Option<&'a str>,
    },
    Resume {
        run: &'a str,
        text: Option<&'a str>,
    },
    /// Switch to another session.
    Switch,
    /// Start a new session.
    Clear,
    Compact,
    Model {
        name: Option<&'a str>,
    },
    Permissions,
    Cost,
    Quit,
}

/// All commands, with their usage and what they do.
pub const COMMANDS: [(&str, &str); 12] = [
    ("/agents", "list the agents this one can delegate to"),
    ("/runs", "show the runs of this session as a tree"),
    ("/cancel [RUN]", "stop a run, or everything this session is doing"),
    ("/resume", "choose another chat of this folder and continue it"),
    ("/resume RUN [TEXT]", "continue a chat or a run, and send TEXT to it"),
    ("/model [NAME]", "show the model, or use another one from the next message on"),
    ("/compact", "summarise the conversation before your next message is answered"),
    ("/clear", "start a new chat; this one is kept"),
    ("/permissions", "show what the agent may do without asking"),
    ("/cost", "show what this session has spent, by run, agent and model"),
    ("/help", "show this help"),
    ("/quit", "leave the chat"),
];

/// The names of all commands.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    let name = |(usage, _): &(&'static str, &str)| usage.split(' ').next().unwrap_or(usage);
    let mut names: Vec<&str> = COMMANDS.iter().map(name).collect();
    names.dedup();
    names.into_iter()
}

/// The names of all commands in one line.
pub fn names() -> String {
    all_names().collect::<Vec<_>>().join(" ")
}

impl<'a> Meaning<'a> {
    pub fn of(line: &'a str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Meaning::Nothing;
        }
        // Two slashes stand for one.
        if let Some(text) = line.strip_prefix('/').filter(|text| text.starts_with('/')) {
            return Meaning::Say(text);
        }
        let (word, rest) = match line.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (line, ""),
        };
        if matches!(line, "exit" | "quit") {
            return Meaning::Command(Command::Quit);
        }
        if !is_command(word) {
            return Meaning::Say(line);
        }
        let rest = Some(rest).filter(|rest| !rest.is_empty());
        Meaning::Command(match (word.to_ascii_lowercase().as_str(), rest) {
            ("/help", _) => Command::Help,
            ("/agents", _) => Command::Agents,
            ("/runs", _) => Command::Runs,
            ("/cost", _) => Command::Cost,
            ("/quit" | "/exit", _) => Command::Quit,
            ("/cancel", run) => match run.filter(|run| run.contains(char::is_whitespace)) {
                Some(_) => return Meaning::Misused("/cancel [RUN]"),
                None => Command::Cancel { run },
            },
            ("/clear" | "/new", _) => Command::Clear,
            ("/compact", _) => Command::Compact,
            ("/model", name) => Command::Model { name },
            ("/permissions" | "/mode", _) => Command::Permissions,
            ("/resume", None) => Command::Switch,
            ("/resume", Some(rest)) => match rest.split_once(char::is_whitespace) {
                Some((run, text)) => Command::Resume { run, text: Some(text.trim()) },
                None => Command::Resume { run: rest, text: None },
            },
            _ => return Meaning::Unknown(word),
        })
    }
}

/// True for a word that looks like a command, and not like a path.
fn is_command(word: &str) -> bool {
    word.strip_prefix('/').is_some_and(|word| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_names_and_everything_else_is_said() {
        let say = Meaning::Say;
        let resume = |run, text| Meaning::Command(Command::Resume { run, text });
        for (line, meaning) in [
            ("  ", Meaning::Nothing),
            ("hello /help", say("hello /help")),
            ("/etc/hosts", say("/etc/hosts")),
            ("/", say("/")),
            ("//help me", say("/help me")),
            ("//", say("/")),
            (" /HELP ", Meaning::Command(Command::Help)),
            ("/exit", Meaning::Command(Command::Quit)),
            ("/cancel", Meaning::Command(Command::Cancel { run: None })),
            ("/cancel 4n8c", Meaning::Command(Command::Cancel { run: Some("4n8c") })),
            ("/cancel all of it", Meaning::Misused("/cancel [RUN]")),
            ("/resume", Meaning::Command(Command::Switch)),
            ("exit", Meaning::Command(Command::Quit)),
            (" quit ", Meaning::Command(Command::Quit)),
            ("quit smoking", say("quit smoking")),
            ("/model", Meaning::Command(Command::Model { name: None })),
            ("/model opus", Meaning::Command(Command::Model { name: Some("opus") })),
            ("/clear", Meaning::Command(Command::Clear)),
            ("/resume 4n8c", resume("4n8c", None)),
            ("/resume 4n8c  and now? ", resume("4n8c", Some("and now?"))),
            ("/nonsense at all", Meaning::Unknown("/nonsense")),
        ] {
            assert_eq!(Meaning::of(line), meaning, "{line:?}");
        }
        assert_eq!(
            names(),
            "/agents /runs /cancel /resume /model /compact /clear /permissions /cost /help /quit"
        );
    }
}
