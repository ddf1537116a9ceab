//! Command lines without a command: `posse "question"`, `posse -p "…"`, `posse -c`, `posse`.

use super::{ChatOptions, Command, Global, RunOptions, RunsVerb};
use crate::exit::Failure;
use clap::{Args, Subcommand};
use posse::protocol::near;
use std::collections::HashSet;
use std::ffi::OsString;

/// What standard input is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A person at a terminal, who can chat.
    Person,
    /// A text from a file or another program, which can be a task.
    Text,
    /// Neither.
    Nothing,
}

/// Inserts the missing command into `arguments`. They stay unchanged if they have a command, or if
/// clap has to report what is wrong.
///
/// A single word is never run as a task: a mistyped command would cost money.
pub fn complete(arguments: Vec<OsString>, input: Input) -> Result<Vec<OsString>, Failure> {
    let mut arguments = with_whole_lists(arguments);
    let is_first_a_command =
        arguments.get(1).and_then(|first| first.to_str()).is_some_and(is_command);
    if is_first_a_command {
        return Ok(arguments);
    }
    let line = Line::read(arguments.iter().skip(1));
    let command = match &line.words[..] {
        _ if line.asks_for_help => return Ok(arguments),
        [first, ..] if is_command(first) => return Ok(arguments),
        [] if line.prints => "run",
        [] if line.resumes || input == Input::Person => "chat",
        [] if input == Input::Text => "run",
        [] => return Ok(arguments),
        [_, ..] if line.prints || line.resumes || line.has_unknown => "run",
        [prompt] if prompt.contains(char::is_whitespace) => "run",
        words => return Err(not_a_command(words)),
    };
    arguments.insert(1, command.into());
    Ok(arguments)
}

/// Options of Claude Code that take all following words that can be rules.
const LISTS: [&str; 4] =
    ["--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools"];

/// The tools of Claude Code. Any other word may be a prompt.
const TOOLS: &str = "Agent Bash BashOutput Edit Glob Grep LS List MultiEdit NotebookEdit NotebookRead Read Skill \
     Task TodoWrite WebFetch WebSearch Write";

/// `arguments` with the rules after such an option joined into one argument.
fn with_whole_lists(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut whole: Vec<OsString> = Vec::with_capacity(arguments.len());
    let is_rule = |word: &str| {
        let name = word.split(['(', ',']).next().unwrap_or_default();
        let is_closed = !word.contains('(') || word.ends_with(')');
        let is_tool = TOOLS.split_whitespace().any(|tool| tool == name);
        // Accept `Bash(git log:*)` and `Edit,Write`, but not `Read, then write`.
        let is_plain = word.contains('(') || !word.contains(char::is_whitespace);
        is_closed && is_plain && (is_tool || name.starts_with("mcp__"))
    };
    // The number of words since such an option; `None` after any other word.
    let (mut listed, mut is_over) = (None, false);
    for argument in arguments {
        let text = argument.to_str().unwrap_or_default();
        match listed {
            Some(0) if !text.starts_with('-') => listed = Some(1),
            Some(1..) if is_rule(text) => {
                if let Some(list) = whole.last_mut() {
                    list.push(",");
                    list.push(&argument);
                    continue;
                }
            }
            _ => listed = LISTS.contains(&text).then_some(0),
        }
        // After `--`, no word is an option or the value of one.
        is_over |= text == "--";
        listed = listed.filter(|_| !is_over);
        whole.push(argument);
    }
    whole
}

fn is_command(word: &str) -> bool {
    word == "help" || Command::has_subcommand(word)
}

/// Advice for a prompt of several arguments.
pub fn quoted(words: &[String]) -> String {
    let prompt = words.join(" ").replace(['\\', '"', '$', '`'], "");
    format!("quote the prompt: posse run \"{prompt}\"")
}

