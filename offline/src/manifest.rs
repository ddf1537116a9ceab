//! Reads manifests: the name of a project, its dependencies and commands. Every fact has its line.
//! A manifest that cannot be parsed has no facts.

use crate::definition::{Kind, definition};
use crate::found::Page;
use crate::language::Language;
use crate::place::base;
use crate::words;
use serde_json::Value;

/// A pattern for all of them.
pub(crate) const PATTERN: &str = "**/{Cargo.toml,package.json,pyproject.toml,requirements*.txt,\
    go.mod,Gemfile,composer.json,setup.py,pom.xml,build.gradle,CMakeLists.txt,Makefile,justfile,\
    Rakefile,Dockerfile,docker-compose.yml,compose.yaml}";

/// Something the project needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub name: String,
    pub version: String,
    pub line: usize,
    /// Only for building or testing it.
    pub for_development: bool,
}

/// A command that a manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub name: String,
    /// How it is called.
    pub call: String,
    /// What it does.
    pub does: String,
    pub line: usize,
}

/// True for manifests whose dependencies can be read.
pub(crate) fn names_dependencies(path: &str) -> bool {
    const KNOWN: &str = "Cargo.toml package.json pyproject.toml go.mod Gemfile composer.json";
    words::has(KNOWN, base(path)) || base(path).starts_with("requirements")
}

/// The manifest on `page` as a tree, if it is one.
fn tree(page: &Page) -> Value {
    let text: Vec<&str> = page.texts().map(|(_, text)| text).collect();
    let text = text.join("\n");
    match base(&page.path).rsplit('.').next() {
        Some("toml") => toml::from_str(&text).unwrap_or_default(),
        Some("json") => serde_json::from_str(&text).unwrap_or_default(),
        _ => Value::Null,
    }
}

/// The first line at or after `from` that begins with `key` or quotes it; else `from`.
fn line_of(page: &Page, key: &str, from: usize) -> usize {
    let states = |text: &str| {
        let plain = text.trim_start().trim_start_matches(['"', '\'', '[']);
        let rest = plain.strip_prefix(key);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
            || text.contains(&format!("\"{key}"))
    };
    let mut lines = page.texts().filter(|(line, _)| *line >= from);
    lines.find(|(_, text)| states(text)).map_or(from.max(1), |(line, _)| line)
}

/// The tables of a manifest about the project itself.
const ITSELF: [&str; 6] =
    ["", "/package", "/project", "/tool/poetry", "/workspace/package", "/engines"];

/// What the manifest on `page` says of the project under `key`, and where.
pub(crate) fn value(page: &Page, key: &str) -> Option<(String, usize)> {
    if base(&page.path) == "go.mod" {
        let stated = |text: &str| Some(text.strip_prefix(key)?.strip_prefix(' ')?.to_owned());
        return page.texts().find_map(|(line, text)| Some((stated(text)?, line)));
    }
    let tree = tree(page);
    let found = ITSELF.iter().find_map(|at| tree.pointer(at)?.get(key)?.as_str());
    let text = found?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| (text, line_of(page, key, 1)))
}

/// What the project is called, and where.
pub(crate) fn name(page: &Page) -> Option<(String, usize)> {
    value(page, if base(&page.path) == "go.mod" { "module" } else { "name" })
}

/// What the manifest on `page` needs.
pub(crate) fn dependencies(page: &Page) -> Vec<Dependency> {
    match base(&page.path) {
        "Cargo.toml" | "package.json" | "pyproject.toml" | "composer.json" => {
            let mut found = Vec::new();
            tables(&tree(page), "", page, &mut found);
            found.sort_by_key(|dependency| dependency.line);
            found
        }
        "go.mod" => go_mod(page),
        "Gemfile" => gems(page),
        name if name.starts_with("requirements") => {
            let development = name != "requirements.txt";
            let lines = page.texts().filter(|(_, text)| !text.starts_with(['#', '-']));
            lines.filter_map(|(line, text)| requirement(text, line, development)).collect()
        }
        _ => Vec::new(),
    }
}

