//! Files that say what a project consists of: its name, what it needs, how it is built. Read by
//! line, so that every fact has its place; not a parser of these formats.

use super::found::Page;
use super::place::base;

mod dependencies;

pub(super) use dependencies::dependencies;

/// A pattern for all of them.
pub(super) const PATTERN: &str = "**/{Cargo.toml,package.json,pyproject.toml,setup.py,setup.cfg,\
    requirements*.txt,Pipfile,environment.yml,go.mod,pom.xml,build.gradle,build.gradle.kts,\
    Gemfile,*.gemspec,composer.json,mix.exs,Package.swift,*.csproj,CMakeLists.txt,meson.build,\
    Makefile,makefile,GNUmakefile,justfile,Justfile,Taskfile.yml,Rakefile,tox.ini,noxfile.py,\
    Dockerfile,docker-compose.yml,docker-compose.yaml,compose.yml,compose.yaml,deno.json,\
    vcpkg.json,conanfile.txt}";

/// Something the project needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dependency {
    pub name: String,
    pub version: String,
    pub line: usize,
    /// Only for building or testing it.
    pub for_development: bool,
}

/// A command that a manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub name: String,
    /// How it is called.
    pub call: String,
    /// What it does.
    pub does: String,
    pub line: usize,
}

/// What a manifest says of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub name: Option<(String, usize)>,
    pub description: Option<(String, usize)>,
}

/// True for manifests that name dependencies.
pub(super) fn names_dependencies(path: &str) -> bool {
    let name = base(path);
    let known = [
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "Pipfile",
        "go.mod",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "Gemfile",
        "composer.json",
        "mix.exs",
        "CMakeLists.txt",
        "Package.swift",
        "vcpkg.json",
        "conanfile.txt",
        "deno.json",
        "environment.yml",
    ];
    known.contains(&name)
        || name.starts_with("requirements")
        || name.ends_with(".csproj")
        || name.ends_with(".gemspec")
}

/// The commands that the manifest on `page` names.
pub(super) fn scripts(page: &Page, manager: &str) -> Vec<Script> {
    match base(&page.path) {
        "package.json" => package_scripts(page, manager),
        "Makefile" | "makefile" | "GNUmakefile" => targets(page, "make"),
        "justfile" | "Justfile" => targets(page, "just"),
        "Rakefile" => rake(page),
        _ => Vec::new(),
    }
}

fn package_scripts(page: &Page, manager: &str) -> Vec<Script> {
    let mut inside = false;
    let mut found = Vec::new();
    for (line, text) in page.texts() {
        let text = text.trim();
        if text.starts_with("\"scripts\"") {
            inside = true;
        } else if inside && text.starts_with('}') {
            break;
        } else if inside
            && let Some((name, does)) = text.strip_prefix('"').and_then(|rest| rest.split_once('"'))
        {
            let does = does.trim_start_matches([':', ' ']).trim_end_matches(',').trim_matches('"');
            let short = matches!(name, "start" | "test") || manager != "npm";
            let call =
                if short { format!("{manager} {name}") } else { format!("{manager} run {name}") };
            found.push(Script { name: name.to_owned(), call, does: does.to_owned(), line });
        }
    }
    found
}

fn targets(page: &Page, program: &str) -> Vec<Script> {
    use super::definition::{Kind, definition};
    use super::language::Language;
    let mut found: Vec<Script> = Vec::new();
    for (line, text) in page.texts() {
        let Some(target) =
            definition(Language::Make, text).filter(|found| found.kind == Kind::Target)
        else {
            // The first line below a target that does more than speak says what it does.
            let does = text.trim().trim_start_matches('@');
            let speaks = ["echo ", "$(info", "printf "].iter().any(|start| does.starts_with(start));
            if let Some(last) = found
                .last_mut()
                .filter(|last| last.does.is_empty() && text.starts_with([' ', '\t']) && !speaks)
            {
                last.does = does.to_owned();
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
    let lines = page.texts().map(|(line, text)| (line, text.trim()));
    lines
        .filter_map(|(line, text)| {
            let name = match text.strip_prefix("task ") {
                Some(rest) => rest.trim_start_matches(':').split([':', ' ', ',']).next()?,
                None if text.contains("Task.new") => {
                    text.split(':').next_back()?.split([')', ' ']).next()?
                }
                None => return None,
            };
            (!name.is_empty()).then(|| Script {
                name: name.to_owned(),
                call: format!("rake {name}"),
                does: text.to_owned(),
                line,
            })
        })
        .collect()
}

/// What the manifest on `page` says of the project.
pub(super) fn identity(page: &Page) -> Identity {
    let mut identity = Identity::default();
    let mut table = String::new();
    let about_itself = ["", "package", "project", "tool.poetry", "workspace.package"];
    for (line, text) in page.texts() {
        let text = text.trim();
        if text.starts_with('[') && text.ends_with(']') {
            table = text.trim_matches(['[', ']']).to_owned();
        }
        if let Some(name) = text.strip_prefix("module ").filter(|_| base(&page.path) == "go.mod") {
            identity.name.get_or_insert((name.to_owned(), line));
        }
        if !about_itself.contains(&table.as_str()) {
            continue;
        }
        let Some((key, value)) = text.split_once(['=', ':']) else { continue };
        let value = value.trim().trim_end_matches(',').trim_matches('"').to_owned();
        let plain = !value.is_empty() && !value.starts_with(['{', '[']);
        match key.trim().trim_matches('"') {
            "name" if plain => drop(identity.name.get_or_insert((value, line))),
            "description" if plain => drop(identity.description.get_or_insert((value, line))),
            _ => {}
        }
    }
    identity
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Page {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
        Page { path: path.to_owned(), lines, more: false }
    }

    #[test]
    fn commands_and_identity_are_read() {
        let package = page(
            "package.json",
            "{\n\"name\": \"x\",\n\"description\": \"Does it\",\n\"scripts\": {\n\"dev\": \"vite\",\n\"test\": \"vitest\"\n}\n}",
        );
        let calls: Vec<String> =
            scripts(&package, "npm").into_iter().map(|script| script.call).collect();
        assert_eq!(calls, ["npm run dev", "npm test"]);
        assert_eq!(identity(&package).description, Some(("Does it".to_owned(), 3)));
        let make = page("Makefile", "CC = cc\nall: a\n\t$(CC) a\n.PHONY: all\ncheck:\n\t@go vet\n");
        let found = scripts(&make, "npm");
        let calls: Vec<(&str, &str)> =
            found.iter().map(|script| (&*script.call, &*script.does)).collect();
        assert_eq!(calls, [("make", "$(CC) a"), ("make check", "go vet")]);
        assert_eq!(identity(&page("go.mod", "module a/b")).name, Some(("a/b".to_owned(), 1)));
    }
}
