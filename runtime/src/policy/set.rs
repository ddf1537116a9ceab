//! Rules of one kind, compiled so that a call is checked only against the few that can match it.

use super::command::{CommandPattern, Fit};
use super::path::{self, Case, PathPattern, Roots, Worktree, below};
use super::program::{base, other_program};
use super::rule::{READ, Rule, RuleError, RuleTarget, STARTING, TextPattern, Tools, WRITING};
use super::shell::Word;
use super::subject::{Extent, Subject, Target};
use crate::tool_facts::{ToolFacts, filter};
use posse_protocol::Effect;
use std::collections::{BTreeSet, HashMap};

/// Rules, by their tools.
#[derive(Default)]
pub(crate) struct Rules {
    by_tool: HashMap<String, OfTool>,
    /// Rules about commands, whichever tool runs them.
    commands: Option<Box<OfTool>>,
    /// Rules for tools with names like a pattern: the pattern and the rule.
    like: Vec<(String, String)>,
    /// The rule for all tools.
    all: Option<String>,
    /// All rules, as written.
    texts: Vec<String>,
}

/// Rules about one tool, as written.
#[derive(Default)]
struct OfTool {
    /// A rule for every call.
    every: Option<String>,
    /// Rules about paths, by the folder that they are relative to.
    paths: Vec<(String, Vec<(PathPattern, String)>)>,
    /// How they compare paths.
    case: Option<Case>,
    /// The worktree that contains the workspace.
    worktree: Option<Worktree>,
    /// Folders outside the workspace that some are relative to, as written.
    elsewhere: Vec<String>,
    /// Rules about commands, by the name of the program.
    commands: HashMap<String, Vec<(CommandPattern, String)>>,
    /// Rules that name no program: they can refuse, but never allow.
    any_program: Vec<(CommandPattern, String)>,
    /// A rule about commands, if there is one, for commands that are entirely unknown.
    some_command: Option<String>,
    names: HashMap<String, String>,
    hosts: Vec<(String, String)>,
    texts: Vec<(TextPattern, String)>,
}

/// The purpose of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// They deny or ask.
    Refuse,
    /// A call must match one of them, whatever else allows it.
    Narrow,
    /// They allow.
    Allow,
}

impl Purpose {
    fn case(self) -> Case {
        match self {
            Purpose::Refuse => Case::Folded,
            Purpose::Narrow | Purpose::Allow => Case::Matters,
        }
    }

    /// Returns the tools of `all` that a rule about reading or changing files covers. A tool that may do more than that
    /// is refused and narrowed by such a rule, but never allowed.
    fn group(self, all: &[ToolFacts], of: Effect) -> Vec<String> {
        let means = |tool: &&ToolFacts| match (self, of) {
            (Purpose::Allow, of) => tool.uses_paths() && tool.effect == of,
            (_, Effect::Write) => tool.writes_files(),
            _ => tool.reads_files(),
        };
        let words: &[&str] = if of == Effect::Write { &WRITING } else { &[READ] };
        let tools = all.iter().filter(means).map(|tool| tool.name.as_str());
        let tools = tools.filter(|tool| !words.contains(tool));
        words.iter().copied().chain(tools).map(str::to_owned).collect()
    }
}

/// Whether a rule matches a call, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleMatch {
    No,
    By(String),
    /// That is unknown.
    Maybe(PossibleMatch),
}

/// A rule that may match a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PossibleMatch {
    pub(crate) rule: String,
    pub(crate) why: &'static str,
    /// The simple command that it may match, without wrappers; empty if it is about the whole call.
    pub(crate) words: Vec<Word>,
}

impl RuleMatch {
    fn maybe(rule: &str, why: &'static str, words: &[Word]) -> RuleMatch {
        RuleMatch::Maybe(PossibleMatch { rule: rule.to_owned(), why, words: words.to_vec() })
    }
}

/// A name that no file has, for testing whether a pattern matches the content of a folder.
const SOMETHING: &str = "\u{1}";

