//! Checks what the compiler does not: the code map, circles of imports, names of tools, plain words,
//! locks, test files, sizes, licences, links.

mod circles;
mod tools;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Crates of the workspace, by folder.
const CRATES: [&str; 12] = [
    "protocol", "agent", "model", "offline", "tools", "probe", "store", "runtime", "cli",
    "testkit", "crash", "xtask",
];
/// The crate whose code map is a list of floors: modules import from their own and from lower ones.
const WITH_FLOORS: &str = "runtime";
/// Packages in Cargo.lock, at most. Raising it is a decision.
const MAX_PACKAGES: usize = 412;
/// Lines of ARCHITECTURE.md.
const MAX_MAP_LINES: usize = 200;
/// The most lines of the loop, so that people can read it at once.
const MAX_LOOP_LINES: usize = 200;
/// The most lines of any other source file.
const MAX_LINES: usize = 700;

/// Options of tidy
#[derive(clap::Args)]
pub struct Tidy {}

impl Tidy {
    pub fn run(self) -> ExitCode {
        let root = PathBuf::from(".");
        let mut problems = Vec::new();
        code_map(&root, &mut problems);
        circles::check(&root, &CRATES, &mut problems);
        let map = read(&root.join("ARCHITECTURE.md"), &mut problems);
        circles::check_floors(&root, WITH_FLOORS, &floors(&map, WITH_FLOORS), &mut problems);
        tools::check(&root, &mut problems);
        words(&root, &mut problems);
        locks(&root, &mut problems);
        test_files(&root, &mut problems);
        sizes(&root, &mut problems);
        packages(&root, &mut problems);
        licences(&root, &mut problems);
        links(&root, &mut problems);
        for problem in &problems {
            say(problem);
        }
        say(&format!("tidy: {} problems", problems.len()));
        if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

#[expect(clippy::print_stdout, reason = "a program for the terminal")]
fn say(line: &str) {
    println!("{line}");
}

/// The section of each crate in the code map names all its top-level modules and no others, and the
/// document is short enough.
fn code_map(root: &Path, problems: &mut Vec<String>) {
    let map = read(&root.join("ARCHITECTURE.md"), problems);
    let lines = map.lines().count();
    if lines > MAX_MAP_LINES {
        problems.push(format!("ARCHITECTURE.md: {lines} lines, at most {MAX_MAP_LINES}"));
    }
    for name in CRATES {
        let section = section(&map, name);
        let named: BTreeSet<&str> = section.iter().flat_map(|line| quoted(line)).collect();
        let source = root.join(name).join("src");
        let modules = circles::modules(&source);
        for module in modules.iter().filter(|module| !named.contains(module.as_str())) {
            let problem = format!("the code map of `{name}` does not name `{module}`");
            problems.push(format!("ARCHITECTURE.md: {problem}"));
        }
        for line in section.iter().filter(|line| line.starts_with("- **")) {
            let heads = line.split_once("**: ").map_or("", |(_, modules)| modules);
            for module in top_level(heads).filter(|it| !modules.contains(*it)) {
                let problem =
                    format!("the code map of `{name}` names `{module}`, which is not there");
                problems.push(format!("ARCHITECTURE.md: {problem}"));
            }
        }
    }
}

/// The lines about a crate in the code map.
fn section<'t>(map: &'t str, name: &str) -> Vec<&'t str> {
    let head = format!("### `{name}`");
    let lines = map.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
    lines.take_while(|line| !line.starts_with('#')).collect()
}

/// The texts between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The modules that a line of the map lists, without the remarks in parentheses.
fn top_level(listed: &str) -> impl Iterator<Item = &str> {
    let outside = listed.split('(').map(|part| part.rsplit(')').next().unwrap_or(part));
    let is_module = |name: &&str| name.chars().all(|it| it.is_ascii_lowercase() || it == '_');
    outside.flat_map(quoted).filter(is_module)
}

