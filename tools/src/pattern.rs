//! File patterns of the tools: `*.rs` matches in any folder, `src/*.rs` only in `src`, `**` any number
//! of folders, `{a,b}` either of the two.

use crate::failure::Failure;
use crate::run_path::{Root, RunFiles, RunPath};
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;

/// The maximum length of a pattern. A longer one is a mistake.
const PATTERN_BYTES: usize = 1000;

/// A file pattern.
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    wanted: Wanted,
    base: Base,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Matching,
    Others,
}

/// The path that the pattern is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The path relative to the searched folder.
    Searched,
    /// The path relative to this folder.
    Below(Root),
}

impl Pattern {
    /// Parses `pattern`. An absolute pattern must be inside a folder of the run. A leading `!` selects
    /// all other files.
    pub(crate) fn parse(files: &RunFiles, pattern: &str) -> Result<Self, Failure> {
        let (wanted, rest) = match pattern.strip_prefix('!') {
            Some(rest) => (Wanted::Others, rest),
            None => (Wanted::Matching, pattern),
        };
        if rest.is_empty() || rest.len() > PATTERN_BYTES {
            return Err(Failure::new("the file pattern is empty or too long; try \"**/*.rs\""));
        }
        let (base, rest) = if rest.starts_with('/') {
            let (root, below) = files.locate(rest)?;
            (Base::Below(root), below.to_string_lossy().into_owned())
        } else {
            (Base::Searched, rest.trim_start_matches("./").to_owned())
        };
        let anywhere = base == Base::Searched && !rest.contains('/');
        let glob = if anywhere { format!("**/{rest}") } else { rest };
        let built = GlobBuilder::new(&glob).literal_separator(true).build();
        let matcher = built.map_err(|error| {
            Failure(format!("{pattern:?} is not a file pattern: {}; try \"**/*.rs\"", error.kind()))
        })?;
        Ok(Pattern { matcher: matcher.compile_matcher(), wanted, base })
    }

    /// The folder to search if the call names none.
    pub(crate) fn root(&self) -> Root {
        match (self.base, self.wanted) {
            (Base::Below(root), Wanted::Matching) => root,
            _ => Root::Workspace,
        }
    }

    /// Returns true if the pattern selects `path`, which a search of `searched` found. `path` is
    /// relative to the root of `searched`.
    pub(crate) fn wants(&self, searched: &RunPath, path: &Path) -> bool {
        let matches = match self.base {
            Base::Searched => {
                self.matcher.is_match(path.strip_prefix(searched.path()).unwrap_or(path))
            }
            Base::Below(root) => root == searched.root() && self.matcher.is_match(path),
        };
        matches == (self.wanted == Wanted::Matching)
    }
}
