//! The known results, and the calls to make next.
//!
//! A plan runs from its beginning at every call of the model and asks for results. Results in the
//! transcript are returned. A missing result is noted as wanted, and the plan returns with `?`
//! until the loop has called the tools. So a plan reads like a plain program, keeps no state, and
//! continues after a crash. Only this module names tools; none of them changes anything.

use crate::conversation::{Conversation, Exchange};
use crate::found::{self, Counts, Hits, Names, Page};
use crate::place::OWN_FILES;
use posse_protocol::{Effect, ToolSpec};
use serde_json::{Map, Value, json};

/// Replies to one question, the answer included.
const MAX_REPLIES: usize = 6;
/// Calls in one reply.
const MAX_CALLS: usize = 16;
/// Lines of a file that is read as a whole; the tool shows no more at once.
pub(crate) const WHOLE: usize = 2_000;
/// Bytes of results after which no more calls are made.
const MAX_BYTES: usize = 1 << 20;

/// A call to be made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub tool: &'static str,
    pub input: Value,
}

/// A search for lines.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pattern: String,
    path: Option<String>,
    glob: String,
    ignore_case: bool,
    limit: usize,
}

impl Search {
    pub fn new(pattern: impl Into<String>) -> Self {
        Search {
            pattern: pattern.into(),
            path: None,
            glob: OWN_FILES.to_owned(),
            ignore_case: false,
            limit: 200,
        }
    }

    pub fn within(self, path: &str) -> Self {
        Search { path: Some(path.to_owned()), ..self }
    }

    pub fn files_like(self, glob: &str) -> Self {
        Search { glob: glob.to_owned(), ..self }
    }

    pub fn any_case(self) -> Self {
        Search { ignore_case: true, ..self }
    }

    pub fn at_most(self, limit: usize) -> Self {
        Search { limit, ..self }
    }

    fn input(&self, mode: &str) -> Value {
        let mut input = Map::new();
        input.insert("pattern".into(), json!(self.pattern));
        if let Some(path) = &self.path {
            input.insert("path".into(), json!(path));
        }
        input.insert("glob".into(), json!(self.glob));
        input.insert("output_mode".into(), json!(mode));
        if self.ignore_case {
            input.insert("-i".into(), json!(true));
        }
        input.insert("head_limit".into(), json!(self.limit));
        Value::Object(input)
    }
}

/// What is known of a call.
enum Known<'n> {
    Result(&'n str),
    Failed(&'n str),
    /// The tool is not offered, or no more calls are possible.
    Never,
    /// Wanted now.
    NotYet,
}

/// What a command said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutput {
    Output(String),
    Failed(String),
    /// No shell is offered.
    NoShell,
}

/// What is known, and what is wanted.
pub(crate) struct Notes<'n> {
    tools: &'n [ToolSpec],
    exchanges: &'n [Exchange<'n>],
    /// No more calls are possible.
    closing: bool,
    wanted: Vec<Wanted>,
    /// Caveats of the answer: calls that failed or were not made.
    gaps: Vec<String>,
}