impl Rules {
    /// Compiles `texts`.
    pub(crate) fn compile<'t>(
        texts: impl IntoIterator<Item = &'t String>,
        tools: &[ToolFacts],
        roots: Roots<'_>,
        purpose: Purpose,
    ) -> Result<Self, RuleError> {
        let mut rules = Rules::default();
        for text in texts {
            let rule = Rule::stored(text, tools)?;
            if purpose != Purpose::Refuse {
                rule.check_allows()?;
            }
            rules.add(rule, tools, roots, purpose)?;
        }
        Ok(rules)
    }

    /// Compiles rules that allow commands, whichever tool runs them. An invalid one allows nothing.
    pub(crate) fn of_commands(patterns: impl Iterator<Item = String>) -> Self {
        let mut rules = Rules::default();
        for text in patterns {
            if let Ok(pattern) = CommandPattern::parse(&text) {
                rules.texts.push(text.clone());
                rules.commands.get_or_insert_default().add_command(pattern, text);
            }
        }
        rules
    }

    fn add(
        &mut self,
        rule: Rule,
        all: &[ToolFacts],
        roots: Roots<'_>,
        purpose: Purpose,
    ) -> Result<(), RuleError> {
        let case = purpose.case();
        let text = rule.text().to_owned();
        self.texts.push(text.clone());
        let tools: Vec<String> = match &rule.tools {
            Tools::All => {
                self.all = Some(text);
                return Ok(());
            }
            Tools::Like(pattern) => {
                self.like.push((pattern.clone(), text));
                return Ok(());
            }
            Tools::One(name) => vec![name.clone()],
            Tools::Reading => purpose.group(all, Effect::Read),
            Tools::Writing => purpose.group(all, Effect::Write),
            Tools::Starting => STARTING.map(str::to_owned).to_vec(),
        };
        for tool in tools {
            let of_tool = self.by_tool.entry(tool).or_default();
            let text = text.clone();
            match &rule.what {
                RuleTarget::All => of_tool.every = Some(text),
                RuleTarget::Path(pattern) => {
                    of_tool.elsewhere.extend(path::folder_elsewhere(pattern, roots));
                    of_tool.worktree = roots.worktree.cloned();
                    // A run in a worktree also sees the original checkout.
                    let origin = roots.worktree.map(|worktree| worktree.origin.as_str());
                    let workspaces = [roots.workspace].into_iter().chain(origin);
                    let mut all: Vec<(String, &str)> =
                        workspaces.map(|workspace| (pattern.clone(), workspace)).collect();
                    if case == Case::Folded {
                        // A rule that refuses a link also refuses its target.
                        let behind = all.iter().filter_map(|(pattern, workspace)| {
                            path::behind_links(pattern, Roots { workspace, ..roots })
                        });
                        for pattern in behind.collect::<Vec<String>>() {
                            of_tool.elsewhere.extend(path::folder_elsewhere(&pattern, roots));
                            all.push((pattern, roots.workspace));
                        }
                    }
                    for (pattern, workspace) in all {
                        let roots = Roots { workspace, ..roots };
                        let compiled =
                            PathPattern::parse(&pattern, roots, case).map_err(|reason| {
                                RuleError { rule: text.clone(), reason: reason.to_owned() }
                            })?;
                        of_tool.case = Some(case);
                        let base = compiled.base().to_owned();
                        let rule = (compiled, text.clone());
                        match of_tool.paths.iter_mut().find(|(known, _)| *known == base) {
                            Some((_, rules)) => rules.push(rule),
                            None => of_tool.paths.push((base, vec![rule])),
                        }
                    }
                }
                RuleTarget::Command(pattern) => of_tool.add_command(pattern.clone(), text),
                RuleTarget::Names(names) => {
                    let names = names.iter().map(|name| (name.to_lowercase(), text.clone()));
                    of_tool.names.extend(names);
                }
                RuleTarget::Domain(host) => of_tool.hosts.push((host.clone(), text)),
                RuleTarget::Text(pattern) => of_tool.texts.push((pattern.clone(), text)),
            }
        }
        Ok(())
    }

    /// Returns all rules, as written.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// True when a rule applies to some or all calls of `tool`.
    pub(crate) fn are_about(&self, tool: &str) -> bool {
        self.by_tool.contains_key(tool) || self.general(tool).is_some()
    }

    /// Returns the rule for every call of `tool`, if there is one.
    fn general(&self, tool: &str) -> Option<&String> {
        let every = self.by_tool.get(tool).and_then(|it| it.every.as_ref());
        every.or(self.all.as_ref()).or_else(|| {
            let like = self.like.iter().find(|(pattern, _)| filter::matches(pattern, tool));
            like.map(|(_, text)| text)
        })
    }

    /// True when a rule is about paths.
    pub(crate) fn have_paths(&self) -> bool {
        self.by_tool.values().any(|rules| !rules.paths.is_empty())
    }

    /// Returns the tools with rules about paths.
    pub(crate) fn tools_with_paths(&self) -> impl Iterator<Item = &str> {
        let with_paths = self.by_tool.iter().filter(|(_, rules)| !rules.paths.is_empty());
        with_paths.map(|(tool, _)| tool.as_str())
    }

    /// True when a rule is about paths for `tool`.
    pub(crate) fn have_paths_for(&self, tool: &str) -> bool {
        self.by_tool.get(tool).is_some_and(|rules| !rules.paths.is_empty())
    }

    /// Returns the folders outside the workspace that rules about paths for `tool` are relative to.
    pub(crate) fn folders_elsewhere(&self, tool: &str) -> impl Iterator<Item = &str> {
        let rules = self.by_tool.get(tool).into_iter();
        let mut folders: Vec<&str> =
            rules.flat_map(|it| &it.elsewhere).map(String::as_str).collect();
        folders.sort_unstable();
        folders.dedup();
        folders.into_iter()
    }

    /// Returns the rule about paths that may match this one.
    pub(crate) fn path_rule(&self, tool: &str, target: &Target) -> Option<&String> {
        self.by_tool.get(tool)?.path(target, Side::Refuse)
    }

    /// True when a rule about paths may match something in `folder` for `tool`.
    pub(crate) fn reach_into(&self, tool: &str, folder: &Target) -> bool {
        let Some(rules) = self.by_tool.get(tool) else { return false };
        let reach = |path: &str| {
            rules.paths.iter().any(|(base, patterns)| match below(path, base) {
                Some(names) => patterns.iter().any(|(pattern, _)| pattern.reaches_into(&names)),
                // Their base may be inside the folder.
                None => below(base, path).is_some(),
            })
        };
        rules.names_of(folder).iter().any(|path| reach(path))
    }

    /// True when a rule for `tool` may match something below `link` that it does not match below its target `real`.
    pub(crate) fn mean_more_below(&self, tool: &str, link: &Target, real: &Target) -> bool {
        let Some(rules) = self.by_tool.get(tool) else { return false };
        let (link, real) = (rules.names_of(link), rules.names_of(real));
        rules.paths.iter().any(|(base, patterns)| {
            patterns.iter().any(|(pattern, _)| {
                let places = |paths: &[String]| -> BTreeSet<usize> {
                    let names = paths.iter().filter_map(|path| below(path, base));
                    names.flat_map(|names| pattern.places(&names)).collect()
                };
                !places(&link).is_subset(&places(&real))
            })
        })
    }

    /// Returns the rule that certainly matches this path.
    pub(crate) fn allowed_path(&self, tool: &str, target: &Target) -> Option<&String> {
        let general = self.general(tool);
        general.or_else(|| self.by_tool.get(tool)?.path(target, Side::Allow))
    }

    /// Returns whether a rule may match the call of `tool` about `subject`; in doubt, it may. `settled` holds the rules
    /// that the user allowed. If one of them spells out a command that can run any program, such as `python3 -c`, then
    /// no rule here is checked against what that command may run.
    pub(crate) fn may_mean(&self, tool: &str, subject: &Subject, settled: &[&Rules]) -> RuleMatch {
        if let Some(rule) = self.general(tool) {
            return RuleMatch::By(rule.clone());
        }
        let Some(rules) = self.by_tool.get(tool) else { return RuleMatch::No };
        match subject {
            Subject::Path(target) => match rules.path(target, Side::Refuse) {
                Some(rule) => RuleMatch::By(rule.clone()),
                None => RuleMatch::No,
            },
            Subject::Command(command) => {
                let Some(some) = &rules.some_command else { return RuleMatch::No };
                let whole = command.unclear().map(|why| RuleMatch::maybe(some, why, &[]));
                let mut maybe = whole.unwrap_or(RuleMatch::No);
                for part in command.parts() {
                    let is_settled = settled.iter().any(|rules| rules.settle(tool, &part.words));
                    let doubt = |why: &'static str| RuleMatch::maybe(some, why, &part.words);
                    if let Some(why) = part.unclear.filter(|_| !is_settled) {
                        maybe = doubt(why);
                    }
                    for words in &part.reach {
                        let Some(name) = words.first().and_then(Word::program) else {
                            if !is_settled {
                                maybe = doubt("it is not clear which program it runs");
                            }
                            continue;
                        };
                        let names = [Some(base(name)), other_program(base(name))].into_iter();
                        let of_program =
                            names.flatten().filter_map(|name| rules.commands.get(name)).flatten();
                        for (pattern, rule) in of_program.chain(&rules.any_program) {
                            match pattern.may_mean(words) {
                                Fit::Yes => return RuleMatch::By(rule.clone()),
                                Fit::Maybe(why) => maybe = RuleMatch::maybe(rule, why, &part.words),
                                Fit::No => {}
                            }
                        }
                    }
                }
                maybe
            }
            Subject::Name(Some(name)) => match rules.named(name) {
                Some(rule) => RuleMatch::By(rule.clone()),
                None => RuleMatch::No,
            },
            Subject::Name(None) => match rules.names.values().next() {
                Some(rule) => RuleMatch::maybe(rule, "the call does not say whom it means", &[]),
                None => RuleMatch::No,
            },
            Subject::Host(Some(host)) => match rules.host(host) {
                Some(rule) => RuleMatch::By(rule.clone()),
                None => RuleMatch::No,
            },
            Subject::Host(None) => match rules.hosts.first() {
                Some((_, rule)) => RuleMatch::maybe(rule, "its address is not understood", &[]),
                None => RuleMatch::No,
            },
            Subject::Text(Some(said)) => match rules.text(said, Side::Refuse) {
                Some(rule) => RuleMatch::By(rule.clone()),
                None => RuleMatch::No,
            },
            Subject::Text(None) => match rules.texts.first() {
                Some((_, rule)) => {
                    RuleMatch::maybe(rule, "the call does not say what it means", &[])
                }
                None => RuleMatch::No,
            },
            Subject::Other => RuleMatch::No,
        }
    }

    /// True when a rule with a specifier accepts whatever the command `words` may run.
    fn settle(&self, tool: &str, words: &[Word]) -> bool {
        let name = words.first().and_then(Word::exact).unwrap_or_default();
        let patterns = self.by_tool.get(tool).and_then(|rules| rules.commands.get(base(name)));
        patterns.into_iter().flatten().any(|(pattern, _)| pattern.settles(words))
    }

    /// Returns the rule that certainly matches the call of `tool` about `subject`. If there is none but one nearly
    /// matches, the error says why it does not.
    pub(crate) fn allow(&self, tool: &str, subject: &Subject) -> Result<Option<String>, String> {
        Rules::allow_any(&[self], tool, subject)
    }

    /// Does the same for several sets: different sets may allow the parts of a command.
    pub(crate) fn allow_any(
        sets: &[&Rules],
        tool: &str,
        subject: &Subject,
    ) -> Result<Option<String>, String> {
        if let Some(rule) = sets.iter().find_map(|set| set.general(tool)) {
            return Ok(Some(rule.clone()));
        }
        let of_tool = sets.iter().map(|set| set.by_tool.get(tool).or(set.commands.as_deref()));
        let rules: Vec<&OfTool> = of_tool.flatten().collect();
        if rules.is_empty() {
            return Ok(None);
        }
        let first = |find: &dyn Fn(&OfTool) -> Option<String>| rules.iter().find_map(|it| find(it));
        match subject {
            Subject::Path(target) => Ok(first(&|it| it.path(target, Side::Allow).cloned())),
            Subject::Name(Some(name)) => Ok(first(&|it| it.named(name).cloned())),
            Subject::Host(Some(host)) => Ok(first(&|it| it.host(host).cloned())),
            Subject::Text(Some(said)) => Ok(first(&|it| it.text(said, Side::Allow).cloned())),
            Subject::Command(command) if rules.iter().any(|it| it.some_command.is_some()) => {
                let mut by: Vec<String> = Vec::new();
                let allowed = command.is_allowed(|words| {
                    let name = words.first().and_then(Word::exact).unwrap_or_default();
                    let patterns = rules.iter().filter_map(|it| it.commands.get(base(name)));
                    let mut near = None;
                    for (pattern, rule) in patterns.flatten() {
                        match pattern.allows(words) {
                            Ok(true) => {
                                if !by.contains(rule) {
                                    by.push(rule.clone());
                                }
                                return Ok(true);
                            }
                            Ok(false) => {}
                            Err(why) => near = Some(format!("`{rule}` does not allow it: {why}")),
                        }
                    }
                    near.map_or(Ok(false), Err)
                })?;
                Ok(allowed.then(|| by.join(" and ")))
            }
            Subject::Command(_) | Subject::Other => Ok(None),
            Subject::Name(None) | Subject::Host(None) | Subject::Text(None) => Ok(None),
        }
    }
}

