//! Rules as users write them: `Read(src/**)`, `Bash(git diff:*)`, `mcp__files__*`, `Task(explore)`.

use super::command::CommandPattern;
use super::odd::odd;
use super::path;
use crate::error::quoted;
use crate::tool_facts::filter::parts;
use crate::tool_facts::{
    SKILL, SPAWN, TASK, TOOLS_PAGE, ToolFacts, about, built_in_tools, find, is_foreign,
};
use posse_protocol::{About, AgentName, Effect, near};
use std::fmt;

/// A rule about calls of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    text: String,
    pub(crate) tools: Tools,
    pub(crate) what: RuleTarget,
}

/// The tools that a rule covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tools {
    All,
    /// Tools whose names match this pattern with `*`.
    Like(String),
    One(String),
    /// Every tool that reads files.
    Reading,
    /// Every tool that changes files.
    Writing,
    /// Every tool that starts runs.
    Starting,
}

/// The calls that a rule covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleTarget {
    All,
    /// About files that match this pattern.
    Path(String),
    Command(CommandPattern),
    /// About this host, or with `*.` before it, its subdomains.
    Domain(String),
    /// About agents or skills with these names.
    Names(Vec<String>),
    /// About this text, or texts that begin with it.
    Text(TextPattern),
}

/// A rule that cannot be enforced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rule {}: {reason}", quoted(.rule))]
pub struct RuleError {
    /// The rule as written.
    pub rule: String,
    /// The reason, and what to write instead.
    pub reason: String,
}

/// A text in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextPattern {
    pub(crate) text: String,
    /// Any text may follow.
    pub(crate) is_open: bool,
}

/// The word in a rule about paths that covers every tool that reads files.
pub(crate) const READ: &str = "Read";
/// The word that covers every tool that changes files.
pub(crate) const EDIT: &str = "Edit";
/// Both words for changing files.
pub(crate) const WRITING: [&str; 2] = [EDIT, "Write"];
/// Tools that start runs.
pub(crate) const STARTING: [&str; 2] = [TASK, SPAWN];

/// The longest rule. A longer one is a mistake.
const LONGEST: usize = 2_000;

impl Rule {
    /// Parses a rule that allows calls of built-in tools, tools of MCP servers, and tools of other
    /// systems.
    ///
    /// # Errors
    /// When it cannot be enforced: there is no such tool, the tool takes no such specifier, or
    /// nothing in the specifier can be checked.
    pub fn parse(text: &str) -> Result<Rule, RuleError> {
        Rule::parse_among(text, &built_in_tools())
    }

    /// Parses a rule that allows, given the `tools` that exist.
    ///
    /// # Errors
    /// As [`Rule::parse`].
    pub fn parse_among(text: &str, tools: &[ToolFacts]) -> Result<Rule, RuleError> {
        let rule = Rule::parse_refusing(text, tools)?;
        rule.check_allows()?;
        Ok(rule)
    }

    /// Parses a rule that denies or asks, given the `tools` that exist. It need not name the
    /// program of a command: `Bash(* --force)`.
    ///
    /// # Errors
    /// As [`Rule::parse`].
    pub fn parse_refusing(text: &str, tools: &[ToolFacts]) -> Result<Rule, RuleError> {
        let known = |name: &str| {
            let foreign = || is_foreign(name).then(|| ToolFacts::new(name, Effect::Network));
            find(tools, name).map(|(tool, _)| tool.clone()).or_else(foreign).ok_or_else(|| {
                let names = tools.iter().map(|tool| tool.name.as_str());
                let suggestion = near::suggestion(name, names, TOOLS_PAGE);
                format!("there is no tool {}; {suggestion}", quoted(name))
            })
        };
        let rule = read(text, known)?;
        rule.check_path()?;
        rule.check_single()?;
        Ok(rule)
    }

