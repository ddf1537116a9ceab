//! How to build, run and test the project: from documents first, then from manifests.

use super::project;
use crate::answer::{Answer, cite, code};
use crate::found::Page;
use crate::intent::{self, Purpose};
use crate::manifest;
use crate::notes::{Notes, WHOLE, together};
use crate::place::{self, base, depth, folder, is_readme};
use crate::question::Question;
use crate::readme::{self, Command};
use crate::words::shortened;

/// Documents that may name commands.
const DOCUMENTS: &str =
    "**/{README*,readme*,CONTRIBUTING*,INSTALL*,HACKING*,DEVELOPMENT*,TESTING*,contributing*}";
/// Scripts at the top that are commands.
const SCRIPTS: &str = "{test,build,run,start,check,install,*.sh,bin/*,scripts/*}";
/// Files that are read.
const READ: usize = 8;
/// Commands that are listed for one purpose.
const LISTED: usize = 6;

/// A command and where it comes from, in words that stand in brackets.
struct Known {
    command: String,
    from: String,
    does: String,
}

/// Answers how to do what `question` wants to do.
pub(super) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let (documents, manifests) = (notes.glob(DOCUMENTS), notes.glob(manifest::PATTERN));
    let (scripts, top) = (notes.glob(SCRIPTS), notes.list(""));
    let (documents, manifests, scripts, top) = (documents?, manifests?, scripts?, top?);
    let mut read = project::nearest(&documents.list, 3);
    read.extend(project::nearest(&manifests.list, READ - read.len()));
    let pages = together(read.iter().map(|path| notes.read(path, 1, WHOLE)))?;
    let mut answer = Answer::new();
    let mut missing = Vec::new();
    for purpose in intent::purposes(question) {
        let mut known = documented(&pages, purpose);
        known.extend(named(&pages, purpose, manager(&top.list)));
        known.extend(own(&scripts.list, purpose));
        known.extend(customs(&pages, purpose, &top.list));
        tell(purpose, known, &mut missing, &mut answer);
    }
    if !missing.is_empty() {
        let read: Vec<String> = pages.iter().map(|page| code(&page.path)).collect();
        let read = match read.is_empty() {
            true => ": there is no README, no manifest that I know, and no script.".to_owned(),
            false => format!(". I read {}.", read.join(", ")),
        };
        answer.say(format!("I found no command that says how to {}{read}", missing.join(" or ")));
    }
    Some(answer)
}

fn tell(purpose: Purpose, known: Vec<Known>, missing: &mut Vec<&'static str>, answer: &mut Answer) {
    if known.is_empty() {
        missing.push(words(purpose).0);
        return;
    }
    answer.say(format!("To {}:", words(purpose).0));
    let mut seen: Vec<String> = Vec::new();
    for one in known {
        if seen.contains(&one.command) || seen.len() == LISTED {
            continue;
        }
        let does = match one.does.is_empty() {
            true => String::new(),
            false => format!(": {}", code(&shortened(&one.does, 80))),
        };
        answer.item(format!("{} ({}){does}", code(&shortened(&one.command, 120)), one.from));
        seen.push(one.command);
    }
}

/// For a purpose: its name; words of headings; words of commands; names of scripts. The most
/// certain come first.
fn words(purpose: Purpose) -> (&'static str, &'static str, &'static str, &'static str) {
    match purpose {
        Purpose::Install => (
            "install it",
            "install|getting started|setup|set up|quick start|development",
            "install|ci|sync|setup|clone|bundle",
            "install|setup|bootstrap",
        ),
        Purpose::Build => (
            "build it",
            "build|compil|from source|develop|getting started",
            "build|make|compile|tsc|cmake|package|ninja",
            "build|all|compile|release",
        ),
        Purpose::Run => (
            "run it",
            "usage|run|start|quick|develop|example",
            "run|start|serve|dev|up|launch|exec",
            "start|dev|run|serve|up",
        ),
        Purpose::Test => (
            "run the tests",
            "test|develop|contribut|check",
            "test|tests|pytest|tox|ctest|nextest|rspec|check",
            "test|tests|check|ci",
        ),
        Purpose::Check => (
            "check it",
            "lint|check|format|style|develop|contribut",
            "lint|clippy|fmt|format|vet|check|ruff|eslint|mypy",
            "lint|check|fmt|format|clippy|vet",
        ),
        Purpose::Deploy => (
            "deploy it",
            "deploy|release|publish|production|docker",
            "deploy|publish|release|docker|compose|push",
            "deploy|release|publish|docker",
        ),
    }
}

/// Where in `words` the first words of a command have one.
fn position(words: &str, command: &str) -> Option<usize> {
    let first: Vec<&str> =
        command.split([' ', ':', '/', '=']).filter(|word| !word.is_empty()).take(5).collect();
    words.split('|').position(|word| first.contains(&word))
}