/// Tables and lists of `tree` whose key says that they hold dependencies.
fn tables(tree: &Value, path: &str, page: &Page, found: &mut Vec<Dependency>) {
    let Some(object) = tree.as_object() else { return };
    for (key, value) in object {
        let path = format!("{path}/{key}").to_lowercase();
        let for_development =
            ["dev", "build", "test", "optional", "group"].iter().any(|mark| path.contains(mark));
        let last = key.to_lowercase();
        let holds = last.ends_with("dependencies")
            || last.starts_with("require")
            || ["optional-dependencies/", "dependency-groups/"].iter().any(|it| path.contains(it));
        let begins = line_of(page, key, 1);
        match value {
            Value::Object(entries) if holds && last != "optional-dependencies" => {
                for (name, about) in entries {
                    let version = about.as_str().or(about["version"].as_str()).unwrap_or_default();
                    // A package of the same repository is not a dependency on others.
                    if about.get("path").is_none() && !matches!(&**name, "python" | "php") {
                        let line = line_of(page, name, begins);
                        let (name, version) = (name.clone(), version.to_owned());
                        found.push(Dependency { name, version, line, for_development });
                    }
                }
            }
            Value::Array(entries) if holds && path != "/build-system/requires" => {
                for text in entries.iter().filter_map(Value::as_str) {
                    let name = requirement(text, 0, for_development);
                    found.extend(
                        name.map(|one| Dependency {
                            line: line_of(page, &one.name, begins),
                            ..one
                        }),
                    );
                }
            }
            _ => tables(value, &path, page, found),
        }
    }
}

/// `name[extra]>=1.2; marker` as a dependency.
fn requirement(text: &str, line: usize, for_development: bool) -> Option<Dependency> {
    let text = text.split(['#', ';']).next().unwrap_or_default().trim();
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let version = rest.rsplit(']').next().unwrap_or_default().trim().to_owned();
    (!name.is_empty()).then(|| Dependency { name: name.to_owned(), version, line, for_development })
}

fn go_mod(page: &Page) -> Vec<Dependency> {
    let mut inside = false;
    let mut found = Vec::new();
    for (line, text) in page.texts() {
        let text = text.trim();
        let entry = text.strip_prefix("require ").unwrap_or(text);
        if entry == "(" || text == ")" {
            inside = entry == "(" && text != entry;
            continue;
        }
        let mut parts = entry.split_whitespace();
        if (inside || entry != text)
            && let (Some(name), Some(version)) = (parts.next(), parts.next())
        {
            let for_development = entry.contains("// indirect");
            let (name, version) = (name.to_owned(), version.to_owned());
            found.push(Dependency { name, version, line, for_development });
        }
    }
    found
}

fn gems(page: &Page) -> Vec<Dependency> {
    let mut for_development = false;
    let mut found = Vec::new();
    for (line, text) in page.texts() {
        let text = text.trim();
        if text.starts_with("group ") || text == "end" {
            for_development = text.contains(":test") || text.contains(":development");
        }
        let Some(rest) = text.strip_prefix("gem ") else { continue };
        let mut quoted = rest.split(['"', '\'']).skip(1).step_by(2).map(str::to_owned);
        if let Some(name) = quoted.next() {
            let version = quoted.next().unwrap_or_default();
            found.push(Dependency { name, version, line, for_development });
        }
    }
    found
}

/// The commands that the manifest on `page` names.
pub(crate) fn scripts(page: &Page, manager: &str) -> Vec<Script> {
    match base(&page.path) {
        "package.json" => package_scripts(page, manager),
        "Makefile" => targets(page, "make"),
        "justfile" => targets(page, "just"),
        "Rakefile" => rake(page),
        _ => Vec::new(),
    }
}

fn package_scripts(page: &Page, manager: &str) -> Vec<Script> {
    let tree = tree(page);
    let begins = line_of(page, "scripts", 1);
    let scripts = tree["scripts"].as_object().into_iter().flatten();
    let script = |(name, does): (&String, &Value)| {
        let short = matches!(&**name, "start" | "test") || manager != "npm";
        let run = if short { "" } else { "run " };
        let call = format!("{manager} {run}{name}");
        let (name, does) = (name.clone(), does.as_str()?.to_owned());
        Some(Script { line: line_of(page, &name, begins), name, call, does })
    };
    scripts.filter_map(script).collect()
}

fn targets(page: &Page, program: &str) -> Vec<Script> {
    let mut found: Vec<Script> = Vec::new();
    for (line, text) in page.texts() {
        let target = definition(Language::Make, text).filter(|found| found.kind == Kind::Target);
        let Some(target) = target else {
            // The first line below a target says what it does.
            let below = found.last_mut().filter(|last| last.does.is_empty());
            if let Some(last) = below.filter(|_| text.starts_with([' ', '\t'])) {
                last.does = text.trim().trim_start_matches('@').to_owned();
            }
            continue;
        };
        if target.name.contains('%') || target.name.starts_with('.') {
            continue;
        }
        // The first target is what `make` alone does.
        let first = found.is_empty() && program == "make";
        let call = if first { program.to_owned() } else { format!("{program} {}", target.name) };
        found.push(Script { name: target.name.to_owned(), call, does: String::new(), line });
    }
    found
}

