//! The content of a skill: its body, read on use, and the names of its files.

use super::arguments::{self, Given};
use super::folders::FILE;
use super::reading::{self, Form, Written};
use crate::files::{children, read};
use crate::front_matter::FILE_BYTES;
use crate::front_matter::problem::Findings;
use std::path::{Path, PathBuf};

/// The most bytes of a body that an agent gets at once.
const BODY_BYTES: usize = 100_000;
/// The most file names that an agent sees, and the depth to search for them.
const FILES: usize = 100;
const DEPTH: usize = 4;

/// A skill in use.
pub(crate) struct Loaded {
    written: Written,
    file: PathBuf,
    form: Form,
}

/// Reads the skill in `folder`, which must still be at the same place.
pub(crate) fn of_folder(folder: &Path) -> Result<Loaded, String> {
    load(&folder.join(FILE), Form::Skill)
}

/// Reads the skill or command in `file`, which must still be at the same place.
pub(super) fn load(file: &Path, form: Form) -> Result<Loaded, String> {
    let real = file.canonicalize().map_err(|error| format!("it cannot be read: {error}"))?;
    let file = file.to_owned();
    if real != file {
        return Err("it is not where it was, but behind a link".to_owned());
    }
    let text = read(&file, FILE_BYTES)?;
    let mut findings = Findings::default();
    let written = reading::read(&text, form, &mut findings);
    match (written, findings.first_error()) {
        (Some(written), None) => Ok(Loaded { written, file, form }),
        (_, Some(error)) => Err(format!("line {}: {}", error.place.line, error.reason)),
        (None, None) => Err("there is nothing in it".to_owned()),
    }
}

impl Loaded {
    /// Returns the tools that it asks for.
    pub(crate) fn allowed_tools(&self) -> &[String] {
        &self.written.allowed_tools
    }

    /// Returns the body with `arguments` in their places, cut if it is too long.
    pub(crate) fn filled(&self, arguments: &str, folder: &Path) -> String {
        let Written { body, arguments: names, .. } = &self.written;
        let given = Given::of(arguments, names, self.form);
        let mut text = arguments::fill(body, &given, folder);
        if text.len() > BODY_BYTES {
            let end = text.floor_char_boundary(BODY_BYTES);
            text.truncate(end);
            let file = &self.file;
            text.push_str(&format!(
                "\n[It is longer than the {BODY_BYTES} bytes shown. Read {} for the rest.]",
                file.display()
            ));
        }
        text
    }
}

/// The other files of a skill.
#[derive(Default)]
pub(crate) struct Files {
    /// Their paths relative to its folder.
    pub(crate) names: Vec<String>,
    /// There are more files than listed.
    pub(crate) cut: bool,
}

/// Lists the files in `folder`, without SKILL.md, hidden files and links.
pub(crate) fn files(folder: &Path) -> Files {
    let mut files = Files::default();
    walk(folder, folder, 0, &mut files);
    files
}

fn walk(root: &Path, folder: &Path, depth: usize, into: &mut Files) {
    for child in children(folder) {
        if into.cut {
            return;
        }
        let Ok(data) = std::fs::symlink_metadata(&child) else { continue };
        let below: PathBuf = child.strip_prefix(root).unwrap_or(&child).to_owned();
        if data.is_dir() && depth < DEPTH {
            walk(root, &child, depth + 1, into);
        } else if data.is_file() && below != Path::new(FILE) {
            into.cut = into.names.len() >= FILES;
            if !into.cut {
                into.names.push(below.display().to_string());
            }
        }
    }
}
