//! The tool Bash: one command in a fresh shell, through the launcher.

mod complaint;

use crate::arguments::{Arguments, spec};
use crate::blocking;
use crate::built_in::BuiltIn;
use crate::confine::{Confinement, listed_names, refused_names};
use crate::failure::{Failure, answer};
use crate::launch::{Command, Finished, LaunchError, Launcher, Status};
use crate::sandbox::Sandbox;
use crate::unseen::{now_fixed, why_none_runs};
use async_trait::async_trait;
use posse_agent::{Answer, SeenFiles, Tool, ToolContext};
use posse_protocol::{About, Effect, Part, Profile, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The default time for a command, in milliseconds.
const TIMEOUT_MS: u64 = 120_000;
/// The maximum time that a call can ask for, in milliseconds.
const LONGEST_TIMEOUT_MS: u64 = 600_000;
/// How many bytes of output are kept.
const OUTPUT_BYTES: usize = 30_000;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = "Runs a bash command in the working folder, in a new shell, without input. \
                       What it leaves running is killed. Only commands of this run see its /tmp: \
                       leave there nothing that others need. Read, search and change files with \
                       the other tools.";
    spec(
        "Bash",
        description,
        Effect::Execute,
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": LONGEST_TIMEOUT_MS,
                    "description": "ms, default 120000",
                },
                "description": {"type": "string"},
            },
            "required": ["command"],
        }),
    )
    .about(About::Command("command".into()))
    .aliases(&[
        "bash",
        "shell",
        "Shell",
        "sh",
        "run_command",
        "run_shell_command",
        "execute_command",
    ])
});

pub(crate) const TOOL: BuiltIn = BuiltIn {
    spec: &SPEC,
    make: |run| {
        let launcher = run.launcher.filter(|launcher| launcher.offers(run.confinement))?;
        let sandbox = Sandbox::new(run.files(&SPEC.name), run.confinement.clone());
        Some(Arc::new(Bash { sandbox, launcher: launcher.clone() }))
    },
};

pub(crate) struct Bash {
    pub sandbox: Sandbox,
    pub launcher: Launcher,
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn preview(&self, input: &Value) -> Option<String> {
        input.get("command")?.as_str().map(str::to_owned)
    }

    async fn refusal(&self, input: &Value, _seen: Option<&SeenFiles>) -> Option<String> {
        Arguments::check(&SPEC, input.clone()).err().map(|Failure(why)| why)
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        answer(self.run(input, context).await)
    }
}

