//! Files of Claude Code that Posse does not use. A message names them once per folder, and again
//! when they change.

use super::Common;
use crate::clean::clean_line;
use crate::exit::Failure;
use crate::screen::Screen;
use posse::{RunSpec, Runtime};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most folders to remember. Beyond that, all are forgotten.
const FOLDERS: usize = 1_000;

impl Common {
    /// The files and settings of Claude Code for `folder` that Posse does not use, in one line.
    pub fn unused(&self, folder: &Path) -> Result<Option<String>, Failure> {
        let unused = self.rule_files().unused(folder)?;
        let line = || clean_line(&format!("Posse does not use yet: {}", unused.join(", ")), 1_000);
        Ok((!unused.is_empty()).then(line))
    }

    /// Says what Posse does not use for `folder`, unless it said so before, and which rules it
    /// applies differently than written.
    ///
    /// # Errors
    /// If a file of rules cannot be parsed.
    pub fn tell_unused(&self, folder: &Path, screen: &mut Screen) -> Result<(), Failure> {
        let settings = self.rule_files().claude(folder)?;
        // Without output, say it the next time.
        if self.global.quiet || self.global.json {
            return Ok(());
        }
        for settings in settings {
            for warning in &settings.warnings {
                screen.remark(&clean_line(&format!("◇ {warning}"), 600));
            }
        }
        let line = self.unused(folder)?.unwrap_or_default();
        let told = self.environment.state_folder.as_ref().map(|state| state.join("unused.json"));
        if !is_new(told.as_deref(), folder, &line) {
            return Ok(());
        }
        if !line.is_empty() {
            screen.remark(&format!("◇ {line}"));
        }
        Ok(())
    }

    /// Says which skill or command `prompt` invokes.
    pub fn tell_invoked(&self, runtime: &Runtime, spec: &RunSpec, screen: &mut Screen) {
        let catalog = runtime.skills_in(&spec.workspace);
        let invoked = spec.prompt.as_deref().and_then(|prompt| catalog.invoked(prompt));
        if let Some((skill, _)) = invoked.filter(|_| !self.global.quiet && !self.global.json) {
            let kind = if skill.is_command { "command" } else { "skill" };
            let file = skill.file.display();
            screen.remark(&clean_line(&format!("◇ {kind} {}: {file}", skill.name), 300));
        }
    }
}

/// True when `line` is new for `folder`, and remembers it. Without a memory, every line is new.
fn is_new(memory: Option<&Path>, folder: &Path, line: &str) -> bool {
    let Some(memory) = memory else { return true };
    let text = std::fs::read_to_string(memory).unwrap_or_default();
    let mut known: BTreeMap<PathBuf, String> = serde_json::from_str(&text).unwrap_or_default();
    if known.get(folder).map_or("", String::as_str) == line {
        return false;
    }
    if known.len() >= FOLDERS {
        known.clear();
    }
    known.insert(folder.to_owned(), line.to_owned());
    // If this fails, the message is only shown again.
    let _ = remember(memory, &known);
    true
}

fn remember(memory: &Path, known: &BTreeMap<PathBuf, String>) -> std::io::Result<()> {
    let folder = memory.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let aside = memory.with_extension(format!("{}.new", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(&serde_json::to_vec(known)?)?;
    std::fs::rename(aside, memory)
}