/// Commands of other programs without a counterpart, and their alternatives.
const OTHERS: [(&str, &str); 11] = [
    ("ps", "`posse runs list --unfinished` lists the runs that have not ended"),
    ("logs", "`posse runs log RUN` shows the events of a run; `posse runs list` lists the runs"),
    ("login", "Posse has no login: set the API key of a vendor, such as ANTHROPIC_API_KEY"),
    ("logout", "Posse has no login: remove the API key from your environment"),
    ("setup-token", "Posse has no login: set the API key of a vendor, such as ANTHROPIC_API_KEY"),
    ("init", "nothing to prepare: `posse demo` and `posse \"what is this?\"` work in any folder"),
    ("update", "update Posse the way you installed it, such as with cargo"),
    ("upgrade", "update Posse the way you installed it, such as with cargo"),
    ("plugin", "`plugins` in your settings names folders of plugins"),
    ("settings", "`posse config` shows the settings; `posse config path` lists their files"),
    ("resume", "`posse --resume` continues a chat, `posse runs resume RUN` continues a run"),
];

fn not_a_command(words: &[String]) -> Failure {
    let first = words.first().map(String::as_str).unwrap_or_default();
    let commands = Command::augment_subcommands(clap::Command::new("posse"));
    let names: Vec<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
    let other = OTHERS.iter().find(|(word, _)| *word == first).map(|(_, instead)| *instead);
    let hint = match (other, near::nearest(first, names)) {
        (Some(instead), _) => instead.to_owned(),
        (None, _) if RunsVerb::has_subcommand(first) => {
            format!("did you mean `posse runs {first}`? Otherwise {}", quoted(words))
        }
        (None, Some(name)) => format!("did you mean `posse {name}`? Otherwise {}", quoted(words)),
        (None, None) => format!("{}; `posse help` lists the commands", quoted(words)),
    };
    Failure::usage(format!("`{first}` is not a command")).hint(hint)
}

/// The content of a command line.
#[derive(Default)]
struct Line {
    /// The words that are neither options nor values of options.
    words: Vec<String>,
    prints: bool,
    resumes: bool,
    asks_for_help: bool,
    /// There is an unknown option. The error must name it, and not the words after it.
    has_unknown: bool,
}

impl Line {
    fn read<'a>(arguments: impl Iterator<Item = &'a OsString>) -> Line {
        let (valued, known) = (options(|it| it.get_action().takes_values()), options(|_| true));
        let mut line = Line::default();
        let mut arguments = arguments.map(|argument| argument.to_string_lossy()).peekable();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                line.words.extend(arguments.by_ref().map(|word| word.into_owned()));
            } else if argument == "-" || !argument.starts_with('-') {
                line.words.push(argument.into_owned());
            } else {
                line.option(&argument);
                let name = argument.split('=').next().unwrap_or_default();
                line.has_unknown |= name.starts_with("--") && !known.contains(name);
                let takes_next = valued.contains(&*argument)
                    && !(is_resume(&argument)
                        && arguments.peek().is_none_or(|next| next.starts_with('-')));
                if takes_next {
                    arguments.next();
                }
            }
        }
        line
    }

    fn option(&mut self, argument: &str) {
        let name = argument.split('=').next().unwrap_or_default();
        match name {
            "--print" => self.prints = true,
            "--continue" | "--resume" => self.resumes = true,
            "--help" | "--version" => self.asks_for_help = true,
            long if long.starts_with("--") => {}
            shorts => {
                self.prints |= shorts.contains('p');
                self.resumes |= shorts.contains(['c', 'r']);
                self.asks_for_help |= shorts.contains(['h', 'V']);
            }
        }
    }
}

/// True for the option whose value is optional in a chat.
fn is_resume(option: &str) -> bool {
    matches!(option, "--resume" | "-r")
}