    /// Refuses a path with the name of an argument before it: it would match no file.
    fn check_path(&self) -> Result<(), RuleError> {
        const NAMES: [&str; 4] = ["path:", "file:", "file_path:", "domain:"];
        match &self.what {
            RuleTarget::Path(path) if NAMES.iter().any(|name| path.starts_with(name)) => {
                Err(RuleError {
                    rule: self.text.clone(),
                    reason: "its parentheses hold a path alone, as in Read(src/**)".to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses several commands in one rule, `Bash(wget:*, curl:*)`: it would mean a program
    /// `wget:`, and match no call.
    fn check_single(&self) -> Result<(), RuleError> {
        if !matches!(self.what, RuleTarget::Command(_)) {
            return Ok(());
        }
        let inside = self.text.split_once('(').map_or("", |(_, rest)| rest);
        let inside = inside.strip_suffix(')').unwrap_or(inside).trim();
        let inside = inside.strip_suffix(":*").unwrap_or(inside);
        let first = inside.split_whitespace().next().unwrap_or_default();
        let is_several = [":*,", ":* ,", ":*;"].iter().any(|it| inside.contains(it))
            || first.contains(":*")
            || first.ends_with(',');
        if !is_several {
            return Ok(());
        }
        let tool = parts(&self.text).0;
        let all = inside.split([',', ';']).map(str::trim).filter(|part| !part.is_empty());
        let rules: Vec<String> = all
            .map(|part| format!("{tool}({}:*)", part.strip_suffix(":*").unwrap_or(part)))
            .collect();
        let reason = match rules.len() {
            0 | 1 => "`:*` stands at the end of a rule; write one rule for each command".to_owned(),
            _ => format!("it is more than one rule; write each by itself: {}", rules.join(" and ")),
        };
        Err(RuleError { rule: self.text.clone(), reason })
    }

    /// Refuses a rule that would allow calls of any program.
    pub(crate) fn check_allows(&self) -> Result<(), RuleError> {
        match &self.what {
            RuleTarget::Command(pattern) if pattern.program().is_none() => Err(RuleError {
                rule: self.text.clone(),
                reason: format!(
                    "to allow a command it must begin with the name of a program; for all \
                     commands, write {}",
                    parts(&self.text).0
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Parses a rule that was checked when it was stored. A tool that no longer exists cannot be
    /// called, and a rule about some of its calls matches none.
    pub(crate) fn stored(text: &str, tools: &[ToolFacts]) -> Result<Rule, RuleError> {
        let found = |name: &str| match find(tools, name) {
            Some((tool, _)) => Some(tool.clone()),
            None => find(&built_in_tools(), name).map(|(tool, _)| tool.clone()),
        };
        let known =
            |name: &str| Ok(found(name).unwrap_or_else(|| ToolFacts::new(name, Effect::Network)));
        let (name, specifier) = parts(text);
        match read(text, known) {
            Err(_) if specifier.is_some() && found(name).is_none() => Ok(Rule {
                text: text.to_owned(),
                tools: Tools::One(name.to_owned()),
                what: RuleTarget::Names(Vec::new()),
            }),
            rule => rule,
        }
    }

    /// Returns the rule as written, without spaces around it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True when it has more than the name of a tool.
    pub fn is_specific(&self) -> bool {
        self.what != RuleTarget::All
    }

    /// True when it covers the tool `name`.
    #[cfg(test)]
    pub(crate) fn is_about(&self, name: &str) -> bool {
        match &self.tools {
            Tools::All => true,
            Tools::Like(pattern) => crate::tool_facts::filter::matches(pattern, name),
            Tools::One(known) => known == name,
            Tools::Starting => STARTING.contains(&name),
            group => built_in_tools().iter().any(|tool| {
                let reads = *group == Tools::Reading;
                tool.name == name && if reads { tool.reads_files() } else { tool.writes_files() }
            }),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn read(text: &str, known: impl Fn(&str) -> Result<ToolFacts, String>) -> Result<Rule, RuleError> {
    let text = text.trim();
    let error = |reason: String| RuleError { rule: text.to_owned(), reason };
    let wrong = |reason: &str| error(reason.to_owned());
    if text.len() > LONGEST {
        return Err(RuleError {
            rule: text.chars().take(60).collect(),
            reason: format!("it has more than {LONGEST} bytes; write several shorter ones"),
        });
    }
    if let Some(char) = odd(text).or_else(|| text.chars().find(|char| *char == '\n')) {
        let code = u32::from(char);
        return Err(error(format!(
            "it has a character that is not shown (U+{code:04X}); type it again"
        )));
    }
    if text == "*" {
        return Ok(Rule { text: text.to_owned(), tools: Tools::All, what: RuleTarget::All });
    }
    let (name, specifier) = match text.split_once('(') {
        None if text.contains(')') => return Err(wrong("a parenthesis is not opened")),
        None => (text, None),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(specifier) => (name, Some(specifier)),
            None => return Err(wrong("it must end in a parenthesis, as in Bash(git diff:*)")),
        },
    };
    if name.is_empty() || !name.chars().all(|it| it.is_ascii_alphanumeric() || "_-*.:".contains(it))
    {
        return Err(wrong("it must begin with the name of a tool, as in Read(src/**)"));
    }
    let done = |tools: Tools, what: RuleTarget| Rule { text: text.to_owned(), tools, what };
    if let Some(rest) = name.strip_prefix("mcp__") {
        return match specifier {
            Some(_) => {
                Err(wrong("tools of MCP servers take nothing in parentheses; name the tool"))
            }
            None if rest.is_empty() => Err(wrong("it names no server; write mcp__server__tool")),
            None if name.contains('*') => Ok(done(Tools::Like(name.to_owned()), RuleTarget::All)),
            None if rest.contains("__") => Ok(done(Tools::One(name.to_owned()), RuleTarget::All)),
            // The name of a server means all its tools.
            None => Ok(done(Tools::Like(format!("{name}__*")), RuleTarget::All)),
        };
    }
    if name.contains('*') {
        return match specifier {
            None if name.chars().any(|char| char != '*') => {
                Ok(done(Tools::Like(name.to_owned()), RuleTarget::All))
            }
            None => Err(wrong("for all tools, write one `*`")),
            Some(_) => Err(wrong("a name with `*` takes nothing in parentheses; name the tool")),
        };
    }
    let tool = known(name).map_err(error)?;
    let one = || Tools::One(tool.name.clone());
    let every_call = || match tool.name.as_str() {
        // A rule about `Task` covers every way to start subagents.
        TASK => done(Tools::Starting, RuleTarget::All),
        // A rule about `Edit` covers every tool that edits.
        EDIT => done(Tools::Writing, RuleTarget::All),
        _ => done(one(), RuleTarget::All),
    };
    let Some(specifier) = specifier else { return Ok(every_call()) };
    let specifier = specifier.trim();
    if specifier.is_empty() {
        return Err(wrong("its parentheses are empty; leave them out for every call"));
    }
    // Some authors write `Bash(*)` for every call.
    if specifier == "*" && !tool.uses_paths() {
        return Ok(every_call());
    }
    let about = about(&tool);
    match (tool.name.as_str(), about.as_deref()) {
        (TASK | SPAWN, _) => {
            let mut names = Vec::new();
            for name in specifier.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                let parsed = name.parse::<AgentName>().map_err(|why| error(why.to_string()))?;
                names.push(parsed.to_string());
            }
            match names.is_empty() {
                true => Err(wrong("it names no agent; write the names of agents")),
                false => Ok(done(Tools::Starting, RuleTarget::Names(names))),
            }
        }
        (SKILL, _) => {
            // `Skill(name *)` and `Skill(name:*)` allow any arguments, as every rule about skills
            // does.
            let name = specifier.strip_suffix(":*").or(specifier.strip_suffix(" *"));
            let name = name.unwrap_or(specifier).trim().trim_start_matches('/');
            let fine = |it: char| it.is_ascii_alphanumeric() || "-_:".contains(it);
            match !name.is_empty() && name.chars().all(fine) {
                true => Ok(done(one(), RuleTarget::Names(vec![name.to_owned()]))),
                false => Err(wrong("it must name one skill, as in Skill(pdf)")),
            }
        }
        (name, Some(about)) if about.is_path() => {
            path::check(specifier).map_err(wrong)?;
            let tools = match name {
                READ => Tools::Reading,
                name if WRITING.contains(&name) => Tools::Writing,
                _ => one(),
            };
            Ok(done(tools, RuleTarget::Path(specifier.to_owned())))
        }
        (_, Some(About::Command(_))) => {
            let pattern = CommandPattern::parse(specifier).map_err(wrong)?;
            Ok(done(one(), RuleTarget::Command(pattern)))
        }
        (_, Some(About::Text(_))) => {
            let begins = specifier.strip_suffix(":*");
            let text = begins.unwrap_or(specifier).trim().to_owned();
            match text.is_empty() {
                true => Err(wrong("it names no text; leave the parentheses out for every call")),
                false => {
                    let is_open = begins.is_some();
                    Ok(done(one(), RuleTarget::Text(TextPattern { text, is_open })))
                }
            }
        }
        (name, Some(About::Address(_))) => {
            let host = specifier.strip_prefix("domain:").unwrap_or_default();
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            let plain = host.strip_prefix("*.").unwrap_or(&host);
            let label = |part: &str| {
                !part.is_empty() && part.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
            };
            match plain.split('.').all(label) {
                true => Ok(done(one(), RuleTarget::Domain(host))),
                false => {
                    let reason = format!("it must name a host, as in {name}(domain:example.org)");
                    Err(error(reason))
                }
            }
        }
        (tool, _) => Err(error(format!(
            "`{tool}` takes nothing in parentheses that could be enforced; write `{tool}`"
        ))),
    }
}

/// True when calls with the effect `effect` need no rule: they change nothing, or Posse checks what
/// they start separately.
pub(crate) fn is_harmless(effect: Effect) -> bool {
    matches!(effect, Effect::Read | Effect::Delegate)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_the_known_syntax_are_read() {
        for text in [
            "*",
            "Bash",
            "bash",
            "Read",
            "Read(src/**)",
            "Edit(docs/*.md)",
            "Write(//tmp/x)",
            "Bash(git diff:*)",
            "Bash(npm run test *)",
            "Bash(make check)",
            "Bash(*)",
            "Bash(git log --format='%h %s':*)",
            "WebFetch(domain:example.org)",
            "WebFetch(domain:*.example.org)",
            "mcp__server__tool",
            "mcp__server__*",
            "mcp__server",
            "Task(explore,plan)",
            "Task",
            "Agent(explore)",
            "Skill(name)",
            "Skill(office:pdf)",
            "spawn_subagent",
            "TodoWrite",
            "WebSearch",
            "Grep(src/**)",
            "List(docs/)",
            "Read(~/x)",
            "Bash([[:*)",
            "Bash(npm run test:* --watch)",
            "Bash(git log --format=%h,%s:*)",
            "Bash(.:*)",
            "Bash(/proc/self/root:*)",
        ] {
            let rule = Rule::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(rule.text(), text);
        }
        let rule = Rule::parse("mcp__files").unwrap();
        assert!(rule.is_about("mcp__files__read") && !rule.is_about("mcp__files2__read"));
        assert!(Rule::parse("Edit(x/**)").unwrap().is_about("Write"));
        assert!(Rule::parse("Read(x/**)").unwrap().is_about("Grep"));
        assert!(!Rule::parse("Read").unwrap().is_about("Grep"));
    }

    #[test]
    fn a_rule_that_cannot_be_enforced_is_an_error_that_names_it_and_says_what_to_write() {
        for (text, says) in [
            ("", "name of a tool"),
            ("Raed", "did you mean `Read`?"),
            ("Quux", "there is no tool `Quux`"),
            ("Read(src/**", "must end in a parenthesis"),
            ("Read)", "not opened"),
            ("Read(src/**) x", "must end in a parenthesis"),
            ("Read()", "leave them out"),
            ("TodoWrite(x)", "write `TodoWrite`"),
            ("WebSearch(x)", "write `WebSearch`"),
            ("mcp__files__read(x)", "name the tool"),
            ("mcp__", "names no server"),
            ("Bash(git diff && rm x)", "one simple command"),
            ("Bash(echo $HOME)", "one simple command"),
            ("Bash(* --version)", "name of a program"),
            ("Bash(:*)", "names no command"),
            ("Bash(wget:*, curl:*)", "write each by itself: Bash(wget:*) and Bash(curl:*)"),
            ("Bash(wget:* , curl *)", "write each by itself"),
            ("Bash(wget, curl)", "write each by itself"),
            ("Bash(wget:* curl:*)", "one rule for each command"),
            ("Bash(gіt diff:*)", "look like others"),
            ("Bash(git\u{200b} diff:*)", "U+200B"),
            ("Bash(git\u{202e}diff)", "U+202E"),
            ("Bash(git\rdiff)", "U+000D"),
            ("Read(/etc/passwd)", "//etc/hosts"),
            ("Read(path:x)", "a path alone"),
            ("Edit(file:x)", "a path alone"),
            ("Read(!x)", "turned around"),
            ("Read({a,b})", "braces"),
            ("Task(../x)", "name"),
            ("Task(,)", "names no agent"),
            ("Skill(a b)", "one skill"),
            ("WebFetch(example.org)", "domain:example.org"),
            ("WebFetch(domain:exam ple)", "domain:example.org"),
            ("WebFetch(domain:*.*.org)", "domain:example.org"),
            ("**", "one `*`"),
            ("Вash", "name of a tool"),
        ] {
            let error = Rule::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert!(error.starts_with("invalid rule "), "{error}");
        }
    }
}