/// The floors of the crate `name`, from the ground up, as the code map lists them.
fn floors(map: &str, name: &str) -> Vec<BTreeSet<String>> {
    let lines = section(map, name).into_iter().filter(|line| line.starts_with("- **"));
    lines.map(|line| top_level(line).map(str::to_owned).collect()).collect()
}

/// Phrases that make help and errors hard to read: they name no actor, or replace a noun of the
/// glossary.
const BANNED: [&str; 18] = [
    "nobody",
    "whoever",
    "somebody",
    "is told",
    "are told",
    "can be had",
    "those that",
    "those who",
    "is none of",
    "brings along",
    "go on with",
    "goes on with it",
    "going on with",
    "present step",
    "mend that",
    "put away",
    "is to be told",
    "as was asked for",
];

/// No text for people or models in the shipped crates has a banned phrase. Comments are not checked.
fn words(root: &Path, problems: &mut Vec<String>) {
    for name in ["protocol", "agent", "model", "tools", "store", "runtime", "cli"] {
        for file in rust_files(&root.join(name).join("src")) {
            let inside = |part: &str| file.iter().any(|it| it == part);
            if inside("tests") || inside("tests.rs") || inside("conformance") {
                continue;
            }
            let text = read(&file, problems);
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in shipped.lines().enumerate() {
                let code = line.trim_start();
                let is_text = code.contains('"') && !code.starts_with("//");
                if !is_text || code.contains("reason = \"") || code.contains("TestCaseError") {
                    continue;
                }
                let quoted = code.split('"').skip(1).step_by(2);
                let said: String = quoted.collect::<Vec<_>>().join(" ");
                for phrase in BANNED.iter().filter(|phrase| has_phrase(&said, phrase)) {
                    let place = format!("{}:{}", file.display(), number + 1);
                    problems.push(format!("{place}: a text for people says `{phrase}`"));
                }
            }
        }
    }
}

/// No source deals with poisoned locks: `parking_lot` has none, so a panic in one run stops no other.
fn locks(root: &Path, problems: &mut Vec<String>) {
    let poison = concat!("Poison", "Error");
    for file in CRATES.iter().flat_map(|name| rust_files(&root.join(name).join("src"))) {
        if read(&file, problems).contains(poison) {
            problems.push(format!("{}: use the locks of `parking_lot`", file.display()));
        }
    }
}

/// True when `text` contains `phrase` as whole words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let edge = |it: Option<char>| it.is_none_or(|it| !it.is_alphanumeric() && it != '-');
    text.match_indices(phrase).any(|(at, _)| {
        edge(text[..at].chars().next_back()) && edge(text[at + phrase.len()..].chars().next())
    })
}

/// Every file of a test folder is a module of its main.rs.
fn test_files(root: &Path, problems: &mut Vec<String>) {
    for crate_folder in CRATES {
        let folder = root.join(crate_folder).join("tests/it");
        let main = folder.join("main.rs");
        if !main.exists() {
            continue;
        }
        let text = read(&main, problems);
        for file in rust_files(&folder) {
            let direct = file.parent() == Some(&folder);
            let name = file.file_stem().map(|name| name.to_string_lossy().into_owned());
            if let Some(name) = name.filter(|name| direct && name != "main")
                && !text.contains(&format!("mod {name};"))
            {
                problems.push(format!("{}: `mod {name};` is missing", main.display()));
            }
        }
    }
}

fn sizes(root: &Path, problems: &mut Vec<String>) {
    for crate_folder in CRATES {
        for file in rust_files(&root.join(crate_folder).join("src")) {
            let lines = read(&file, problems).lines().count();
            let limit = if file.ends_with("agent/src/run.rs") { MAX_LOOP_LINES } else { MAX_LINES };
            if lines > limit {
                problems.push(format!("{}: {lines} lines, at most {limit}", file.display()));
            }
        }
    }
}

fn packages(root: &Path, problems: &mut Vec<String>) {
    let lock = read(&root.join("Cargo.lock"), problems);
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    if count > MAX_PACKAGES {
        problems.push(format!("Cargo.lock: {count} packages, at most {MAX_PACKAGES}"));
    }
}

