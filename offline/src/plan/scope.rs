//! Which part of the project a question is limited to.

use crate::answer::{Answer, code};
use crate::notes::{Notes, Search};
use crate::question::Question;

/// The part of the project that a question is limited to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    /// A folder or a file; empty for the whole project.
    pub path: String,
    /// Endings of files, without the dot; none for all.
    pub endings: Vec<String>,
}

/// The limits of a question, if the named folder or file exists.
pub(super) enum Limited {
    To(Scope),
    /// The folder or file that the question names is not there.
    Missing(String),
}

/// Finds out what `question` is limited to.
pub(super) fn of(question: &Question, notes: &mut Notes<'_>) -> Option<Limited> {
    let endings = question.endings.clone();
    if let Some(file) = question.files.first() {
        let found = notes.glob(&format!("**/{}", file.path))?;
        let best = found.list.into_iter().min_by_key(|path| (*path != file.path, path.len()));
        return Some(match best {
            Some(path) => Limited::To(Scope { path, endings: Vec::new() }),
            None => Limited::Missing(file.path.clone()),
        });
    }
    let Some(folder) = &question.folder else {
        return Some(Limited::To(Scope { path: String::new(), endings }));
    };
    match find_folder(&folder.path, notes)? {
        Some(path) => Some(Limited::To(Scope { path, endings })),
        None if folder.sure => Some(Limited::Missing(format!("{}/", folder.path))),
        None => Some(Limited::To(Scope { path: String::new(), endings })),
    }
}

/// The folder called `name` that is nearest to the top.
pub(super) fn find_folder(name: &str, notes: &mut Notes<'_>) -> Option<Option<String>> {
    let inside = notes.glob(&format!("**/{name}/**"))?;
    let folder = |path: &String| {
        let mut ends = path.match_indices('/').map(|(at, _)| &path[..at]);
        ends.find(|folder| *folder == name || folder.ends_with(&format!("/{name}")))
            .map(str::to_owned)
    };
    Some(
        inside
            .list
            .iter()
            .filter_map(folder)
            .min_by_key(|path| (path.matches('/').count(), path.len())),
    )
}

impl Scope {
    /// ` in `src/``, for the end of a sentence; nothing for the whole project.
    pub fn shown(&self, is_file: bool) -> String {
        match self.path.as_str() {
            "" => String::new(),
            path if is_file => format!(" in {}", code(path)),
            path => format!(" in {}", code(&format!("{path}/"))),
        }
    }

    /// `search`, within these bounds.
    pub fn narrow(&self, search: Search) -> Search {
        let search = if self.path.is_empty() { search } else { search.within(&self.path) };
        match self.endings.as_slice() {
            [] => search,
            [one] => search.files_like(&format!("**/*.{one}")),
            many => search.files_like(&format!("**/*.{{{}}}", many.join(","))),
        }
    }

    /// Whether the file at `path` is within these bounds.
    pub fn holds(&self, path: &str) -> bool {
        let inside = self.path.is_empty()
            || path == self.path
            || path.strip_prefix(&self.path).is_some_and(|rest| rest.starts_with('/'));
        let ends = |ending: &String| path.ends_with(&format!(".{ending}"));
        inside && (self.endings.is_empty() || self.endings.iter().any(ends))
    }
}

/// Says that the named folder or file does not exist.
pub(super) fn tell_missing(path: &str) -> Answer {
    let kind = if path.ends_with('/') { "folder" } else { "file" };
    let mut answer = Answer::new();
    answer.say(format!(
        "I found no {kind} {}. I looked at every depth, but not at ignored files.",
        code(path)
    ));
    answer
}
