//! What is known, and what is to be found out next.
//!
//! A plan runs from its beginning at every call of the model and asks for what it needs. What the
//! transcript holds is answered; anything else is noted as wanted, and the plan is left with `?`
//! until the loop has called the tools. So a plan reads like a plain program, keeps no state, and
//! goes on after a crash. Tools are named here and nowhere else; none of them changes anything.

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
/// Bytes of results after which there is nothing more to look at.
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
    /// Not offered, or there is no more time: it will not be known.
    Never,
    /// Wanted now.
    NotYet,
}

/// What a command said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Output(String),
    Failed(String),
    /// No shell is offered.
    NoShell,
}

/// What is known, and what is wanted.
pub(crate) struct Notes<'n> {
    tools: &'n [ToolSpec],
    exchanges: &'n [Exchange<'n>],
    /// There is time for no more calls: what is not known now will not be.
    closing: bool,
    wanted: Vec<Wanted>,
    /// What an answer has to admit: calls that failed or were not made any more.
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

    /// No more calls: the plan is to end with what there is.
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

    /// What the answer has to admit.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// A tool of this name that does nothing worse than this.
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

    /// The result of a call that only looks; empty when it failed or cannot be made.
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
    pub fn git(&mut self, arguments: &str, description: &str) -> Option<Said> {
        let command = format!("{GIT} {arguments}");
        let input = json!({"command": command, "timeout": 20_000, "description": description});
        Some(match self.ask("Bash", Effect::Execute, input) {
            Known::Result(text) => Said::Output(text.to_owned()),
            Known::Failed(text) => Said::Failed(text.to_owned()),
            Known::Never => Said::NoShell,
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

/// All of these results, once each is known. Each is asked for, so that the calls for those that
/// are missing go into one reply.
pub(crate) fn together<T>(asked: impl IntoIterator<Item = Option<T>>) -> Option<Vec<T>> {
    let asked: Vec<Option<T>> = asked.into_iter().collect();
    asked.into_iter().collect()
}

/// Git such that a repository's own settings can start nothing: no pager, no file monitor, no
/// transport. What asks for signatures is switched off where it applies.
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
