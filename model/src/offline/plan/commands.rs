//! How to build, run and test it: what the documents say, then what the manifests imply.

use super::project;
use crate::offline::answer::{Answer, cite, code, shortened};
use crate::offline::found::Page;
use crate::offline::intent::{self, Purpose};
use crate::offline::language;
use crate::offline::manifest;
use crate::offline::notes::{Notes, together};
use crate::offline::place::{self, base, depth, folder, is_readme};
use crate::offline::question::Question;
use crate::offline::readme::{self, Command};

/// Documents that may name commands.
const DOCUMENTS: &str = "**/{README*,readme*,CONTRIBUTING*,INSTALL*,HACKING*,BUILDING*,\
    DEVELOPMENT*,DEVELOPING*,TESTING*,GETTING_STARTED*,getting-started*,development*,\
    contributing*,installation*,install.md}";
/// Scripts at the top that are called by their own name.
const SCRIPTS: &str =
    "{test,build,run,start,check,install,configure,*.sh,bin/*,script/*,scripts/*}";
/// Files of continuous integration: what they run, works.
const INTEGRATION: &str = "{.github/workflows/*.yml,.github/workflows/*.yaml,.gitlab-ci.yml,\
    .circleci/config.yml,.travis.yml}";
/// Files that are read.
const READ: usize = 8;

/// Answers how to do what `question` wants to do.
pub(in crate::offline) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let (documents, manifests) = (notes.glob(DOCUMENTS), notes.glob(manifest::PATTERN));
    let (own, integration) = (notes.glob(SCRIPTS), notes.glob(INTEGRATION));
    let top = notes.list("");
    let (documents, manifests, own, integration, top) =
        (documents?, manifests?, own?, integration?, top?);
    let mut read = project::nearest(&documents.list, 3);
    read.extend(project::nearest(&manifests.list, READ - read.len()));
    read.extend(project::nearest(&integration.list, 1));
    let pages = together(read.iter().map(|path| notes.read(path, 1, 400)))?;
    let source =
        Source { pages: &pages, manifests: &manifests.list, own: &own.list, top: &top.list };
    let mut answer = Answer::new();
    let mut missing = Vec::new();
    for purpose in intent::purposes(question) {
        let told = source.tell(purpose, question);
        match told.is_empty() {
            true => missing.push(purpose),
            false => drop(answer.say(told.into_text())),
        }
    }
    if !missing.is_empty() {
        source.admit(&missing, &mut answer);
    }
    Some(answer)
}

/// Where commands may stand.
struct Source<'s> {
    pages: &'s [Page],
    manifests: &'s [String],
    /// Scripts.
    own: &'s [String],
    /// What is at the top.
    top: &'s [String],
}

/// A command and where it comes from, in words that stand in brackets.
struct Known {
    command: String,
    from: String,
    does: String,
}

/// Commands that are listed for one purpose.
const LISTED: usize = 8;

impl Source<'_> {
    /// All that is known of one purpose.
    fn tell(&self, purpose: Purpose, question: &Question) -> Answer {
        let mut known = documented(self.pages, purpose, question);
        known.extend(scripts(self.pages, purpose, manager(self.top)));
        known.extend(own_scripts(self.own, purpose));
        known.extend(customs(self.pages, self.manifests, self.top, purpose));
        known.extend(integration(self.pages, purpose));
        let mut answer = Answer::new();
        let mut seen: Vec<String> = Vec::new();
        for one in known {
            if seen.contains(&one.command) || seen.len() == LISTED {
                continue;
            }
            if seen.is_empty() {
                answer.say(format!("To {}:", verb(purpose)));
            }
            let does = if one.does.is_empty() {
                String::new()
            } else {
                format!(": {}", code(&shortened(&one.does, 80)))
            };
            answer.item(format!("{} ({}){does}", code(&shortened(&one.command, 120)), one.from));
            seen.push(one.command);
        }
        answer
    }

    fn admit(&self, missing: &[Purpose], answer: &mut Answer) {
        let verbs: Vec<&str> = missing.iter().map(|purpose| verb(*purpose)).collect();
        let read: Vec<String> = self.pages.iter().map(|page| code(&page.path)).collect();
        let read = if read.is_empty() {
            ": there is no README or document like it, no manifest that I know, no script of \
                that name, no CI file."
                .to_owned()
        } else {
            format!(". I read {}.", read.join(", "))
        };
        answer.say(format!("I found no command that says how to {}{read}", verbs.join(" or ")));
        for purpose in missing {
            tell_sections(self.pages, *purpose, answer);
        }
        let shown = self.top.iter().filter(|name| !name.starts_with('.'));
        let listed: Vec<String> = shown.take(12).map(|name| code(name)).collect();
        if !listed.is_empty() && self.pages.is_empty() {
            answer.say(format!("At the top there is {}.", listed.join(", ")));
        }
    }
}

