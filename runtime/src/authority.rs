//! What narrows from run to run besides the names of tools: rules, the mode, the reach, the network.
//! A run without a caller has what the settings and whoever starts it say; any other what its caller
//! has, less what its definition and the call take away.

mod except;

use crate::child::rules::Rules;
use crate::error::Error;
use crate::policy::{Policy, READ, Rule, RuleError, Today, denials, escaped, scopes};
use crate::rule_files;
use crate::runtime_config::RuntimeConfig;
use crate::tool_facts::{built_in_tools, find};
use except::all_but;
use posse_protocol::{AgentSpec, Grant, Mode, Permissions, Profile, RunSpec, ToolFacts};
use posse_tools::confine::has_git;
use posse_tools::launch::Launcher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// In which files projects keep secrets, however deep they lie. A run that may talk to others does not
/// read them, nor does anything below it: whatever told it to, nothing of them can leave. The
/// certificates of authorities are no secret, and programs that talk to others need them.
const SECRET_FILES: [&str; 26] = [
    ".env",
    ".env.local",
    ".env.*.local",
    ".env.production",
    ".env.prod",
    ".env.staging",
    ".env.development",
    ".env.dev",
    ".env.test",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "*.key",
    "*key.pem",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.tfvars",
    "credentials.json",
    "secrets.json",
    "secrets.yml",
    "secrets.yaml",
];

/// How deep in a home folder these files are looked for. Commands see folders of programs there, in which others
/// may lie deeper: those were fetched with the programs, and there are too many to look at for each command.
const IN_HOME: usize = 2;

/// The rules that deny these files. The rules leave out what the user has allowed or shown: all files of a name
/// (`Read(**/.env)`), the one at the top of the workspace (`Read(/.env)`), or a path in `shown`. They still deny
/// other files of the same name.
/// The rules hold in the rest of the checkout that `workspace` is a part of, which commands see, in the home
/// folder, and in `shown`, what the user shows of it to commands.
fn secret_files(
    allow: &[String],
    workspace: &str,
    home: Option<&Path>,
    shown: &[PathBuf],
) -> Vec<String> {
    let rule = |pattern: &str| format!("{READ}({pattern})");
    let workspace = Path::new(workspace);
    let above = checkout_above(workspace).map(|top| (top, None));
    let links = home.map(links_at_top).unwrap_or_default();
    let home = home.map(|home| (home, Some(IN_HOME)));
    let shown_too = shown.iter().map(|path| (path.as_path(), None));
    let places = above.into_iter().chain(home).chain(shown_too);
    // Each may be a link.
    let places = places.map(|(place, depth)| (place, place.canonicalize().ok(), depth));
    let places: Vec<_> = places.collect();
    let mut denied = Vec::new();
    for name in SECRET_FILES {
        let everywhere = rule(&format!("**/{name}"));
        if allow.contains(&everywhere) {
            continue;
        }
        let at_top = allow.contains(&rule(&format!("/{name}"))).then(|| workspace.join(name));
        denied.push(if at_top.is_some() { rule(&format!("/*/**/{name}")) } else { everywhere });
        let named = shown.iter().filter(|path| is_called(path, name));
        let mut meant: Vec<PathBuf> = named.chain(&at_top).cloned().collect();
        // A rule about a path holds for what it leads to.
        let also = |(link, real): &(PathBuf, PathBuf)| -> Vec<PathBuf> {
            meant.iter().filter_map(|path| Some(link.join(path.strip_prefix(real).ok()?))).collect()
        };
        let also: Vec<PathBuf> = links.iter().flat_map(also).collect();
        meant.extend(also);
        for (place, real, depth) in &places {
            let below = |path: &PathBuf| {
                let found = path.strip_prefix(place).ok();
                let found = found.or_else(|| path.strip_prefix(real.as_ref()?).ok());
                found.map(Path::to_owned)
            };
            let meant: Vec<PathBuf> = meant.iter().filter_map(below).collect();
            let meant: Vec<Vec<&str>> = meant.iter().filter_map(|path| names(path)).collect();
            let meant: Vec<&[&str]> = meant.iter().map(Vec::as_slice).collect();
            let place = escaped(&place.to_string_lossy());
            let patterns = all_but(&format!("/{place}"), *depth, name, &meant);
            denied.extend(patterns.iter().map(|pattern| rule(pattern)));
        }
    }
    denied
}