/// The options of `run` and `chat` that `is_meant` selects, as they are typed.
fn options(is_meant: impl Fn(&clap::Arg) -> bool) -> HashSet<String> {
    let command = Global::augment_args(clap::Command::new("posse"));
    let run = RunOptions::augment_args(clap::Command::new("run"));
    let chat = ChatOptions::augment_args(clap::Command::new("chat"));
    let mut found = HashSet::new();
    for option in [&command, &run, &chat].into_iter().flat_map(|it| it.get_arguments()) {
        if is_meant(option) {
            found.extend(option.get_long().map(|long| format!("--{long}")));
            found.extend(option.get_short().map(|short| format!("-{short}")));
            let aliases = option.get_all_aliases().into_iter().flatten();
            found.extend(aliases.map(|alias| format!("--{alias}")));
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn completed(line: &[&str], input: Input) -> Result<Vec<String>, String> {
        let arguments = std::iter::once("posse").chain(line.iter().copied());
        let arguments = arguments.map(OsString::from).collect();
        let completed = complete(arguments, input);
        let text = |it: Vec<OsString>| it.into_iter().map(|it| it.into_string().unwrap()).collect();
        completed.map(text).map_err(|failure| failure.hint.unwrap_or_default())
    }

    fn command(line: &[&str], input: Input) -> String {
        completed(line, input).unwrap().get(1).cloned().unwrap_or_default()
    }

    #[test]
    fn what_is_typed_without_a_command_finds_its_command() {
        for (line, wanted) in [
            (&["what is this?"][..], "run"),
            (&["-p", "hello"], "run"),
            (&["--model", "sonnet", "-p", "hello"], "run"),
            (&["--allowedTools", "Bash(git:*)", "--print", "hello"], "run"),
            (&["-p"], "run"),
            (&["-c", "-p", "and then?"], "run"),
            (&["-c"], "chat"),
            (&["--resume"], "chat"),
            (&["--resume", "abcd"], "chat"),
            (&["--json", "runs", "list"], "--json"),
            (&["--db", "x.db", "runs", "list"], "--db"),
            (&["--help"], "--help"),
            (&["runs", "list"], "runs"),
        ] {
            assert_eq!(command(line, Input::Nothing), wanted, "{line:?}");
        }
        assert_eq!(command(&[], Input::Person), "chat");
        assert_eq!(command(&["--model", "opus"], Input::Person), "chat");
        assert_eq!(command(&[], Input::Nothing), "");
        assert_eq!(command(&[], Input::Text), "run");
    }

    #[test]
    fn rules_after_an_option_for_them_belong_to_it() {
        let line = ["-p", "hello", "--allowedTools", "Bash(git log:*)", "Bash(git diff *)", "Read"];
        let wanted =
            ["run", "-p", "hello", "--allowedTools", "Bash(git log:*),Bash(git diff *),Read"];
        assert_eq!(completed(&line, Input::Nothing).unwrap()[1..], wanted);
        let line = ["run", "--disallowed-tools", "Edit", "Write", "Hello there", "Read"];
        let wanted = ["run", "--disallowed-tools", "Edit,Write", "Hello there", "Read"];
        assert_eq!(completed(&line, Input::Nothing).unwrap()[1..], wanted);
        let line =
            ["-p", "--allowedTools", "Read", "mcp__github__get_issue", "Edit,Write", "Fix it"];
        let wanted =
            ["run", "-p", "--allowedTools", "Read,mcp__github__get_issue,Edit,Write", "Fix it"];
        assert_eq!(completed(&line, Input::Nothing).unwrap()[1..], wanted);
        let line = ["-p", "--allowed-tools", "Read", "--", "Edit"];
        assert_eq!(completed(&line, Input::Nothing).unwrap()[2..], line);
        let line = ["-p", "--allowed-tools", "Read", "--model", "x", "Read it"];
        assert_eq!(completed(&line, Input::Nothing).unwrap()[2..], line);
    }

    #[test]
    fn a_word_alone_is_never_run() {
        let hint = completed(&["rns", "list"], Input::Person).unwrap_err();
        assert!(hint.contains("did you mean `posse runs`"), "{hint}");
        let hint = completed(&["what", "is", "this"], Input::Person).unwrap_err();
        assert!(hint.contains("quote the prompt: posse run \"what is this\""), "{hint}");
        assert!(completed(&["hello"], Input::Person).is_err());
    }
}