/// The purpose of a check of paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Refuse,
    Allow,
}

impl OfTool {
    fn add_command(&mut self, pattern: CommandPattern, text: String) {
        self.some_command.get_or_insert_with(|| text.clone());
        let program = pattern.program().map(|program| base(program).to_owned());
        match program {
            Some(program) => self.commands.entry(program).or_default().push((pattern, text)),
            None => self.any_program.push((pattern, text)),
        }
    }

    /// Returns the paths by which rules know `target`: its own, and those of its originals.
    fn names_of(&self, target: &Target) -> Vec<String> {
        let Some(case) = self.case else { return Vec::new() };
        let copied = self.worktree.iter().flat_map(|worktree| worktree.copied_from(&target.path));
        let own = match case {
            Case::Matters => target.path.clone(),
            Case::Folded => target.folded.clone(),
        };
        [own].into_iter().chain(copied.map(|path| path::fold(&path, case))).collect()
    }

    fn path(&self, target: &Target, side: Side) -> Option<&String> {
        let names = self.names_of(target);
        names.iter().find_map(|path| self.path_at(path, target.extent, side))
    }

    fn path_at(&self, path: &str, extent: Extent, side: Side) -> Option<&String> {
        self.paths.iter().find_map(|(base, rules)| {
            let here = below(path, base)?;
            let inside: Vec<&str> = here.iter().copied().chain([SOMETHING]).collect();
            let deeper: Vec<&str> = inside.iter().copied().chain([SOMETHING]).collect();
            let is_meant = |pattern: &PathPattern| match (extent, side) {
                (Extent::File, _) => pattern.means(&here),
                (_, Side::Refuse) => pattern.means(&here) || pattern.means(&inside),
                (Extent::All, Side::Allow) => pattern.means(&inside) && pattern.means(&deeper),
                (Extent::Names, Side::Allow) => pattern.means(&inside),
            };
            rules.iter().find(|(pattern, _)| is_meant(pattern)).map(|(_, text)| text)
        })
    }

    fn named(&self, name: &str) -> Option<&String> {
        let name = name.to_lowercase();
        // A skill of a plugin also has its name without the plugin.
        let own = name.split_once(':').map(|(_, own)| own);
        self.names.get(&name).or_else(|| own.and_then(|own| self.names.get(own)))
    }

    /// Returns the rule that matches the text `said`. Rules that refuse ignore case.
    fn text(&self, said: &str, side: Side) -> Option<&String> {
        let folded = |text: &str| match side {
            Side::Refuse => text.trim().to_lowercase(),
            Side::Allow => text.to_owned(),
        };
        let said = folded(said);
        let means = |TextPattern { text, is_open }: &TextPattern| match is_open {
            true => said.starts_with(&folded(text)),
            false => said == folded(text),
        };
        self.texts.iter().find(|(pattern, _)| means(pattern)).map(|(_, rule)| rule)
    }

    fn host(&self, host: &str) -> Option<&String> {
        let fits = |pattern: &str| match pattern.strip_prefix("*.") {
            Some(above) => host.strip_suffix(above).is_some_and(|rest| rest.ends_with('.')),
            None => pattern == host,
        };
        self.hosts.iter().find(|(pattern, _)| fits(pattern)).map(|(_, text)| text)
    }
}