/// The links at the top of the home folder, and where they lead.
fn links_at_top(home: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|link| Some((link.path(), link.path().canonicalize().ok()?))).collect()
}

/// The names in `path`, if they are text.
fn names(path: &Path) -> Option<Vec<&str>> {
    path.iter().map(|name| name.to_str()).collect()
}

/// True when the last name of `path` is what `pattern` means, which has at most one `*`.
fn is_called(path: &Path, pattern: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => {
            name.len() >= pattern.len() - 1 && name.starts_with(start) && name.ends_with(end)
        }
    }
}

/// Lets denials of files that lie in any folder hold in the rest of the checkout too that `workspace`
/// is a part of: commands see it. `known` are the tools of the run that do not come with Posse.
fn widen_to_checkout(denied: &mut Vec<String>, workspace: &str, known: &[ToolFacts]) {
    let Some(top) = checkout_above(Path::new(workspace)) else { return };
    let top = escaped(&top.to_string_lossy());
    let built_in = built_in_tools();
    let takes_paths = |name: &str| {
        let found = find(&built_in, name).or_else(|| find(known, name));
        found.is_some_and(|(tool, _)| tool.about.as_ref().is_some_and(|about| about.is_path()))
    };
    let wider = |rule: &String| {
        let (tool, pattern) = rule.strip_suffix(')')?.split_once('(')?;
        let name = pattern.strip_prefix("**/").unwrap_or(pattern);
        let is_anywhere =
            pattern.len() > name.len() || !pattern.trim_end_matches('/').contains('/');
        // What says only that it is about every file is about those of the workspace.
        let is_open = name.chars().all(|char| "*/".contains(char));
        (takes_paths(tool) && is_anywhere && !is_open && name != "~")
            .then(|| format!("{tool}(/{top}/**/{name})"))
    };
    let wider: Vec<String> = denied.iter().filter_map(wider).collect();
    denied.extend(wider);
}

/// The top of the checkout that `workspace` is in, if it is not the top itself.
fn checkout_above(workspace: &Path) -> Option<&Path> {
    workspace.ancestors().find(|folder| has_git(folder)).filter(|top| *top != workspace)
}

