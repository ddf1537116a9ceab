//! File patterns as the tools understand them: `*.rs` matches in any folder, `src/*.rs` only
//! there, `**` any number of folders, `{a,b}` either.

use crate::failure::Failure;
use crate::place::{Place, Root, RunFiles};
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;

/// Longer ones are a mistake.
const PATTERN_BYTES: usize = 1000;

/// Which files are meant.
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

/// What the pattern is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The path below the folder that is searched.
    Searched,
    /// The path below this folder.
    Below(Root),
}

impl Pattern {
    /// Understands `pattern`. An absolute one must be inside a folder of the run. With a leading
    /// `!` it means all other files.
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

    /// The folder that is searched when the call names none.
    pub(crate) fn root(&self) -> Root {
        match (self.base, self.wanted) {
            (Base::Below(root), Wanted::Matching) => root,
            _ => Root::Workspace,
        }
    }

    /// True when `path` (below the root of `searched`), found in a search of `searched`, is
    /// meant.
    pub(crate) fn wants(&self, searched: &Place, path: &Path) -> bool {
        let matches = match self.base {
            Base::Searched => {
                self.matcher.is_match(path.strip_prefix(searched.path()).unwrap_or(path))
            }
            Base::Below(root) => root == searched.root() && self.matcher.is_match(path),
        };
        matches == (self.wanted == Wanted::Matching)
    }
}