/// Sections that are about it, even if they name no command.
fn tell_sections(pages: &[Page], purpose: Purpose, answer: &mut Answer) {
    for page in pages.iter().filter(|page| is_document(&page.path)) {
        for section in readme::sections(page) {
            let title = section.title.to_lowercase();
            if headings(purpose).split('|').any(|word| title.contains(word)) {
                answer.item(format!(
                    "{}: section \"{}\"",
                    cite(&page.path, section.line),
                    section.title
                ));
            }
        }
    }
}

fn verb(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Install => "install it",
        Purpose::Build => "build it",
        Purpose::Run => "run it",
        Purpose::Test => "run the tests",
        Purpose::Check => "check it",
        Purpose::Deploy => "deploy it",
    }
}

/// Words that headings have.
fn headings(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Install => {
            "install|download|getting started|setup|set up|quick start|quickstart|development|\
                requirements"
        }
        Purpose::Build => "build|compil|from source|develop|getting started|install",
        Purpose::Run => "usage|run|start|quick|develop|example|use",
        Purpose::Test => "test|develop|contribut|check",
        Purpose::Check => "lint|check|format|style|develop|contribut|test",
        Purpose::Deploy => "deploy|release|publish|production|docker",
    }
}

/// Words that commands have, the surest first.
fn words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Install => "install|ci|add|sync|setup|bootstrap|clone|bundle",
        Purpose::Build => "build|make|compile|tsc|cmake|package|assemble|ninja|configure",
        Purpose::Run => "run|start|serve|dev|up|launch|exec",
        Purpose::Test => "test|tests|pytest|tox|nox|ctest|nextest|rspec|check|spec|verify",
        Purpose::Check => "lint|clippy|fmt|format|vet|check|ruff|eslint|mypy|prettier",
        Purpose::Deploy => "deploy|publish|release|docker|compose|push|kubectl|helm",
    }
}

/// Where in `words` the first words of a command have one.
fn position(words: &str, command: &str) -> Option<usize> {
    let first: Vec<&str> =
        command.split([' ', ':', '/', '=']).filter(|word| !word.is_empty()).take(5).collect();
    words.split('|').position(|word| first.contains(&word))
}

/// How well a documented command serves.
fn score(command: &Command, page: &Page, purpose: Purpose, question: &Question) -> i32 {
    let (section, text) = (command.section.to_lowercase(), command.text.to_lowercase());
    let heading = headings(purpose).split('|').position(|word| section.contains(word));
    let word = position(words(purpose), &text);
    let mut score = match heading {
        Some(0) => 6,
        Some(_) => 3,
        None => 0,
    };
    score += match word {
        Some(0) => 8,
        Some(_) => 5,
        None => 0,
    };
    let others = match purpose {
        Purpose::Run => "test|tests|nextest|install|build|add|get|clone",
        Purpose::Build => "test|get|clone|start",
        Purpose::Test => "install|get|add|clone",
        _ => "",
    };
    score -= if position(others, &text).is_some() { 5 } else { 0 };
    score += question.terms.iter().filter(|term| term.is_in(&text)).count() as i32 * 2;
    score += if is_readme(&page.path) { 2 } else { 0 };
    score - depth(&page.path).min(3) as i32 * 2
}

fn documented(pages: &[Page], purpose: Purpose, question: &Question) -> Vec<Known> {
    let mut found: Vec<(i32, &Page, Command)> = Vec::new();
    for page in pages.iter().filter(|page| is_document(&page.path)) {
        for command in readme::commands(page) {
            let score = score(&command, page, purpose, question);
            if score >= 6 {
                found.push((score, page, command));
            }
        }
    }
    let best = found.iter().map(|(score, _, _)| *score).max().unwrap_or(0);
    found.retain(|(score, _, _)| *score > best - 6);
    found.sort_by_key(|(score, _, _)| -score);
    found.truncate(5);
    let known = found.into_iter().map(|(_, page, command)| {
        let below = if command.section.is_empty() {
            String::new()
        } else {
            format!(", under \"{}\"", command.section)
        };
        Known {
            command: command.text,
            from: format!("{}{below}", cite(&page.path, command.line)),
            does: String::new(),
        }
    });
    known.collect()
}

fn is_document(path: &str) -> bool {
    let written = language::of(path) == language::Language::Markdown;
    written && place::sort(path) == place::Sort::Document || is_readme(path)
}

/// The package manager of Node that the lock file names.
fn manager(top: &[String]) -> &'static str {
    let has = |name: &str| top.iter().any(|found| found == name);
    if has("pnpm-lock.yaml") {
        "pnpm"
    } else if has("yarn.lock") {
        "yarn"
    } else if has("bun.lockb") || has("bun.lock") {
        "bun"
    } else {
        "npm"
    }
}

/// Names that targets and scripts have.
fn names(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Install => "install|setup|bootstrap|deps",
        Purpose::Build => "build|all|compile|release",
        Purpose::Run => "start|dev|run|serve|up",
        Purpose::Test => "test|tests|check|unit|ci",
        Purpose::Check => "lint|check|checks|fmt|format|clippy|vet",
        Purpose::Deploy => "deploy|release|publish|docker|image",
    }
}