impl<'n> Notes<'n> {
    pub fn new(tools: &'n [ToolSpec], conversation: &'n Conversation<'n>) -> Self {
        let bytes: usize = conversation.exchanges.iter().map(|exchange| exchange.text.len()).sum();
        let closing =
            conversation.pressed || conversation.replies + 1 >= MAX_REPLIES || bytes > MAX_BYTES;
        Notes {
            tools,
            exchanges: &conversation.exchanges,
            closing,
            wanted: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Allows no more calls: the plan ends with the results so far.
    pub fn close(&mut self) {
        self.closing = true;
        self.wanted.clear();
        self.gaps.clear();
    }

    pub fn wanted(self) -> Vec<Wanted> {
        self.wanted
    }

    pub fn has_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// The caveats of the answer.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// The tool of this name, if its effect is at most this.
    fn offered(&self, name: &str, effect: Effect) -> Option<&'n ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name && tool.effect == effect)
    }

    pub fn can_look(&self) -> bool {
        ["Grep", "Glob", "List", "Read"]
            .iter()
            .any(|name| self.offered(name, Effect::Read).is_some())
    }

    pub fn can_search(&self) -> bool {
        self.offered("Grep", Effect::Read).is_some()
    }

    /// Whether work can be handed to other agents.
    pub fn can_delegate(&self) -> bool {
        self.offered("Task", Effect::Delegate).is_some()
    }

    fn ask(&mut self, tool: &'static str, effect: Effect, input: Value) -> Known<'n> {
        let known = self
            .exchanges
            .iter()
            .find(|known| known.call.name == tool && known.call.input == input);
        match known {
            Some(known) if known.failed => return Known::Failed(&known.text),
            Some(known) => return Known::Result(&known.text),
            None => {}
        }
        if self.offered(tool, effect).is_none() {
            return Known::Never;
        }
        let wanted = Wanted { tool, input };
        if self.closing {
            self.admit("I was told to stop before I had looked everywhere".to_owned());
            return Known::Never;
        }
        if !self.wanted.contains(&wanted) && self.wanted.len() < MAX_CALLS {
            self.wanted.push(wanted);
        }
        Known::NotYet
    }

    fn admit(&mut self, gap: String) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }

    /// The result of a read-only call; empty when it failed or cannot be made.
    fn look<T: Default>(
        &mut self,
        tool: &'static str,
        input: Value,
        read: impl Fn(&str) -> T,
    ) -> Option<T> {
        match self.ask(tool, Effect::Read, input) {
            Known::Result(text) => Some(read(text)),
            Known::Failed(text) => {
                let reason: String =
                    text.lines().next().unwrap_or_default().chars().take(160).collect();
                self.admit(format!("{tool} failed: {reason}"));
                Some(T::default())
            }
            Known::Never => Some(T::default()),
            Known::NotYet => None,
        }
    }

    /// Lines that match.
    pub fn lines(&mut self, search: &Search) -> Option<Hits> {
        self.look("Grep", search.input("content"), found::hits)
    }

    /// Files with lines that match.
    pub fn files(&mut self, search: &Search) -> Option<Names> {
        self.look("Grep", search.input("files_with_matches"), found::names)
    }

    /// How many lines match, by file.
    pub fn counts(&mut self, search: &Search) -> Option<Counts> {
        self.look("Grep", search.input("count"), found::counts)
    }

    /// Files whose path matches.
    pub fn glob(&mut self, pattern: &str) -> Option<Names> {
        self.look("Glob", json!({"pattern": pattern}), found::names)
    }

    /// Files with one of these endings, or all; every one of them if one search for each folder
    /// at the top suffices.
    pub fn all(&mut self, endings: &[String]) -> Option<Names> {
        let name = match endings {
            [] => "*".to_owned(),
            [one] => format!("*.{one}"),
            many => format!("*.{{{}}}", many.join(",")),
        };
        let found = self.glob(&format!("**/{name}"))?;
        if !found.cut {
            return Some(found);
        }
        let top = self.list("")?;
        let (folders, plain): (Vec<&String>, Vec<&String>) =
            top.list.iter().filter(|name| *name != ".git/").partition(|name| name.ends_with('/'));
        if top.cut || folders.len() > MAX_CALLS {
            return Some(found);
        }
        let below = together(folders.iter().map(|at| self.glob(&format!("{at}**/{name}"))))?;
        let fits = |name: &&&String| {
            endings.is_empty() || endings.iter().any(|ending| name.ends_with(&format!(".{ending}")))
        };
        let mut all =
            Names { list: plain.iter().filter(fits).copied().cloned().collect(), cut: false };
        for names in below {
            all.cut |= names.cut;
            all.list.extend(names.list);
        }
        Some(all)
    }

    /// What is in a folder.
    pub fn list(&mut self, path: &str) -> Option<Names> {
        let input = if path.is_empty() { json!({}) } else { json!({"path": path}) };
        self.look("List", input, found::names)
    }

    /// Lines of a file.
    pub fn read(&mut self, path: &str, first: usize, count: usize) -> Option<Page> {
        let input = json!({"file_path": path, "offset": first.max(1), "limit": count});
        self.look("Read", input, |text| found::page(path, text))
    }

    /// What git says about the history. `arguments` are words of this model alone or quoted by
    /// [`quote`]; nothing here can change the repository, start a program or reach the network.
    pub fn git(&mut self, arguments: &str, description: &str) -> Option<CommandOutput> {
        let command = format!("{GIT} {arguments}");
        let input = json!({"command": command, "timeout": 20_000, "description": description});
        Some(match self.ask("Bash", Effect::Execute, input) {
            Known::Result(text) => CommandOutput::Output(text.to_owned()),
            Known::Failed(text) => CommandOutput::Failed(text.to_owned()),
            Known::Never => CommandOutput::NoShell,
            Known::NotYet => return None,
        })
    }

    /// What another agent answers.
    pub fn delegate(
        &mut self,
        description: &str,
        prompt: &str,
        agent: &str,
    ) -> Option<Result<String, String>> {
        let input = json!({"description": description, "prompt": prompt, "subagent_type": agent});
        Some(match self.ask("Task", Effect::Delegate, input) {
            Known::Result(text) => Ok(text.to_owned()),
            Known::Failed(text) => Err(text.to_owned()),
            Known::Never => Err("there was no time for it".to_owned()),
            Known::NotYet => return None,
        })
    }
}

/// All of these results, once each is known. It asks for each, so that all missing calls go into
/// one reply.
pub(crate) fn together<T>(asked: impl IntoIterator<Item = Option<T>>) -> Option<Vec<T>> {
    let asked: Vec<Option<T>> = asked.into_iter().collect();
    asked.into_iter().collect()
}

/// A git command that starts no program from the settings of a repository: no pager, no file
/// monitor, no transport. Commands that check signatures switch that off.
const GIT: &str = "git -P -c core.fsmonitor=false -c protocol.allow=never";

/// `text` as one word of a shell command.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_one_word() {
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's; rm -rf $HOME `x`"), "'it'\\''s; rm -rf $HOME `x`'");
    }
}
