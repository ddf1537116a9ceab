//! Commands that agents run every day, with unrelated denials.

use super::*;

/// The commands, separated by blank lines.
fn commands() -> Vec<&'static str> {
    let text = include_str!("../../../tests/data/everyday-commands.sh");
    let commands = text.split("\n\n").map(|it| it.trim_matches('\n'));
    commands.filter(|it| !it.is_empty() && !it.starts_with("## ")).collect()
}

#[test]
fn everyday_commands_run_beside_denials_of_something_else() {
    let denials = [&["Bash(curl:*)"][..], &["Bash(rm:*)"], &["Bash(git push:*)"]];
    let mut refused = Vec::new();
    for command in commands() {
        for denials in denials {
            let case = Case::new().mode(Mode::AcceptEdits).deny(denials);
            if let Ruling::Deny { reason, .. } = case.bash(command) {
                refused.push(format!("{denials:?}: {command}\n    {reason}"));
            }
        }
    }
    assert!(refused.is_empty(), "{} refused\n{}", refused.len(), refused.join("\n"));
}
