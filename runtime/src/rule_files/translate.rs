//! Translates rules of Claude Code into rules of Posse. The languages are nearly the same. If a
//! rule has no exact equivalent, the translation is stricter, never laxer.

use crate::policy::{
    EDIT, READ, Rule, RuleError, WRITING, escaped, names_of_machines, without_detours,
};
use crate::tool_facts::{SKILL, SPAWN, TASK, ToolFacts, find, is_foreign};
use std::path::Path;

/// The list that a rule is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Deny,
    Ask,
}

/// Where a rule is written, and the workspace it applies to.
pub(super) struct RuleOrigin<'p> {
    /// The folder that relative paths start from; `None` for the settings of the user, whose paths
    /// start from the workspace.
    pub(super) folder: Option<&'p Path>,
    pub(super) workspace: &'p Path,
}

/// The translation of a rule. A rule about a tool that Posse lacks becomes nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) deny: Vec<String>,
    pub(super) ask: Vec<String>,
    /// Set if the rule is applied in another way than written.
    pub(super) warning: Option<String>,
}

/// Tools of Claude Code, and the tools of Posse that do the same.
const SAME: [(&str, &str); 2] = [("NotebookEdit", EDIT), ("NotebookRead", READ)];

/// Translates `rule`, which is in `list` of a settings file at `place`.
pub(super) fn translate(
    rule: &str,
    list: List,
    place: &RuleOrigin<'_>,
    tools: &[ToolFacts],
) -> Result<Translated, RuleError> {
    let rule = rule.trim();
    let check = |text: &str| Rule::parse_refusing(text, tools).map(drop);
    let (name, specifier) = match rule.split_once('(') {
        None => (rule, None),
        // The parser of rules reports invalid parentheses.
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(specifier) => (name, Some(specifier.trim())),
            None => return check(rule).map(|()| Translated::default()),
        },
    };
    if specifier.is_some_and(holds_another_rule) || name.contains([' ', ',', ';', '\t']) {
        return Err(RuleError {
            rule: rule.to_owned(),
            reason: "it is more than one rule; write each as a text of its own".to_owned(),
        });
    }
    let is_path = specifier.is_none() && rule.contains(['/', '.', '~', '\\', '[', ':']);
    if is_path && !name.starts_with("mcp__") {
        return Err(unknown(rule, tools));
    }
    if name.starts_with("mcp__") || name.contains('*') {
        // Posse does not know every form of these rules, and has no such tool.
        return Ok(match check(rule) {
            Ok(()) => in_list(list, vec![rule.to_owned()]),
            Err(_) if name.starts_with("mcp__") => Translated::default(),
            Err(error) => return Err(error),
        });
    }
    let same = SAME.iter().find(|(other, _)| *other == name && specifier.is_some());
    let name = same.map_or(name, |(_, ours)| ours);
    let Some((tool, _)) = find(tools, name) else {
        return match is_foreign(name) {
            // No agent can call a tool that Posse lacks.
            true => Ok(Translated::default()),
            false => Err(unknown(rule, tools)),
        };
    };
    let facts = tool;
    let tool = facts.name.as_str();
    let takes_paths = facts.uses_paths();
    let specifier = match specifier {
        // All paths: unlike the bare tool, this also applies to searches and commands.
        Some("" | "*") if takes_paths => Some("**"),
        Some("" | "*") => None,
        specifier => specifier,
    };
    let Some(specifier) = specifier else {
        // In Claude Code, `Edit` means every tool that changes files.
        let is_other = |it: &&ToolFacts| tool == EDIT && it.writes_files() && it.name != tool;
        let others = tools.iter().filter(is_other).map(|it| it.name.clone());
        return Ok(in_list(list, [tool.to_owned()].into_iter().chain(others).collect()));
    };
    let texts = match tool {
        _ if takes_paths => {
            let ours = if WRITING.contains(&tool) { EDIT } else { tool };
            let paths = paths(unquoted(specifier, rule)?, place);
            let mut texts: Vec<String> =
                paths.iter().map(|path| format!("{ours}({path})")).collect();
            // In Claude Code, a denial to read a file also denies changing it.
            if tool == READ && list == List::Deny {
                texts.extend(paths.iter().map(|path| format!("{EDIT}({path})")));
            }
            texts
        }
        _ if facts.runs_commands() => match check(rule) {
            Ok(()) => vec![rule.to_owned()],
            Err(error) => return widened(rule, tool, specifier, tools).ok_or(error),
        },
        _ => {
            let texts = vec![rule.to_owned()];
            return Ok(match check(rule) {
                Ok(()) => in_list(list, texts),
                // No agent or skill of Posse can have such a name.
                Err(_) if [TASK, SKILL, SPAWN].contains(&tool) => Translated::default(),
                Err(_) => in_list(list, vec![tool.to_owned()]),
            });
        }
    };
    for text in &texts {
        check(text).map_err(|error| RuleError { rule: rule.to_owned(), ..error })?;
    }
    Ok(in_list(list, texts))
}