impl Bash {
    /// Stores a stash that git made by itself and could not restore: nothing else refers to it.
    async fn keep_autostash(&self, failed: &Command, context: &ToolContext) -> Option<String> {
        let shell = ["--noprofile", "--norc", "-c", KEEP_AUTOSTASH];
        let args = shell.iter().map(Into::into).collect();
        let command = Command { args, deadline: KEEPING, ..failed.clone() };
        let (claim, cancel, workspace) =
            (&context.claim, &context.cancel, &self.sandbox.files.workspace);
        let run = self.launcher.run_while(claim, workspace, &command, cancel, &|_: &str| {});
        let output = run.await.ok()?.output;
        let commits: Vec<&str> = output.lines().filter(|line| is_commit(line)).collect();
        (!commits.is_empty()).then(|| commits.join(", "))
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::check(&SPEC, input)?;
        let waits = || context.progress("waiting for other commands to end\n");
        let Some(_turn) = self.launcher.turn(&context.cancel, waits).await else {
            return Err(Failure("the command was cancelled before it began".to_owned()));
        };
        let (confinement, fixed_before) = self.sandbox.confinement().await?;
        let timeout = arguments.number("timeout").unwrap_or(TIMEOUT_MS);
        let shell = ["--noprofile", "--norc", "-c", arguments.text("command")];
        let command = Command {
            program: "bash".into(),
            args: shell.iter().map(Into::into).collect(),
            cwd: PathBuf::from("."),
            variables: self.sandbox.variables()?,
            deadline: Duration::from_millis(timeout),
            output_cap: OUTPUT_BYTES,
            writable_bytes: context.writable_bytes,
            confinement,
        };
        let progress = |text: &str| context.progress(text);
        let locks = locks_of_git(self.sandbox.files.workspace.path());
        let workspace = &self.sandbox.files.workspace;
        let (claim, cancel) = (&context.claim, &context.cancel);
        let run = self.launcher.run_while(claim, workspace, &command, cancel, &progress);
        let finished = run.await;
        let finished =
            finished.map_err(|error| Failure(self.why_not(&error, &command.confinement)))?;
        let new = self.appeared_against_rules(&command.confinement, fixed_before).await?;
        let listed = match command.confinement.profile {
            Profile::WorkspaceWrite => listed_names(&finished.output, workspace.path()),
            Profile::ReadOnly | Profile::Full => Vec::new(),
        };
        let refused = match command.confinement.profile {
            Profile::WorkspaceWrite => refused_names(&finished.output, workspace.path()),
            Profile::ReadOnly | Profile::Full => Vec::new(),
        };
        let hidden = hidden_in(workspace.path(), &command.confinement.hidden);
        let hidden = match complaint::is_called_unclean(&finished.output) {
            true => hidden.into_iter().take(5).collect(),
            false => complaint::in_the_way(&finished.output, &hidden),
        };
        let is_elsewhere = command.confinement.profile == Profile::WorkspaceWrite
            && writes_git_elsewhere(&finished.output, workspace.path());
        let is_boxed = command.confinement.profile != Profile::Full;
        let has_no_network = is_boxed
            && command.confinement.network.is_off()
            && complaint::misses_network(&finished.output);
        let unstored = match is_boxed && !is_elsewhere {
            true => complaint::unstored(&finished.output),
            false => None,
        };
        let missed = match finished.status {
            Status::Exited(0) => None,
            _ => self.launcher.missed(&finished.output, workspace, &command.confinement),
        };
        let hindered = self.launcher.hindered(&finished.output, workspace, &command.confinement);
        let reasons = self.launcher.reasons(&finished.output, workspace, &command.confinement);
        let cannot_sign = command.confinement.profile != Profile::Full
            && finished.output.lines().any(|line| UNSIGNED.iter().any(|it| line.contains(it)));
        let left_behind = match command.confinement.profile {
            Profile::WorkspaceWrite => left_behind(&finished.output),
            Profile::ReadOnly | Profile::Full => Vec::new(),
        };
        let stashed = match left_behind.is_empty() {
            true => None,
            false => self.keep_autostash(&command, context).await,
        };
        let locked: Vec<String> = match finished.status {
            Status::Exited(_) => Vec::new(),
            _ => locks_of_git(workspace.path()).difference(&locks).cloned().collect(),
        };
        let only_reads = command.confinement.profile != self.sandbox.confinement.profile;
        let is_refused = command.confinement.profile == Profile::ReadOnly
            && finished.output.contains("Read-only file system");
        let set_aside = some_of(&finished.set_aside);
        let mut output = tell(finished, command.deadline);
        if only_reads {
            output.parts.push(Part::text(
                "[commands can only read this folder: its file system ignores case in names, so \
                 that settings and hooks of git and editors could not be kept from them. Change \
                 files with the other tools.]",
            ));
        }
        if !set_aside.is_empty() {
            output.parts.push(Part::text(format!(
                "[set aside: {set_aside}. Git would run or obey it when the user calls git. \
                 Repositories that commands make or change have no hooks, no links in git's data and no \
                 settings that name programs or files. What was there lies beside it under a \
                 name that ends in `.set-aside`, except for links. Tell the user if the task needs it.]"
            )));
        }
        if !locked.is_empty() {
            output.parts.push(Part::text(format!(
                "[git was killed before it could remove {}. While it is there, git refuses to work in \
                 this repository. If no other git is at work there, remove it, or tell the user to.]",
                some_of(&locked)
            )));
        }
        if !left_behind.is_empty() {
            // Git itself considers this a success.
            output.is_error = true;
            output.parts.push(Part::text(format!(
                "[git could not change {}: commands may change nothing outside of the folder that you work \
                 in, and nothing in it that the user's programs run or obey. What git could not change \
                 is not what the branch has, and `git commit -a` undoes what it has there. If you have committed since, take that back: `git restore \
                 --staged --source=COMMIT -- FILE`, with the commit before yours, and `git commit \
                 --amend --no-edit`. If git failed, other files may have changed already: `git status` and \
                 `git stash list` show them. Tell the user which files these are; `git restore FILE` gives \
                 one the content of the branch, and takes away what they have changed in it themselves.]",
                some_of(&left_behind)
            )));
        }
        if let Some(stashed) = stashed {
            output.parts.push(Part::text(format!(
                "[git had put uncommitted work away before it failed. It is in the stash now, which \
                 `git stash list` shows: {stashed}. `git stash apply` brings it back as far as it lies \
                 in this folder. Tell the user.]"
            )));
        }
        if let Some(missed) = missed {
            output.parts.push(Part::text(format!(
                "[commands see little of the home folder: {missed} is hidden from them. If the task \
                 needs it, tell the user to add it to `readable` under `[command]` in their settings.]"
            )));
        }
        if let Some((folder, link)) = hindered {
            let (folder, link) = (Path::new("./").join(folder), link.display());
            output.parts.push(Part::text(format!(
                "[{link} is a link that the user's programs follow. So commands can add, remove and rename \
                 nothing in {}, the folder around it; they can change files there and work in the folders \
                 below. Change such files with the other tools.]",
                folder.display()
            )));
        }
        if is_refused && !only_reads {
            output.parts.push(Part::text(
                "[the commands of this agent can read this folder and not change it. To try again does \
                 not help.]",
            ));
        }
        for (path, why) in reasons {
            output.parts.push(Part::text(format!(
                "[no command can change {}: {why}. It is not busy, and to try again does not help. If \
                 the task needs it, tell the user what to change.]",
                path.display()
            )));
        }
        if cannot_sign {
            output.parts.push(Part::text(
                "[the keys with which the user signs are hidden from commands. Leave your changes in \
                 the files, and tell the user to commit them.]",
            ));
        }
        if has_no_network {
            output.parts.push(Part::text(
                "[commands have no network here, and to try again does not help. Work with what is on \
                 this machine. If the task needs another machine, tell the user which, and that they \
                 start the run with `--network HOST` then.]",
            ));
        }
        output.parts.extend(unstored.map(|it| Part::text(it.note())));
        if is_elsewhere {
            output.parts.push(Part::text(
                "[git keeps the data of this repository outside of the folder that you work in, as for \
                 a worktree or a submodule. Commands can read them there and not change them. You need \
                 not commit: leave your changes in the files, and say in your answer what you changed.]",
            ));
        }
        if !new.is_empty() {
            let names = some_of(&new);
            output.parts.push(Part::text(format!(
                "[new since the command began, where rules deny changes: {names}. If the command made \
                 it, it should not have: tell the user. It was left in place, since the user may \
                 have made it.]"
            )));
        }
        if !hidden.is_empty() {
            let names = hidden.join(", ");
            output.parts.push(Part::text(format!(
                "[a rule hides {names} from commands: they can neither read nor change the file, and \
                 git may call it changed when it is not. Name the files that you add and commit; leave \
                 to the user what would change it.]"
            )));
        }
        if !refused.is_empty() && listed.is_empty() {
            let names = refused.join(", ");
            output.parts.push(Part::text(format!(
                "[no command and no tool here can make or change {names}: programs outside of the \
                 sandbox run or obey it. Tell the user what to put there.]"
            )));
        }
        if !listed.is_empty() {
            let names = listed.join(", ");
            output.parts.push(Part::text(format!(
                "[not in the folder: {names}. The sandbox shows these names, all empty, while \
                 a command runs, so that no command can create them.]"
            )));
        }
        Ok(output)
    }