/// Every dependency has a licence that deny.toml allows.
fn licences(root: &Path, problems: &mut Vec<String>) {
    let deny: toml::Table =
        toml::from_str(&read(&root.join("deny.toml"), problems)).unwrap_or_default();
    let allowed: BTreeSet<String> = deny
        .get("licenses")
        .and_then(|licences| licences.get("allow"))
        .and_then(|allow| allow.as_array())
        .into_iter()
        .flatten()
        .filter_map(|licence| licence.as_str().map(str::to_owned))
        .collect();
    #[expect(clippy::disallowed_methods, reason = "a chore that asks cargo")]
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .output();
    let metadata =
        output.ok().and_then(|out| serde_json::from_slice::<serde_json::Value>(&out.stdout).ok());
    let Some(packages) = metadata.as_ref().and_then(|data| data["packages"].as_array()) else {
        problems.push("cargo metadata gave nothing".to_owned());
        return;
    };
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_allowed(licence, &allowed) {
            problems.push(format!("{name}: the licence `{licence}` is not in deny.toml"));
        }
    }
}

/// Whether the licence is allowed: one side of `A OR B`, or both sides of `A AND B`. Old files write `A/B`
/// for `A OR B`.
fn is_allowed(licence: &str, allowed: &BTreeSet<String>) -> bool {
    let plain = licence.replace(['(', ')'], " ").replace('/', " OR ");
    let one = |term: &str| allowed.contains(term.trim());
    let all = |part: &str| part.split(" AND ").all(one);
    // `(A OR B) AND C` reads as `A OR (B AND C)` here, which is stricter for B and laxer for A:
    // so each operand of a mixed expression must be allowed.
    if plain.contains(" AND ") && plain.contains(" OR ") {
        return plain.split(" OR ").flat_map(|part| part.split(" AND ")).all(one)
            || plain.split(" OR ").any(all) && plain.split(" AND ").skip(1).all(one);
    }
    plain.split(" OR ").any(all)
}

/// Every file of the repository that a document links to exists.
fn links(root: &Path, problems: &mut Vec<String>) {
    let top = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut documents: Vec<PathBuf> = top.filter(|path| is_named(path, "md")).collect();
    documents.extend(files(&root.join("docs"), "md"));
    for document in documents {
        let text = read(&document, problems);
        let folder = document.parent().unwrap_or(root);
        for target in link_targets(&text) {
            if !folder.join(target).exists() {
                let name = document.strip_prefix(root).unwrap_or(&document).display();
                problems.push(format!("{name}: there is no `{target}` to link to"));
            }
        }
    }
}

/// The files that a Markdown text links to outside of code blocks.
fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let targets = prose.flat_map(|part| part.split("](").skip(1));
    let targets = targets.filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder, "rs")
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if is_named(&path, extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn is_named(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn read(path: &Path, problems: &mut Vec<String>) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| {
        problems.push(format!("{}: {error}", path.display()));
        String::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found_outside_of_code() {
        let text = "[a](one.md) [b](two/three.md#part) [c](#here) [d](https://x.y/z)\n```\n[e](no)\n```\n![f](f.svg)";
        assert_eq!(link_targets(text).collect::<Vec<_>>(), ["one.md", "two/three.md", "f.svg"]);
    }

    #[test]
    fn phrases_are_found_as_words_of_their_own() {
        assert!(has_phrase("that nobody asked for", "nobody"));
        assert!(!has_phrase("~nobody-at-all", "nobody") && !has_phrase("busybody", "nobody"));
    }

    #[test]
    fn licences_are_read_as_they_are_written() {
        let allowed: BTreeSet<String> =
            ["MIT", "Apache-2.0", "ISC"].into_iter().map(str::to_owned).collect();
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "MIT AND ISC",
            "(MIT OR Apache-2.0) AND ISC",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "MPL-2.0"] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }
}
