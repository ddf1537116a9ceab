//! What the processes of one run can reach: its grant, its own folders, and what rules keep back.

use crate::blocking;
use crate::confine::{Confinement, folds_case};
use crate::failure::Failure;
use crate::place::RunFiles;
use crate::unseen::{fixed, unseen};
use posse_protocol::Profile;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// How far the processes of a run reach. Looked at anew for each of them.
pub(crate) struct Sandbox {
    pub(crate) files: Arc<RunFiles>,
    /// As the grant has it.
    pub(crate) confinement: Confinement,
    /// Whether the workspace is on a file system that takes names in capital letters for the same.
    folds_case: OnceLock<bool>,
}

impl Sandbox {
    pub(crate) fn new(files: Arc<RunFiles>, confinement: Confinement) -> Sandbox {
        Sandbox { files, confinement, folds_case: OnceLock::new() }
    }

    /// With the folders of the run besides its workspace, and without what rules keep back.
    /// And what rules keep from being changed and is there.
    pub(crate) async fn confinement(&self) -> Result<(Confinement, HashSet<PathBuf>), Failure> {
        let mut files = HashSet::new();
        let mut confinement = self.confinement.clone();
        let folds_case = confinement.profile != Profile::Full && self.folds_case().await?;
        if folds_case {
            confinement.profile = Profile::ReadOnly;
        }
        if let Some(scratch) = &self.files.scratch {
            // Whoever removes what is left looks for this one.
            scratch.open()?;
            confinement.writable.push(scratch.path().to_owned());
            confinement.temporary = Some(scratch.temporary().open()?.path);
        }
        let read_only = self.files.read_only.iter();
        confinement.readable.extend(read_only.map(|folder| folder.path().to_owned()));
        if let Some(rules) = self.files.rules.clone()
            && confinement.profile != Profile::Full
        {
            let root = self.files.workspace.path().to_owned();
            let look = move || Ok((unseen(&*rules, &root)?, fixed(&*rules, &root)?));
            let (unseen, fixed) = blocking::to_the_end(look).await?;
            let inside = |path: &&PathBuf| path.starts_with(self.files.workspace.path());
            if folds_case && let Some(path) = unseen.iter().find(inside) {
                return Err(Failure(format!(
                    "not run: a rule hides {} from commands, and they could read it by its name in \
                     other letters, since the file system ignores case; use the other tools",
                    path.display()
                )));
            }
            confinement.hidden.extend(unseen);
            confinement.fixed.extend(fixed.places);
            files = fixed.files;
        }
        Ok((confinement, files))
    }

    async fn folds_case(&self) -> Result<bool, Failure> {
        if let Some(known) = self.folds_case.get() {
            return Ok(*known);
        }
        let workspace = self.files.workspace.path().to_owned();
        let folds = blocking::to_the_end(move || Ok(folds_case(&workspace))).await?;
        Ok(*self.folds_case.get_or_init(|| folds))
    }

    /// Where the scratch folder is. Many programs use it without being told, so it must be there.
    pub(crate) fn variables(&self) -> Result<Vec<(OsString, OsString)>, Failure> {
        let Some(scratch) = &self.files.scratch else { return Ok(Vec::new()) };
        scratch.open()?;
        let variable = |name: &str| (name.into(), scratch.path().into());
        Ok(vec![variable("TMPDIR"), variable("POSSE_SCRATCH")])
    }
}
