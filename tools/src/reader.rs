//! Reads text files of a folder for the runtime itself, as a tool would read them: beneath the
//! handle of the folder, and only if the rules allow it.

use crate::failure::PathError;
use crate::linux;
use crate::path_rules::{PathRules, Reached, Usage};
use crate::run_path::{Root, RunFiles, RunPath};
use crate::workspace::Workspace;
use posse_protocol::hex;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// Its real path, absolute.
    pub path: PathBuf,
    /// Its text, from the beginning.
    pub text: String,
    /// SHA-256 of the bytes that were read, in hexadecimal digits.
    pub hash: String,
}

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// There is no such file.
    Missing,
    /// The path leads out of the folder.
    Outside,
    /// Any other reason, in words.
    Refused(String),
}

/// Reads files of one folder.
#[derive(Clone)]
pub struct Reader {
    files: Arc<RunFiles>,
    rules: Option<Arc<dyn PathRules>>,
}

impl Reader {
    /// Reads files of `folder`, except those that `rules` deny to read or that a person must allow.
    pub fn new(folder: &Arc<Workspace>, rules: Option<Arc<dyn PathRules>>) -> Self {
        let (tool, workspace) = ("Read".to_owned(), folder.clone());
        let files = RunFiles { tool, workspace, scratch: None, read_only: Vec::new(), rules: None };
        Reader { files: Arc::new(files), rules }
    }

    /// The canonical path of the folder.
    pub fn folder(&self) -> &Path {
        self.files.workspace.path()
    }

    /// Reads the file at `path`, relative to the folder, if it has at most `most` bytes.
    ///
    /// # Errors
    /// If there is no such file, or it may not be read or is no text.
    pub fn read(&self, path: &Path, most: u64) -> Result<TextFile, Unread> {
        let place = self.files.place_in(Root::Workspace, path).map_err(unread)?;
        let (file, _) = place.open_file(Usage::Read).map_err(unread)?;
        let refused =
            |error: std::io::Error| Unread::Refused(format!("it cannot be read: {error}"));
        let real = linux::real_path(&file).map_err(refused)?;
        let root = linux::real_path(self.files.workspace.dir()).map_err(refused)?;
        // The folder may have moved. What counts is the path from it to the file.
        let inside = real.strip_prefix(&root).map_err(|_| Unread::Outside)?;
        let path = self.folder().join(inside);
        self.check(&place, &path)?;
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(refused)?;
        if bytes.len() as u64 > most {
            return Err(Unread::Refused(format!("it is larger than {most} bytes")));
        }
        let hash = hex(&Sha256::digest(&bytes));
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Unread::Refused("it is not text in UTF-8".to_owned()))?;
        Ok(TextFile { path, text, hash })
    }

    /// Returns an error if a rule denies the file at `place`, which really is at `real`.
    fn check(&self, place: &RunPath, real: &Path) -> Result<(), Unread> {
        let Some(rules) = &self.rules else { return Ok(()) };
        let named = place.absolute();
        match [&named, real].into_iter().find_map(|path| why_denied(&**rules, path)) {
            Some(why) => Err(Unread::Refused(why)),
            None => Ok(()),
        }
    }
}

/// Returns why `rules` do not allow the runtime to read the file at `path`, an absolute path, for an
/// agent. A rule that asks a person counts as a denial: nobody is asked here.
pub fn why_denied(rules: &dyn PathRules, path: &Path) -> Option<String> {
    // As if a call named it: scopes are about what an agent may look for.
    let why = rules.refuse(Some("Read"), Usage::Read, Reached::Named, path, path);
    let asks = || "a rule asks a person about it".to_owned();
    why.or_else(|| rules.denies_read(path).then(asks))
}

fn unread(error: PathError) -> Unread {
    match error {
        // While commands run, an empty folder can be in the place of a missing file.
        PathError::Missing { .. } | PathError::Folder { .. } => Unread::Missing,
        PathError::Outside { .. } | PathError::Escapes { .. } => Unread::Outside,
        other => Unread::Refused(other.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_outside_of_the_folder_is_read_and_nothing_large_or_odd() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        let folder = root.join("in");
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(folder.join("a.md"), "text").unwrap();
        fs::write(folder.join("odd"), [b'a', 0xff]).unwrap();
        fs::write(root.join("out.md"), "secret").unwrap();
        symlink("../out.md", folder.join("out")).unwrap();
        symlink("../a.md", folder.join("sub/in")).unwrap();
        let reader = Reader::new(&Workspace::open(&folder).unwrap(), None);
        let read = |path: &str| reader.read(Path::new(path), 4);
        let file = read("a.md").unwrap();
        assert_eq!((file.text.as_str(), file.path), ("text", folder.join("a.md")));
        assert!(file.hash.starts_with("982d9e3eb996f559"), "{}", file.hash);
        assert_eq!(read("sub/in").unwrap().path, folder.join("a.md"));
        assert_eq!(read("none.md"), Err(Unread::Missing));
        for path in ["out", "../out.md", "sub/../../out.md"] {
            assert_eq!(read(path), Err(Unread::Outside), "{path}");
        }
        assert!(matches!(read("odd"), Err(Unread::Refused(why)) if why.contains("UTF-8")));
        assert_eq!(read("sub"), Err(Unread::Missing), "a folder");
        fs::write(folder.join("a.md"), "longer").unwrap();
        assert!(matches!(read("a.md"), Err(Unread::Refused(why)) if why.contains("4 bytes")));
    }
}
