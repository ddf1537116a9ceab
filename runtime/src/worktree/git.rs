//! Git, started so that nothing a repository holds is run: no hook, no monitor, no pager, no filter.

use posse_protocol::Worktree;
use posse_tools::Workspace;
use posse_tools::confine::{Confinement, nested_repositories};
use posse_tools::launch::{Command, Launcher, SYSTEM_FOLDERS, Status, system_program};
use std::char::REPLACEMENT_CHARACTER;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

/// How long git may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// The most that is read of what it says.
const OUTPUT: usize = 4 << 20;

/// Settings that hold whatever the repository's own say.
const SETTINGS: [&str; 18] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=false",
    "credential.helper=",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "status.submoduleSummary=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "protocol.allow=never",
    // A link may stand in the place of a log.
    "core.logAllRefUpdates=false",
    "user.name=posse",
    "user.email=posse@localhost",
];

/// What git obeys in the data of a repository, and this one never changes.
const OBEYED: [&str; 7] =
    ["hooks", "config", "config.worktree", "commondir", "modules", "remotes", "branches"];

/// The most that is read of lists of files.
const LISTED: usize = 256 << 20;

/// The mode of an entry of git's index that is a submodule.
const GITLINK: &str = "160000";

/// Git at work in one folder.
pub(super) struct Git<'a> {
    launcher: &'a Launcher,
    folder: PathBuf,
    /// The repository's data and the files, where they are not to be found by looking.
    explicit: Option<(PathBuf, PathBuf)>,
    /// The data that all worktrees of the repository have in common, where a file could say
    /// otherwise.
    common: Option<PathBuf>,
    confinement: Confinement,
    /// The filters that the repository's settings and the user's name.
    filters: OnceCell<Vec<String>>,
}

impl<'a> Git<'a> {
    /// Git that looks at the repository around `folder`.
    pub(super) fn reading(launcher: &'a Launcher, folder: &Path) -> Self {
        let confinement = Confinement::default();
        // It reads nothing that a filter is about.
        let filters = OnceCell::new_with(Some(Vec::new()));
        let (explicit, common) = (None, None);
        let folder = folder.to_owned();
        Git { launcher, folder, explicit, common, confinement, filters }
    }

    /// Git that may change the data of the repository that `worktree` is of, and what is in
    /// `around`; the files of the repository it does not see.
    pub(super) fn writing(launcher: &'a Launcher, worktree: &Worktree, around: &Path) -> Self {
        let mut confinement = Confinement::workspace_write();
        confinement.is_own = true;
        let data = PathBuf::from(&worktree.data);
        confinement.fixed = OBEYED.map(|name| data.join(name)).to_vec();
        confinement.writable = vec![data.clone()];
        let explicit = Some((data, around.to_owned()));
        let (folder, filters) = (around.to_owned(), OnceCell::new());
        let common = None;
        Git { launcher, folder, explicit, common, confinement, filters }
    }

    /// The same in the worktree at `folder` of the repository whose data are in `data`. What its
    /// file `.git` says is not believed: whoever worked there may have written it.
    /// Nor is what it has made a repository: git would take its settings, and keep a name in the
    /// place of its files. So git sees the files only, and changes the data of no other worktree.
    pub(super) fn in_worktree(mut self, data: &Path, folder: &str) -> Result<Self, String> {
        let name = Path::new(folder).file_name().unwrap_or_default();
        let own = data.join("worktrees").join(name);
        let nested = nested_repositories(Path::new(folder)).map_err(|error| error.to_string())?;
        self.confinement.hidden = nested.into_iter().map(|it| it.data).collect();
        self.confinement.fixed.push(data.join("worktrees"));
        self.confinement.writable.push(own.clone());
        let explicit = Some((own, PathBuf::from(folder)));
        // Settings may hold for its branch alone.
        let filters = OnceCell::new();
        Ok(Git { explicit, common: Some(data.to_owned()), filters, ..self })
    }

    /// Adds all that was changed in the worktree. Submodules stay as they were: git would enter them, and
    /// run what somebody has put there.
    pub(super) async fn add_all(&self) -> Result<(), String> {
        let links = self.links().await?;
        let links = links.iter().map(|path| format!(":(exclude,literal){path}"));
        let all = ["add", "--all", "--", "."].map(str::to_owned).into_iter().chain(links);
        let all: Vec<String> = all.collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        self.run(&all).await
    }

