//! A built-in tool is one file and one line in a list. No other source may name it.

use super::{read, rust_files};
use std::path::Path;

/// The crates that must not name tools. The offline model names the tools that it calls.
const CRATES: [&str; 5] = ["protocol", "agent", "tools", "runtime", "cli"];
/// Names of tools that are also words of rules, and the files that define these words.
const WORDS: [&str; 3] = ["Read", "Write", "Edit"];
const LANGUAGE: [&str; 2] = ["protocol/src/grant.rs", "runtime/src/policy/rule.rs"];

/// Finds sources that name a built-in tool.
pub fn check(root: &Path, problems: &mut Vec<String>) {
    let names: Vec<String> = posse_tools::specs().map(|spec| spec.name.clone()).collect();
    for path in CRATES.iter().flat_map(|name| rust_files(&root.join(name).join("src"))) {
        let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
        let text = read(&path, problems);
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if is_test || text.contains("const TOOL: BuiltIn") {
            continue;
        }
        let code = text.split("\n#[cfg(test)]\n").next().unwrap_or(&text);
        for (index, line) in code.lines().enumerate() {
            for name in &names {
                let is_word = WORDS.contains(&name.as_str()) && LANGUAGE.contains(&&*shown);
                if !is_word && names_it(line, name) {
                    problems.push(format!(
                        "{shown}:{}: names the tool `{name}`; ask its ToolSpec instead",
                        index + 1
                    ));
                }
            }
        }
    }
}

/// True when `line` is not a comment and has a text that is `name` or a rule about it.
fn names_it(line: &str, name: &str) -> bool {
    let is_comment = line.trim_start().starts_with("//");
    let texts = [format!("\"{name}\""), format!("\"{name}({{")];
    !is_comment && texts.iter().any(|text| line.contains(text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_by_a_text_and_not_by_a_comment() {
        assert!(names_it(r#"if call.name == "Glob" {"#, "Glob"));
        assert!(names_it(r#"format!("Glob({path})")"#, "Glob"));
        assert!(!names_it(r#"/// As "Glob" does."#, "Glob"));
        assert!(!names_it(r#"let Glob = "Globe";"#, "Glob"));
    }
}