/// Fills in what `grant` says of rules, mode, reach and network: of a run of `agent` that `spec`
/// asks for, on behalf of a run with the grant `above` if there is one, whose rules for what it
/// starts are `rules`.
///
/// # Errors
/// When the rules of its folder cannot be read.
pub(crate) fn narrow(
    grant: &mut Grant,
    config: &RuntimeConfig,
    above: Option<&Grant>,
    agent: &AgentSpec,
    spec: &RunSpec,
    rules: Option<&Rules<'_>>,
) -> Result<(), Error> {
    let (agent, asked) = (&agent.rights, &spec.rights);
    let lists: Vec<_> = rules.into_iter().flat_map(Rules::tools).collect();
    let own = [agent.tools.as_deref(), asked.tools.allow.as_deref()];
    let allow = lists.iter().map(|list| list.allow.as_deref()).chain(own).flatten();
    let deny = lists.iter().map(|list| list.deny.as_slice());
    let deny = deny.chain([agent.disallowed_tools.as_slice(), asked.tools.deny.as_slice()]);
    grant.scopes = above.map_or_else(Vec::new, |above| above.scopes.clone());
    grant.scopes.extend(allow.filter_map(scopes));
    grant.scopes.extend(agent.scopes.iter().cloned());
    grant.permissions = match above {
        // What whoever starts a child allows it would make it laxer.
        Some(above) => above.permissions.clone(),
        None => {
            let mut all = config.permissions.rules.clone();
            let (around, _) = rule_files::of_grant(config.permissions.rule_files.as_ref(), grant)?;
            all.ask.extend(around.ask);
            all.deny.extend(around.deny);
            all.allow.extend(asked.permissions.allow.iter().cloned());
            all
        }
    };
    grant.network = match (above, &asked.network) {
        (None, wanted) => wanted.clone().unwrap_or_else(|| config.permissions.network.clone()),
        (Some(above), None) => above.network.clone(),
        (Some(above), Some(wanted)) => above.network.meet(wanted),
    };
    if let Some(network) = &agent.network {
        grant.network = grant.network.meet(network);
    }
    let reach = above.map(|above| above.reach);
    let wanted = asked.reach.or(reach).unwrap_or(Profile::WorkspaceWrite);
    grant.reach = reach.map_or(wanted, |reach| reach.min(wanted));
    let Permissions { allow, ask, deny: denied, .. } = &mut grant.permissions;
    if !grant.network.is_off() && grant.reach != Profile::Full {
        let shown = config.launcher.as_ref().map_or(&[][..], Launcher::shown);
        // They may be links.
        let real = shown.iter().filter_map(|path| path.canonicalize().ok());
        let mut shown: Vec<PathBuf> = shown.iter().cloned().chain(real).collect();
        shown.sort();
        shown.dedup();
        denied.extend(secret_files(
            allow,
            &grant.workspace,
            config.permissions.home.as_deref(),
            &shown,
        ));
    }
    ask.extend(asked.permissions.ask.iter().cloned());
    denied.extend(asked.permissions.deny.iter().cloned());
    denied.extend(deny.flat_map(denials));
    for rules in [&mut *ask, &mut *denied] {
        widen_to_checkout(rules, &grant.workspace, &grant.known);
    }
    for rules in [ask, denied] {
        let mut seen = std::collections::HashSet::new();
        rules.retain(|rule| seen.insert(rule.clone()));
    }
    let modes = match above {
        Some(above) => [Some(above.mode), asked.mode, agent.mode],
        None if asked.mode.is_some() => [asked.mode, agent.mode, None],
        None => {
            let around = rule_files::mode_of(config.permissions.rule_files.as_ref(), grant)?;
            [Some(config.permissions.mode), around, agent.mode]
        }
    };
    grant.mode = modes.into_iter().flatten().min().unwrap_or(Mode::Plan);
    grant.attended = above.map_or(asked.attended, |above| above.attended);
    Ok(())
}

/// Refuses rules that could not be kept where `tools` exist.
pub(crate) fn check(rules: &Permissions, tools: &[ToolFacts]) -> Result<(), Error> {
    let mut refusing = rules.ask.iter().chain(&rules.deny);
    refusing.try_for_each(|rule| Rule::parse_refusing(rule, tools).map(drop)).map_err(told)?;
    rules.allow.iter().try_for_each(|rule| Rule::parse_among(rule, tools).map(drop)).map_err(told)
}

/// Refuses a grant with rules that could not be kept where `tools` exist.
pub(crate) fn check_grant(grant: &Grant, tools: &[ToolFacts]) -> Result<(), Error> {
    check(&grant.permissions, tools)?;
    let mut all = grant.scopes.iter().flatten();
    all.try_for_each(|rule| Rule::parse_among(rule, tools).map(drop)).map_err(told)
}

/// What judges the calls of a run with `grant`, as the settings are now.
pub(crate) fn policy(
    grant: &Grant,
    config: &RuntimeConfig,
    tools: &Arc<[ToolFacts]>,
) -> Result<Policy, Error> {
    let home = config.permissions.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned);
    let mut permissions = config.permissions.rules.clone();
    let (around, files) = rule_files::of_grant(config.permissions.rule_files.as_ref(), grant)?;
    permissions.ask.extend(around.ask);
    permissions.deny.extend(around.deny);
    for rules in [&mut permissions.ask, &mut permissions.deny] {
        widen_to_checkout(rules, &grant.workspace, &grant.known);
    }
    let today = Today { permissions, home, files };
    Policy::new(grant, &today, tools).map_err(told)
}

fn told(error: RuleError) -> Error {
    Error::InvalidInput(error.to_string())
}

#[cfg(test)]
mod tests;
