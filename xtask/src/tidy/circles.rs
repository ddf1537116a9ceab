//! Finds imports between the top-level modules of a crate that form a circle or lead to a higher floor.

use super::{read, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// For each top-level module, the other modules that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// No crate has a circle of imports between its top-level modules.
pub(super) fn check(root: &Path, crates: &[&str], problems: &mut Vec<String>) {
    for name in crates {
        let imports = imports(&root.join(name).join("src"), problems);
        for circle in circles(&imports) {
            problems
                .push(format!("{name}: these modules import each other: {}", circle.join(", ")));
        }
    }
}

/// No module of the crate `name` imports from a floor above its own.
pub(super) fn check_floors(
    root: &Path,
    name: &str,
    floors: &[BTreeSet<String>],
    problems: &mut Vec<String>,
) {
    let floor = |module: &String| floors.iter().position(|floor| floor.contains(module));
    for (module, others) in imports(&root.join(name).join("src"), problems) {
        for other in others.iter().filter(|other| floor(other) > floor(&module)) {
            problems
                .push(format!("{name}: `{module}` imports `{other}`, which is on a higher floor"));
        }
    }
}

/// The top-level modules of a crate.
pub(super) fn modules(source: &Path) -> BTreeSet<String> {
    let mut modules: BTreeSet<String> =
        rust_files(source).iter().map(|file| module_of(source, file)).collect();
    modules.retain(|module| !["lib", "main"].contains(&module.as_str()));
    modules
}

fn module_of(source: &Path, file: &Path) -> String {
    let below = file.strip_prefix(source).unwrap_or(file);
    let first = below.iter().next().unwrap_or_default().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

fn imports(source: &Path, problems: &mut Vec<String>) -> Imports {
    let files: Vec<_> = rust_files(source);
    let module = |file: &Path| module_of(source, file);
    let modules: BTreeSet<String> = files.iter().map(|file| module(file)).collect();
    let mut imports = Imports::new();
    let exported = exported(&source.join("lib.rs"), &modules);
    for file in &files {
        let own = module(file);
        let is_test = file.iter().any(|part| part == "tests" || part == "tests.rs");
        if is_test || ["lib", "main"].contains(&own.as_str()) {
            continue;
        }
        let text = read(file, problems);
        let named = named(without_tests(&text)).into_iter();
        let named = named.filter_map(|name| match modules.contains(&name) {
            true => Some(name),
            false => exported.get(&name).cloned(),
        });
        let others: BTreeSet<String> = named.filter(|name| *name != own).collect();
        imports.entry(own).or_default().extend(others);
    }
    imports
}

/// The names that the root of the crate exports, and the modules that define them.
fn exported(root: &Path, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root).unwrap_or_default();
    let mut exported = BTreeMap::new();
    for statement in text.split(';').filter_map(|it| it.split("use ").nth(1)) {
        let Some((module, names)) = statement.split_once("::") else { continue };
        if modules.contains(module) {
            let words = names.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            exported.extend(words.map(|name| (name.to_owned(), module.to_owned())));
        }
    }
    exported
}

/// A file without its tests and comments.
fn without_tests(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names after `crate::` in all paths, with those in braces.
fn named(text: String) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let word = |text: &str| -> String {
            text.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
        };
        let Some(inside) = rest.strip_prefix('{') else {
            found.insert(word(rest));
            continue;
        };
        let mut depth = 0_usize;
        let mut flat = String::new();
        for letter in inside.chars() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                letter if depth == 0 => flat.push(letter),
                _ => {}
            }
        }
        found.extend(flat.split(',').map(|path| word(path.trim())));
    }
    found
}

/// The groups of modules that import each other.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let mut reached: BTreeSet<&String> = BTreeSet::new();
        let mut ahead: Vec<&String> = imports.get(from).into_iter().flatten().collect();
        while let Some(module) = ahead.pop() {
            if reached.insert(module) {
                ahead.extend(imports.get(module).into_iter().flatten());
            }
        }
        reached
    };
    let all: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|module| (module, reached(module))).collect();
    let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, reached) in all.iter().filter(|(module, reached)| reached.contains(*module)) {
        let leads_back = |other: &&&String| all.get(**other).is_some_and(|it| it.contains(module));
        circles.insert(reached.iter().filter(leads_back).map(|it| (*it).clone()).collect());
    }
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_and_a_line_is_none() {
        let import = |pairs: &[(&str, &[&str])]| -> Imports {
            let set = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
            pairs.iter().map(|(module, names)| ((*module).to_owned(), set(names))).collect()
        };
        let line = import(&[("a", &["b"]), ("b", &["c"]), ("c", &[])]);
        assert!(circles(&line).is_empty());
        let round = import(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &["a"])]);
        assert_eq!(circles(&round), [["b", "c"]]);
    }

    #[test]
    fn what_a_file_imports_is_read_from_its_paths() {
        let text = "use crate::{a::{x, y}, b};\nuse crate::c::D;\n// crate::no\nfn f() -> crate::e::F {}\n\
                    #[cfg(test)]\nmod tests { use crate::g; }\n";
        let found: Vec<String> = named(without_tests(text)).into_iter().collect();
        assert_eq!(found, ["a", "b", "c", "e"]);
    }
}