fn rake(page: &Page) -> Vec<Script> {
    let task = |(line, text): (usize, &str)| {
        let text = text.trim();
        let rest = text.strip_prefix("task ").or(text.split_once("Task.new(").map(|it| it.1))?;
        let name = rest.trim_start_matches(':').split([':', ' ', ',', ')']).next()?.to_owned();
        let does = text.to_owned();
        (!name.is_empty()).then(|| Script { call: format!("rake {name}"), name, does, line })
    };
    page.texts().filter_map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let shown = |found: &Dependency| {
            let end = if found.for_development { " dev" } else { "" };
            format!("{} {} {}{end}", found.line, found.name, found.version)
        };
        let found: Vec<String> = dependencies(&Page::of(path, text)).iter().map(shown).collect();
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn dependencies_are_read_in_many_formats() {
        check(
            "Cargo.toml",
            "[package]\nname = \"x\"\n[dependencies]\nserde = { version = \"1\" }\na = \"2\"\nown = { path = \"../own\" }\nb.workspace = true\n[dev-dependencies]\nproptest = \"1\"",
            &["4 serde 1", "5 a 2", "7 b ", "9 proptest 1 dev"],
        );
        check(
            "package.json",
            "{\n  \"name\": \"x\",\n  \"dependencies\": {\n    \"react\": \"^18\"\n  },\n  \"devDependencies\": {\n    \"vite\": \"5\"\n  }\n}",
            &["4 react ^18", "7 vite 5 dev"],
        );
        check(
            "pyproject.toml",
            "[build-system]\nrequires = [\"h\"]\n[project]\ndependencies = [\n  \"httpx>=0.27\",\n  \"a[b]~=1\",\n]\n[project.optional-dependencies]\ndev = [\"pytest>=8\", \"ruff\"]",
            &["5 httpx >=0.27", "6 a ~=1", "9 pytest >=8 dev", "9 ruff  dev"],
        );
        check(
            "requirements.txt",
            "# c\nflask==3.0 # web\n-r x.txt\nnumpy",
            &["2 flask ==3.0", "4 numpy "],
        );
        check(
            "go.mod",
            "module x\nrequire (\n\ta.b/c v1.2.0\n\td.e/f v0.1.0 // indirect\n)\nrequire g.h/i v2.0.0",
            &["3 a.b/c v1.2.0", "4 d.e/f v0.1.0 dev", "6 g.h/i v2.0.0"],
        );
        check(
            "Gemfile",
            "gem \"rails\", \"~> 7\"\ngroup :test do\n  gem 'rspec'\nend",
            &["1 rails ~> 7", "3 rspec  dev"],
        );
    }

    #[test]
    fn commands_and_facts_are_read() {
        let package = Page::of(
            "package.json",
            "{\n\"repository\": {\"name\": \"no\"},\n\"description\": \"Does it\",\n\"scripts\": {\n\"dev\": \"vite\",\n\"test\": \"vitest\"\n}\n}",
        );
        let calls: Vec<String> =
            scripts(&package, "npm").into_iter().map(|script| script.call).collect();
        assert_eq!(calls, ["npm run dev", "npm test"]);
        assert_eq!(value(&package, "description"), Some(("Does it".to_owned(), 3)));
        assert_eq!(name(&package), None);
        let make =
            Page::of("Makefile", "CC = cc\nall: a\n\t$(CC) a\n.PHONY: all\ncheck:\n\t@go vet\n");
        let found = scripts(&make, "npm");
        let calls: Vec<(&str, &str)> =
            found.iter().map(|script| (&*script.call, &*script.does)).collect();
        assert_eq!(calls, [("make", "$(CC) a"), ("make check", "go vet")]);
        assert_eq!(name(&Page::of("go.mod", "module a/b")), Some(("a/b".to_owned(), 1)));
        let cargo =
            Page::of("Cargo.toml", "[package]\ndescription = \"\"\"\nDoes it\nwell.\n\"\"\"\n");
        assert_eq!(value(&cargo, "description"), Some(("Does it well.".to_owned(), 2)));
    }
}
