//! What the processes of one run can reach: its grant and its own folders, without what rules deny.

use crate::blocking;
use crate::confine::{Confinement, folds_case};
use crate::failure::Failure;
use crate::run_path::RunFiles;
use crate::unseen::{fixed, unseen};
use posse_protocol::Profile;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The confinement of a run's processes. It is computed again for each process.
pub(crate) struct Sandbox {
    pub(crate) files: Arc<RunFiles>,
    /// The confinement of the grant.
    pub(crate) confinement: Confinement,
    /// Whether the file system of the workspace ignores case in names.
    folds_case: OnceLock<bool>,
}

impl Sandbox {
    pub(crate) fn new(files: Arc<RunFiles>, confinement: Confinement) -> Sandbox {
        Sandbox { files, confinement, folds_case: OnceLock::new() }
    }

    /// Returns the confinement with the run's other folders added, and with the paths that rules hide
    /// or make read-only. Also returns the existing files that rules forbid to change.
    pub(crate) async fn confinement(&self) -> Result<(Confinement, HashSet<PathBuf>), Failure> {
        let mut files = HashSet::new();
        let mut confinement = self.confinement.clone();
        let folds_case = confinement.profile != Profile::Full && self.folds_case().await?;
        if folds_case {
            confinement.profile = Profile::ReadOnly;
        }
        if let Some(scratch) = &self.files.scratch {
            // The clean-up of a run looks for this folder.
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

    /// Variables with the path of the scratch folder. Many programs use `TMPDIR`, so the folder must exist.
    pub(crate) fn variables(&self) -> Result<Vec<(OsString, OsString)>, Failure> {
        let Some(scratch) = &self.files.scratch else { return Ok(Vec::new()) };
        scratch.open()?;
        let variable = |name: &str| (name.into(), scratch.path().into());
        Ok(vec![variable("TMPDIR"), variable("POSSE_SCRATCH")])
    }
}