    /// Why a command did not run.
    fn why_not(&self, error: &LaunchError, confinement: &Confinement) -> String {
        let is_about_place =
            matches!(error, LaunchError::NotConfined { .. } | LaunchError::NotStarted { .. });
        let rules = self.sandbox.files.rules.as_ref().filter(|_| is_about_place);
        let by_rules = rules.and_then(|rules| why_none_runs(&**rules, &confinement.hidden));
        by_rules.map_or_else(|| error.to_string(), |why| format!("not run: {why} ({error})"))
    }

    /// Returns files that a rule forbids to change and that are new since the command began. It is
    /// unknown whether the command or the user made them, so they stay.
    async fn appeared_against_rules(
        &self,
        confinement: &Confinement,
        before: HashSet<PathBuf>,
    ) -> Result<Vec<String>, Failure> {
        let Some(rules) = self.sandbox.files.rules.clone() else { return Ok(Vec::new()) };
        if confinement.profile != Profile::WorkspaceWrite {
            return Ok(Vec::new());
        }
        let workspace = self.sandbox.files.workspace.path().to_owned();
        // The command could not write there.
        let closed = [confinement.fixed.as_slice(), &confinement.hidden].concat();
        blocking::to_the_end(move || {
            let mut new: Vec<PathBuf> = now_fixed(&*rules, &workspace).into_iter().collect();
            let is_closed = |path: &Path| closed.iter().any(|place| path.starts_with(place));
            new.retain(|path| !before.contains(path) && !is_closed(path));
            new.sort();
            let below = |path: &PathBuf| path.strip_prefix(&workspace).unwrap_or(path).to_owned();
            Ok(new.iter().map(|path| below(path).display().to_string()).collect())
        })
        .await
    }
}

/// The maximum number of files and folders of git's data to search for locks.
const LOOKED_THROUGH: usize = 2_000;