/// Returns what is wrong with `rule`, which names an unknown tool, and what it probably means.
fn unknown(rule: &str, tools: &[ToolFacts]) -> RuleError {
    let begins = |tool: &&ToolFacts| {
        let start = rule.get(..tool.name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(&tool.name))
    };
    let tool = tools.iter().filter(begins).max_by_key(|tool| tool.name.len());
    let letters = rule.trim_start_matches(|char: char| char.is_ascii_alphabetic());
    let inner = letters.trim_matches(|char: char| " ()[]{}:=".contains(char));
    let meant = match tool {
        Some(tool) if letters.starts_with(['(', '[', '{', ':', '=', ' ']) && !inner.is_empty() => {
            Some(format!("{}({inner})", tool.name))
        }
        _ if !rule.contains(['(', ' ']) && rule.contains(['/', '.', '~']) => {
            Some(format!("{READ}({rule})"))
        }
        _ => None,
    };
    match (meant, Rule::parse_refusing(rule, tools)) {
        (None, Err(error)) => error,
        (meant, _) => RuleError {
            rule: rule.to_owned(),
            reason: match meant {
                Some(meant) => {
                    format!("it does not begin with a tool's name; did you mean `{meant}`?")
                }
                None => {
                    "it does not begin with the name of a tool, as Read(./.env) does".to_owned()
                }
            },
        },
    }
}

fn in_list(list: List, texts: Vec<String>) -> Translated {
    match list {
        List::Deny => Translated { deny: texts, ..Translated::default() },
        List::Ask => Translated { ask: texts, ..Translated::default() },
    }
}