fn scripts(pages: &[Page], purpose: Purpose, manager: &str) -> Vec<Known> {
    let mut found = Vec::new();
    for page in pages {
        for script in manifest::scripts(page, manager) {
            let is_named = |name: &str| {
                let rest = script.name.strip_prefix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-']))
            };
            let fits = names(purpose).split('|').any(is_named);
            let default = purpose == Purpose::Build && script.call == "make";
            if fits || default {
                let inside = folder(&page.path);
                let inside = if inside.is_empty() {
                    String::new()
                } else {
                    format!(", in {}", code(&format!("{inside}/")))
                };
                found.push(Known {
                    command: script.call,
                    from: format!("{}{inside}", cite(&page.path, script.line)),
                    does: script.does,
                });
            }
        }
    }
    found.truncate(5);
    found
}

fn own_scripts(own: &[String], purpose: Purpose) -> Vec<Known> {
    let fits = |path: &&String| {
        let stem = place::stem(path).to_lowercase();
        names(purpose).split('|').any(|name| stem == name)
    };
    let found = own.iter().filter(fits).take(3);
    found
        .map(|path| Known {
            command: format!("./{path}"),
            from: format!("{}, a script", cite(path, 1)),
            does: String::new(),
        })
        .collect()
}

/// What a manifest implies by the custom of its language.
fn custom(path: &str, purpose: Purpose, paths: &[String], top: &[String]) -> Option<&'static str> {
    use Purpose::{Build, Check, Install, Run, Test};
    let has = |name: &str| top.iter().any(|found| found == name);
    let python_tests = || paths.iter().any(|path| path.ends_with("tox.ini"));
    Some(match (base(path), purpose) {
        ("Cargo.toml", Build) => "cargo build",
        ("Cargo.toml", Run) => "cargo run",
        ("Cargo.toml", Test) => "cargo test",
        ("Cargo.toml", Check) => "cargo clippy",
        ("Cargo.toml", Install) => "cargo install --path .",
        ("package.json", Install) => "npm install",
        ("pyproject.toml" | "setup.py" | "setup.cfg", Install | Build) => "pip install -e .",
        ("pyproject.toml" | "setup.py" | "setup.cfg", Test) if python_tests() => "tox",
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
        ("build.gradle" | "build.gradle.kts", Run) => "./gradlew run",
        ("Gemfile", Install) => "bundle install",
        ("Rakefile", Test) => "bundle exec rake test",
        ("CMakeLists.txt", Build) => "cmake -B build && cmake --build build",
        ("CMakeLists.txt", Test) => "ctest --test-dir build",
        ("mix.exs", Build) => "mix compile",
        ("mix.exs", Test) => "mix test",
        ("Package.swift", Build) => "swift build",
        ("Package.swift", Test) => "swift test",
        ("Dockerfile", Purpose::Deploy) => "docker build .",
        (
            "docker-compose.yml" | "docker-compose.yaml" | "compose.yml" | "compose.yaml",
            Run | Purpose::Deploy,
        ) => "docker compose up",
        _ => return None,
    })
}

fn customs(pages: &[Page], manifests: &[String], top: &[String], purpose: Purpose) -> Vec<Known> {
    let least = pages.iter().map(|page| depth(&page.path)).min().unwrap_or(0);
    let near = pages.iter().filter(|page| depth(&page.path) <= least + 1);
    let implied =
        near.filter_map(|page| Some((page, custom(&page.path, purpose, manifests, top)?)));
    let known = implied.map(|(page, command)| Known {
        command: command.to_owned(),
        from: format!("by custom, from {}", cite(&page.path, 1)),
        does: String::new(),
    });
    known.collect()
}

fn integration(pages: &[Page], purpose: Purpose) -> Vec<Known> {
    let is_integration = |page: &&Page| {
        ["workflows/", "-ci", "ci/", "travis"].iter().any(|mark| page.path.contains(mark))
    };
    let mut found: Vec<(&Page, usize, &str)> = Vec::new();
    for page in pages.iter().filter(is_integration) {
        for (line, text) in page.texts() {
            let text = text.trim().trim_start_matches("- ");
            let command = text.strip_prefix("run: ").unwrap_or(text).trim();
            let plain = !command.contains(": ")
                && !command.ends_with(':')
                && command.contains(' ')
                && !command.starts_with('#');
            let fits = position(words(purpose), command).is_some_and(|at| at < 8);
            if plain && fits && !command.contains("install") {
                found.push((page, line, command));
            }
        }
    }
    // What depends on the job is shown only if there is nothing plainer.
    if found.iter().any(|(_, _, command)| !command.contains("${{")) {
        found.retain(|(_, _, command)| !command.contains("${{"));
    }
    let known = found.into_iter().take(3).map(|(page, line, command)| Known {
        command: command.to_owned(),
        from: format!("{}, continuous integration", cite(&page.path, line)),
        does: String::new(),
    });
    known.collect()
}