/// The lock files of git in the repository around `folder`. A program that changes something there
/// holds one meanwhile.
fn locks_of_git(folder: &Path) -> BTreeSet<String> {
    let data = folder.ancestors().map(|around| around.join(".git")).find(|data| data.is_dir());
    let mut locks = BTreeSet::new();
    let mut looked_at = 0;
    let mut folders: Vec<PathBuf> = data.iter().cloned().collect();
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > LOOKED_THROUGH {
                return locks;
            }
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            // Of the folders beside them, only `refs` has locks.
            if is_folder && (path.ends_with("refs") || Some(&at) != data.as_ref()) {
                folders.push(path);
            } else if !is_folder && path.extension().is_some_and(|end| end == "lock") {
                locks.insert(path.strip_prefix(folder).unwrap_or(&path).display().to_string());
            }
        }
    }
    locks
}

/// The first of these names, and the number of the others.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 10;
    match names.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

/// Messages of git that it cannot sign.
const UNSIGNED: [&str; 2] = ["gpg failed to sign", "failed to sign the data"];

/// The names of hidden paths in `workspace`.
fn hidden_in(workspace: &Path, hidden: &[PathBuf]) -> Vec<String> {
    let inside = hidden.iter().filter_map(|path| path.strip_prefix(workspace).ok());
    inside.map(|name| name.display().to_string()).filter(|name| !name.is_empty()).collect()
}

/// Returns true for the hash of a commit.
fn is_commit(line: &str) -> bool {
    line.len() >= 40 && line.bytes().all(|letter| letter.is_ascii_hexdigit())
}

/// Returns true if `text`, the output of a command, complains that git's data cannot be written, and
/// that data is outside `workspace`.
fn writes_git_elsewhere(text: &str, workspace: &Path) -> bool {
    let mut lines = text.lines().filter(|line| line.contains("Read-only file system"));
    lines.any(|line| {
        let mut quoted = line.split('\'').filter(|part| part.starts_with('/'));
        quoted.any(|path| path.contains("/.git/") && !Path::new(path).starts_with(workspace))
    })
}

/// How long storing a stash may take.
const KEEPING: Duration = Duration::from_secs(20);

/// Adds a stash that git made by itself, in a failed rebase or merge, to the list of stashes, and
/// prints its hash.
const KEEP_AUTOSTASH: &str = r#"
data=$(git rev-parse --git-dir) || exit
for file in "$data/rebase-merge/autostash" "$data/rebase-apply/autostash" "$data/MERGE_AUTOSTASH"; do
    [ -f "$file" ] && read -r commit < "$file" || continue
    git stash list --format=%H | grep -qx "$commit" && continue
    git stash store -m autostash "$commit" && echo "$commit"
done
"#;

/// The files that git reports as skipped although it should have changed them.
fn left_behind(output: &str) -> Vec<String> {
    let starts = [
        "error: unable to unlink old '",
        "error: unable to create file ",
        "warning: unable to unlink '",
    ];
    let ends = ["Read-only file system", "Device or resource busy"];
    let file = |line: &str| {
        let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
        let name = ends.iter().find_map(|end| rest.strip_suffix(end))?;
        Some(name.trim_end_matches([':', ' ', '(', '\'']).to_owned())
    };
    let mut files: Vec<String> = output.lines().filter_map(file).collect();
    files.dedup();
    files
}

/// The output for the model, with remarks about how the command ended.
fn tell(finished: Finished, deadline: Duration) -> ToolOutput {
    let mut text = finished.output;
    if text.is_empty() {
        text.push_str("[no output]");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let failed = match finished.status {
        Status::Exited(0) => None,
        Status::Exited(code) => Some(format!("exit code {code}")),
        Status::Signalled(signal) => Some(format!("killed by signal {signal}")),
        Status::OverLimit(limit) => {
            Some(format!("{limit}, and was killed with all it had started"))
        }
        Status::Cancelled => Some("the command was cancelled and killed".to_owned()),
        Status::TimedOut => Some(format!(
            "timed out after {} s and killed with all it had started; set a longer timeout (at \
             most {LONGEST_TIMEOUT_MS} ms) or do less at once",
            deadline.as_secs_f64()
        )),
    };
    if finished.leftovers > 0 && matches!(finished.status, Status::Exited(_)) {
        let count = finished.leftovers;
        let _ = match count {
            1 => writeln!(text, "[a process that it left running was killed]"),
            _ => writeln!(text, "[{count} processes that it left running were killed]"),
        };
    }
    if finished.survivors > 0 {
        let count = finished.survivors;
        let _ = match count {
            1 => writeln!(text, "[a process that it started could not be killed]"),
            _ => writeln!(text, "[{count} processes that it started could not be killed]"),
        };
    }
    let said = match failed {
        None => ToolOutput::text(text),
        Some(reason) => {
            let _ = writeln!(text, "[{reason}]");
            ToolOutput::error(text)
        }
    };
    let confined_by = finished.confined_by.map(|backend| backend.to_string());
    ToolOutput { written_bytes: finished.written_bytes, confined_by, ..said }
}