/// True when `specifier` contains the end of one rule and the beginning of another: `a) Edit(b`.
fn holds_another_rule(specifier: &str) -> bool {
    let mut depth = 0;
    for (at, char) in specifier.char_indices() {
        match char {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ')' => {
                let rest = specifier[at + 1..].trim_start_matches([' ', '\t', ',', ';']);
                let name = rest.split('(').next().filter(|name| name.len() < rest.len());
                let is_name = |name: &str| {
                    !name.is_empty()
                        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
                };
                if name.is_some_and(is_name) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns the path in `specifier` without quotes.
fn unquoted<'s>(specifier: &'s str, rule: &str) -> Result<&'s str, RuleError> {
    const QUOTES: [char; 3] = ['"', '\'', '`'];
    let whole = QUOTES.iter().find_map(|quote| {
        let inner = specifier.strip_prefix(*quote)?.strip_suffix(*quote)?;
        (!inner.is_empty()).then_some(inner)
    });
    match whole {
        Some(inner) => Ok(inner.trim()),
        None if specifier.starts_with(QUOTES) || specifier.ends_with(QUOTES) => Err(RuleError {
            rule: rule.to_owned(),
            reason: "a quote of the path has no other; write the path without quotes".to_owned(),
        }),
        None => Ok(specifier),
    }
}

/// Widens `rule` about a command that is not simple, such as `curl * | bash`: Posse asks about
/// every command that could be its beginning.
fn widened(rule: &str, tool: &str, specifier: &str, tools: &[ToolFacts]) -> Option<Translated> {
    let first = specifier.split(['|', ';', '&', '>', '<', '$', '`']).next()?.trim();
    // Every rule for a beginning ends in a separate star; a star at the end of a word stays.
    let first = first.strip_suffix(" *").unwrap_or(first).trim_end();
    let wider = format!("{tool}({first}:*)");
    let is_read = Rule::parse_refusing(&wider, tools).is_ok();
    is_read.then(|| Translated {
        warning: Some(format!(
            "`{rule}` is more than one simple command, which Posse cannot deny as such: it asks \
             before every command like `{first} …`, and refuses it where no person can answer"
        )),
        ask: vec![wider],
        ..Translated::default()
    })
}

/// Returns the patterns of Posse that mean what `pattern` means in Claude Code.
fn paths(pattern: &str, place: &RuleOrigin<'_>) -> Vec<String> {
    // Some authors write the end of a rule about commands.
    let open = pattern.strip_suffix(":*").map(|path| format!("{path}*"));
    let pattern = open.as_deref().unwrap_or(pattern);
    if pattern.starts_with("//") || pattern == "~" || pattern.starts_with("~/") {
        return vec![pattern.to_owned()];
    }
    let folder = place.folder.unwrap_or(place.workspace);
    let base = escaped(&folder.display().to_string());
    if pattern.split('/').any(|name| name == "..") {
        return vec![format!("/{}", without_detours(&base, pattern.trim_start_matches('/')))];
    }
    let mut all = Vec::new();
    let mut relative = pattern.to_owned();
    if let Some(rest) = pattern.strip_prefix('/') {
        relative = format!("./{rest}");
        // As documented, the path is below the project. It may also look like a path of the
        // machine.
        if names_of_machines(rest) {
            all.push(format!("/{pattern}"));
        }
    }
    if folder == place.workspace {
        all.push(relative);
        return all;
    }
    let names: Vec<&str> =
        relative.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let is_anchored = relative.trim_end_matches('/').contains('/');
    let anywhere = if is_anchored { "" } else { "**/" };
    all.push(format!("/{base}/{anywhere}{}", names.join("/")));
    // The same path relative to the workspace, which may be a copy elsewhere.
    if !is_anchored {
        all.push(relative);
        return all;
    }
    let below = place.workspace.strip_prefix(folder).unwrap_or(Path::new(""));
    let way: Vec<String> = below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let open = names.iter().take(way.len()).position(|name| *name == "**");
    let met = open.unwrap_or(way.len());
    let leads_there = names.iter().zip(&way).take(met).all(|(name, step)| may_be(name, step));
    if leads_there && names.len() > met {
        all.push(format!("./{}", names[met..].join("/")));
    }
    all
}

/// False when the pattern `name` certainly does not mean the folder `step`.
fn may_be(name: &str, step: &str) -> bool {
    name.contains(['*', '?', '[', '\\']) || name == step
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::tool_facts::built_in_tools;

    fn check(rule: &str, folder: Option<&str>, deny: &[&str], ask: &[&str]) {
        let place =
            RuleOrigin { folder: folder.map(Path::new), workspace: Path::new("/w/project/sub") };
        let read = translate(rule, List::Deny, &place, &built_in_tools())
            .unwrap_or_else(|error| panic!("{rule}: {error}"));
        assert_eq!(read.deny, deny, "{rule}");
        assert_eq!(read.ask, ask, "{rule}");
        assert_eq!(read.warning.is_some(), !ask.is_empty(), "{rule}");
    }

    #[test]
    fn rules_of_claude_code_keep_their_meaning() {
        let here = Some("/w/project/sub");
        check("Read(./.env)", here, &["Read(./.env)", "Edit(./.env)"], &[]);
        check("Read(.env)", None, &["Read(.env)", "Edit(.env)"], &[]);
        check("Read(~/.ssh/**)", here, &["Read(~/.ssh/**)", "Edit(~/.ssh/**)"], &[]);
        check("Read(//etc/hosts)", here, &["Read(//etc/hosts)", "Edit(//etc/hosts)"], &[]);
        let both = ["Edit(//etc/hosts)", "Edit(./etc/hosts)"];
        check("Edit(/etc/hosts)", here, &both, &[]);
        check("Edit(/src/**)", here, &["Edit(./src/**)"], &[]);
        check("Write(docs/**)", here, &["Edit(docs/**)"], &[]);
        check("MultiEdit(docs/**)", here, &["Edit(docs/**)"], &[]);
        check("Edit(../x/y)", here, &["Edit(//w/project/x/y)"], &[]);
        check("Read(.env:*)", here, &["Read(.env*)", "Edit(.env*)"], &[]);
        check("Edit", here, &["Edit", "Write"], &[]);
        check("Bash", here, &["Bash"], &[]);
        check("Bash(*)", here, &["Bash"], &[]);
        check("Edit(\"./a\")", here, &["Edit(./a)"], &[]);
        check("Edit('a b')", here, &["Edit(a b)"], &[]);
        check("Edit(app/(group)/**)", here, &["Edit(app/(group)/**)"], &[]);
        let every = ["Read(**)", "Edit(**)"];
        for rule in ["Read(*)", "Read()", "Read( * )", "Read(**)"] {
            check(rule, here, &every, &[]);
        }
        for rule in ["Edit(*)", "Write(*)", "Write()", "MultiEdit(*)"] {
            check(rule, here, &["Edit(**)"], &[]);
        }
        for rule in [
            "Bash(npm run test:*)",
            "Bash(curl:*)",
            "Bash(git push *)",
            "Bash(git push*)",
            "Bash(git * main)",
            "Bash(* --force)",
            "Bash(mkfs*)",
            "WebFetch(domain:example.org)",
            "WebFetch",
            "mcp__server",
            "mcp__server__tool",
            "Task(explore)",
            "Agent(Explore)",
            "Skill(deploy *)",
        ] {
            let same = if rule == "WebFetch(domain:example.org)" || rule == "WebFetch" {
                &[][..]
            } else {
                &[rule][..]
            };
            check(rule, here, same, &[]);
        }
        // Posse has no such tools.
        for rule in
            ["WebSearch(x)", "mcp__a__b(c)", "KillShell", "PowerShell(rm *)", "NotebookEdit"]
        {
            check(rule, here, &[], &[]);
        }
        check("Bash(curl * | bash)", here, &[], &["Bash(curl:*)"]);
        check("TodoWrite(x)", here, &["TodoWrite"], &[]);
    }

    #[test]
    fn rules_of_a_folder_above_count_from_there() {
        let above = Some("/w/project");
        let all = ["Edit(//w/project/sub/x)", "Edit(./x)"];
        check("Edit(./sub/x)", above, &all, &[]);
        check("Edit(.env)", above, &["Edit(//w/project/**/.env)", "Edit(.env)"], &[]);
        check("Edit(**/.env)", above, &["Edit(//w/project/**/.env)", "Edit(./**/.env)"], &[]);
        let all = ["Edit(//w/project/*/x)", "Edit(./x)"];
        check("Edit(*/x)", above, &all, &[]);
        let all = ["Edit(//w/project/secrets/**)"];
        check("Edit(./secrets/**)", above, &all, &[]);
        let all = ["Edit(//w/project/sub/**)", "Edit(./**)"];
        check("Edit(./sub/**)", above, &all, &[]);
        let all = ["Edit(//w/project/**/x/*)", "Edit(./**/x/*)"];
        check("Edit(./**/x/*)", above, &all, &[]);
        check("Edit(/secrets)", above, &["Edit(//w/project/secrets)"], &[]);
    }

    #[test]
    fn a_rule_about_a_pipe_is_kept_for_its_beginning() {
        let place = RuleOrigin { folder: None, workspace: Path::new("/w") };
        for (rule, asks) in [
            ("Bash(curl * | bash)", "Bash(curl:*)"),
            ("Bash(curl http*|bash)", "Bash(curl http*:*)"),
        ] {
            let read = translate(rule, List::Deny, &place, &built_in_tools()).unwrap();
            assert_eq!(read.ask, [asks]);
            assert!(read.warning.is_some());
        }
        let foreign = translate("WebFetch", List::Deny, &place, &built_in_tools()).unwrap();
        assert_eq!(foreign, Translated::default());
    }

    #[test]
    fn a_rule_that_cannot_be_kept_is_an_error_that_says_so() {
        let place = RuleOrigin { folder: None, workspace: Path::new("/w") };
        for (rule, says) in [
            ("Bsh(x)", "did you mean `Bash`?"),
            ("Raed(./.env)", "did you mean `Read`?"),
            ("Read(!x)", "turned around"),
            ("Read({a,b})", "braces"),
            ("Read(./.env", "parenthesis"),
            ("Bash($(x))", "one simple command"),
            ("Read(.env) Edit(x)", "more than one rule"),
            ("Read(.env), Edit(x)", "more than one rule"),
            ("Bash(rm:*) Bash(cp:*)", "more than one rule"),
            ("Read, Edit", "more than one rule"),
            ("Read(\"./.env)", "quote"),
            ("", "name of a tool"),
            ("BashTool(x)", "did you mean `Bash(x)`?"),
            ("Quux(x)", "there is no tool `Quux`"),
            ("Quux", "there is no tool `Quux`"),
            (".env", "did you mean `Read(.env)`?"),
            ("*.env", "did you mean `Read(*.env)`?"),
            ("./src/[ab]", "did you mean `Read(./src/[ab])`?"),
            ("Readme.md", "did you mean `Read(Readme.md)`?"),
            ("Read:./.env", "did you mean `Read(./.env)`?"),
            ("Read[./.env]", "did you mean `Read(./.env)`?"),
            ("read {./.env}", "more than one rule"),
            ("Reading(./.env)", "did you mean `Read(./.env)`?"),
            ("Read(file[[:alpha:]])", "[:alpha:]"),
            ("Read(file[A-_])", "write each range"),
        ] {
            let error = translate(rule, List::Deny, &place, &built_in_tools()).unwrap_err();
            assert!(error.to_string().contains(says), "{rule}: {error}");
        }
    }
}