    /// Sees to it that the index has the submodules that `base` has, and no others: a repository that
    /// somebody has made would be a name of a commit that nobody has.
    pub(super) async fn restore_links(&self, base: &str) -> Result<(), String> {
        let changed = ["diff-index", "--cached", "--raw", "-z", "--no-renames"];
        let changed = [&changed[..], &["--ignore-submodules=none", base, "--"]].concat();
        let listed = self.list(&changed).await?;
        // `:MODE MODE OBJECT OBJECT KIND`, then the path.
        let mut parts = listed.split('\0');
        let mut restore = vec!["restore".to_owned(), "--staged".to_owned(), "--source".to_owned()];
        restore.extend([base.to_owned(), "--".to_owned()]);
        let known = restore.len();
        while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
            if head.split(' ').nth(1) == Some(GITLINK) {
                restore.push(format!(":(literal){path}"));
            }
        }
        if restore.len() == known {
            return Ok(());
        }
        self.run(&restore.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// The submodules, by their paths.
    pub(super) async fn links(&self) -> Result<Vec<String>, String> {
        let listed = self.list(&["ls-files", "--stage", "-z"]).await?;
        let links = listed.split('\0').filter(|line| line.starts_with(GITLINK));
        Ok(links.filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect())
    }

    /// Does it. An error is what git said.
    pub(super) async fn run(&self, args: &[&str]) -> Result<(), String> {
        self.whole(args).await.map(|_| ())
    }

    /// The first line of what it says.
    pub(super) async fn line(&self, args: &[&str]) -> Result<String, String> {
        let whole = self.whole(args).await?;
        Ok(whole.lines().next().unwrap_or_default().to_owned())
    }

    /// All that it says.
    pub(super) async fn whole(&self, args: &[&str]) -> Result<String, String> {
        let find = || async {
            let named = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."];
            // Where there are none, it fails.
            let keys = self.started(&named, &[], OUTPUT).await;
            let keys = keys.map(|(keys, _)| keys).unwrap_or_default();
            // What git says is made UTF-8, and by another name the filter would be run.
            if let Some(odd) = keys.split('\0').find(|key| key.contains(REPLACEMENT_CHARACTER)) {
                return Err(format!("the name of a filter is not UTF-8: {odd}; rename it"));
            }
            let keys = keys.split('\0').filter(|key| !key.is_empty());
            Ok(keys.map(str::to_owned).collect::<Vec<String>>())
        };
        let filters = self.filters.get_or_try_init(find).await?;
        self.started(args, filters, OUTPUT).await.map(|(said, _)| said)
    }

    /// All that it lists: an error if that is too much.
    pub(super) async fn list(&self, args: &[&str]) -> Result<String, String> {
        // A list is not about what files hold.
        match self.started(args, &[], LISTED).await? {
            (listed, 0) => Ok(listed),
            _ => Err("there are too many files".to_owned()),
        }
    }

    /// What it says with these settings as if they were empty, and how many bytes of that were left
    /// out.
    async fn started(
        &self,
        args: &[&str],
        empty: &[String],
        output_cap: usize,
    ) -> Result<(String, u64), String> {
        let workspace = Workspace::open(&self.folder).map_err(|error| error.to_string())?;
        let mut all: Vec<OsString> = Vec::new();
        for setting in SETTINGS {
            all.extend(["-c".into(), setting.into()]);
        }
        if let Some((data, files)) = &self.explicit {
            let option = |name: &str, path: &Path| {
                let mut option = OsString::from(name);
                option.push(path);
                option
            };
            all.push(option("--git-dir=", data));
            all.push(option("--work-tree=", files));
        }
        all.extend(args.iter().map(Into::into));
        let program = system_program("git").ok_or_else(no_git)?;
        let command = Command {
            program: program.into(),
            args: all,
            cwd: PathBuf::from("."),
            variables: variables(empty, self.common.as_deref()),
            deadline: DEADLINE,
            output_cap,
            writable_bytes: None,
            confinement: self.confinement.clone(),
        };
        let cancel = CancellationToken::new();
        let finished = self.launcher.run(&workspace, &command, &cancel, &|_| {}).await;
        let finished = finished.map_err(|error| error.to_string())?;
        match finished.status {
            Status::Exited(0) => Ok((finished.output, finished.left_out_bytes)),
            _ => Err(finished.output.trim().chars().take(500).collect()),
        }
    }
}

fn no_git() -> String {
    format!("git is not installed: it is in none of {}", SYSTEM_FOLDERS.join(", "))
}

/// What is in its environment. A setting of any name can be given there, and only there.
fn variables(empty: &[String], common: Option<&Path>) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("LC_ALL", "C.UTF-8"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec();
    // Whatever git starts is the system's too.
    variables.push(("PATH".into(), SYSTEM_FOLDERS.join(":").into()));
    variables.extend(common.map(|data| ("GIT_COMMON_DIR".into(), data.into())));
    variables.push(("GIT_CONFIG_COUNT".into(), empty.len().to_string().into()));
    for (index, key) in empty.iter().enumerate() {
        // That a filter is needed must not be, and a program that is nothing is none.
        let value = if key.ends_with(".required") { "false" } else { "" };
        variables.push((format!("GIT_CONFIG_KEY_{index}").into(), key.into()));
        variables.push((format!("GIT_CONFIG_VALUE_{index}").into(), value.into()));
    }
    variables
}