/// How well a documented command serves.
fn score(command: &Command, page: &Page, purpose: Purpose) -> i32 {
    let (section, text) = (command.section.to_lowercase(), command.text.to_lowercase());
    let (_, headings, commands, _) = words(purpose);
    let heading = headings.split('|').position(|word| section.contains(word));
    let mut score = heading.map_or(0, |at| if at == 0 { 6 } else { 3 });
    score += position(commands, &text).map_or(0, |at| if at == 0 { 8 } else { 5 });
    let others = match purpose {
        Purpose::Run => "test|tests|nextest|install|build|add|get|clone",
        Purpose::Build => "test|get|clone|start",
        Purpose::Test => "install|get|add|clone",
        _ => "",
    };
    score -= if position(others, &text).is_some() { 5 } else { 0 };
    score += if is_readme(&page.path) { 2 } else { 0 };
    score - depth(&page.path).min(3) as i32 * 2
}

fn documented(pages: &[Page], purpose: Purpose) -> Vec<Known> {
    let mut found: Vec<(i32, &Page, Command)> = Vec::new();
    let is_document = |page: &&Page| place::sort(&page.path) == place::FileRole::Document;
    for page in pages.iter().filter(is_document) {
        for command in readme::commands(page) {
            let score = score(&command, page, purpose);
            if score >= 8 {
                found.push((score, page, command));
            }
        }
    }
    let best = found.iter().map(|(score, _, _)| *score).max().unwrap_or(0);
    found.retain(|(score, _, _)| *score > best - 6);
    found.sort_by_key(|(score, _, _)| -score);
    found.truncate(4);
    let known = found.into_iter().map(|(_, page, command)| {
        let below = match command.section.is_empty() {
            true => String::new(),
            false => format!(", under \"{}\"", command.section),
        };
        let from = format!("{}{below}", cite(&page.path, command.line));
        Known { command: command.text, from, does: String::new() }
    });
    known.collect()
}

/// The package manager of Node that the lock file names.
fn manager(top: &[String]) -> &'static str {
    let locks = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")];
    let found = locks.iter().find(|(lock, _)| top.iter().any(|name| name == lock));
    found.map_or("npm", |(_, manager)| manager)
}

/// Scripts and targets of manifests.
fn named(pages: &[Page], purpose: Purpose, manager: &str) -> Vec<Known> {
    let mut found = Vec::new();
    for page in pages {
        for script in manifest::scripts(page, manager) {
            let is_named = |name: &str| {
                let rest = script.name.strip_prefix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-']))
            };
            let default = purpose == Purpose::Build && script.call == "make";
            if words(purpose).3.split('|').any(is_named) || default {
                let inside = match folder(&page.path) {
                    "" => String::new(),
                    inside => format!(", in {}", code(&format!("{inside}/"))),
                };
                let from = format!("{}{inside}", cite(&page.path, script.line));
                found.push(Known { command: script.call, from, does: script.does });
            }
        }
    }
    found
}

/// Scripts that are called by their own name.
fn own(scripts: &[String], purpose: Purpose) -> Vec<Known> {
    let fits = |path: &&String| words(purpose).3.split('|').any(|name| place::stem(path) == name);
    let known = scripts.iter().filter(fits).take(2).map(|path| Known {
        command: format!("./{path}"),
        from: format!("{}, a script", cite(path, 1)),
        does: String::new(),
    });
    known.collect()
}

/// What a manifest implies by the custom of its language.
fn custom(path: &str, purpose: Purpose, top: &[String]) -> Option<&'static str> {
    use Purpose::{Build, Check, Deploy, Install, Run, Test};
    let has = |name: &str| top.iter().any(|found| found == name);
    Some(match (base(path), purpose) {
        ("Cargo.toml", Build) => "cargo build",
        ("Cargo.toml", Run) => "cargo run",
        ("Cargo.toml", Test) => "cargo test",
        ("Cargo.toml", Check) => "cargo clippy",
        ("package.json", Install) => "npm install",
        ("pyproject.toml" | "setup.py" | "setup.cfg", Install) => "pip install -e .",
        ("pyproject.toml" | "setup.py" | "setup.cfg", Test) if has("tox.ini") => "tox",
        ("pyproject.toml" | "setup.py" | "setup.cfg", Test) => "python -m pytest",
        ("requirements.txt", Install) => "pip install -r requirements.txt",
        ("go.mod", Build) => "go build ./...",
        ("go.mod", Run) if has("main.go") => "go run .",
        ("go.mod", Test) => "go test ./...",
        ("go.mod", Check) => "go vet ./...",
        ("pom.xml", Build) => "mvn package",
        ("pom.xml", Test) => "mvn test",
        ("build.gradle" | "build.gradle.kts", Build) => "./gradlew build",
        ("build.gradle" | "build.gradle.kts", Test) => "./gradlew test",
        ("Gemfile", Install) => "bundle install",
        ("CMakeLists.txt", Build) => "cmake -B build && cmake --build build",
        ("Dockerfile", Deploy) => "docker build .",
        ("docker-compose.yml" | "compose.yml" | "compose.yaml", Run | Deploy) => {
            "docker compose up"
        }
        _ => return None,
    })
}

fn customs(pages: &[Page], purpose: Purpose, top: &[String]) -> Vec<Known> {
    let near = pages.iter().filter(|page| depth(&page.path) == 0);
    let implied = near.filter_map(|page| Some((page, custom(&page.path, purpose, top)?)));
    let known = implied.map(|(page, command)| Known {
        command: command.to_owned(),
        from: format!("by custom, from {}", cite(&page.path, 1)),
        does: String::new(),
    });
    known.collect()
}
