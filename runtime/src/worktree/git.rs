//! Git, started so that nothing in a repository is executed: no hook, monitor, pager or filter.

use posse_protocol::Worktree;
use posse_tools::Workspace;
use posse_tools::confine::{Confinement, PROTECTED, nested_repositories};
use posse_tools::launch::{Command, Finished, Launcher, SYSTEM_FOLDERS, Status, system_program};
use std::char::REPLACEMENT_CHARACTER;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

/// How long git may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// The most bytes of output that are read.
const OUTPUT: usize = 4 << 20;

/// Settings that override those of the repository.
const SETTINGS: [&str; 19] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=false",
    "credential.helper=",
    "commit.gpgSign=false",
    // A file of a subagent would move to another folder, also to one that git or editors obey.
    "merge.directoryRenames=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "status.submoduleSummary=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "protocol.allow=never",
    // A link may be in the place of a log.
    "core.logAllRefUpdates=false",
    "user.name=posse",
    "user.email=posse@localhost",
];

/// The settings for git that fetches from another repository: the credentials, the proxies and the ssh
/// of the user of this worker apply, and no other protocols than these.
const FETCHING: [&str; 14] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.file.allow=always",
    "http.followRedirects=initial",
    "core.logAllRefUpdates=false",
];

/// How long a fetch may take.
const FETCH: Duration = Duration::from_secs(1_800);

/// How long packing a repository may take.
const TIDY: Duration = Duration::from_secs(1_800);

/// How long a server may take to say which branches it has.
const ASK: Duration = Duration::from_secs(30);

/// Files in the data of a repository that git obeys. This git never changes them.
const OBEYED: [&str; 7] =
    ["hooks", "config", "config.worktree", "commondir", "modules", "remotes", "branches"];

/// The most bytes of a list of files that are read.
const LISTED: usize = 256 << 20;

/// How many files or folders are left out because git refuses their names.
const REFUSED: usize = 50;

/// The mode of a submodule in the index of git.
const GITLINK: &str = "160000";

/// The modes of a file and of one that can be executed.
const FILE: &str = "100644";
const PROGRAM: &str = "100755";

/// Git in one folder.
pub(super) struct Git<'a> {
    launcher: &'a Launcher,
    folder: PathBuf,
    /// The data of the repository and the files, if git must not search for them.
    explicit: Option<(PathBuf, PathBuf)>,
    /// The data that all worktrees of the repository share, if a file could say otherwise.
    common: Option<PathBuf>,
    confinement: Confinement,
    /// Whether it talks to other repositories.
    fetches: bool,
    deadline: Duration,
    /// The filters that the settings of the repository and of the user name.
    filters: OnceCell<Vec<String>>,
}

impl<'a> Git<'a> {
    /// Returns a git that only reads the repository around `folder`.
    pub(super) fn reading(launcher: &'a Launcher, folder: &Path) -> Self {
        let confinement = Confinement::default();
        // It reads no content that a filter applies to.
        let filters = OnceCell::new_with(Some(Vec::new()));
        let (explicit, common) = (None, None);
        let (folder, fetches, deadline) = (folder.to_owned(), false, DEADLINE);
        Git { launcher, folder, explicit, common, confinement, fetches, deadline, filters }
    }

    /// Returns a git that may change all data of the repository in `data`, which Posse made, and sees no checkout.
    pub(super) fn tidying(launcher: &'a Launcher, data: &Path) -> Self {
        let explicit = Some((data.to_owned(), data.to_owned()));
        Git { explicit, deadline: TIDY, ..Git::making(launcher, data) }
    }

    /// Returns a git that makes a repository in the folder `around`.
    pub(super) fn making(launcher: &'a Launcher, around: &Path) -> Self {
        let confinement = Confinement { is_own: true, ..Confinement::workspace_write() };
        Git { confinement, ..Git::reading(launcher, around) }
    }

    /// Returns a git that fetches into the repository with its data in `data`, which Posse made. It is
    /// not confined: what it starts are programs of the user's settings, with the user's keys.
    pub(super) fn fetching(launcher: &'a Launcher, data: &Path) -> Self {
        let explicit = Some((data.to_owned(), data.to_owned()));
        let confinement = Confinement::none();
        let (fetches, deadline) = (true, FETCH);
        Git { explicit, confinement, fetches, deadline, ..Git::reading(launcher, data) }
    }

    /// Like `fetching`, for a git that only asks another repository.
    pub(super) fn asking(launcher: &'a Launcher, data: &Path) -> Self {
        Git { deadline: ASK, ..Git::fetching(launcher, data) }
    }

    /// Returns a git that may change the data of the repository of `worktree`, and the files in `around`; it does not
    /// see the files of the repository.
    pub(super) fn writing(launcher: &'a Launcher, worktree: &Worktree, around: &Path) -> Self {
        let mut confinement = Confinement::workspace_write();
        confinement.is_own = true;
        let data = PathBuf::from(&worktree.data);
        confinement.fixed = OBEYED.map(|name| data.join(name)).to_vec();
        confinement.writable = vec![data.clone()];
        let explicit = Some((data, around.to_owned()));
        // Its filters are not known yet.
        let filters = OnceCell::new();
        Git { explicit, confinement, filters, ..Git::reading(launcher, around) }
    }

    /// Moves to the worktree at `folder` of the repository with its data in `data`. It ignores the file `.git` there,
    /// because the agent may have written it. It also ignores repositories that the agent made: git would take their
    /// settings, and store a link in place of their files. So git sees the files only, and changes the data of no other
    /// worktree.
    pub(super) fn in_worktree(mut self, data: &Path, folder: &str) -> Result<Self, String> {
        let name = Path::new(folder).file_name().unwrap_or_default();
        let own = data.join("worktrees").join(name);
        let nested = nested_repositories(Path::new(folder)).map_err(|error| error.to_string())?;
        self.confinement.hidden = nested.into_iter().map(|it| it.data).collect();
        self.confinement.fixed.push(data.join("worktrees"));
        self.confinement.writable.push(own.clone());
        let explicit = Some((own, PathBuf::from(folder)));
        // Settings may apply to its branch alone.
        let filters = OnceCell::new();
        Ok(Git { explicit, common: Some(data.to_owned()), filters, ..self })
    }

    /// Adds all changes in the worktree. Submodules stay as they were: git would enter them, and run programs that an
    /// agent has put there. Files whose names git refuses, like `.GIT/x`, are left out.
    pub(super) async fn add_all(&self) -> Result<(), String> {
        let mut without = self.links().await?;
        for _ in 0..REFUSED {
            let Err(error) = self.add_without(&without).await else { return Ok(()) };
            match refused_path(&error) {
                Some(path) if !without.contains(&path) => without.push(path),
                _ => return Err(error),
            }
        }
        self.add_without(&without).await
    }

    async fn add_without(&self, paths: &[String]) -> Result<(), String> {
        let paths = paths.iter().map(|path| format!(":(exclude,literal){path}"));
        let all = ["add", "--all", "--", "."].map(str::to_owned).into_iter().chain(paths);
        let all: Vec<String> = all.collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        self.run(&all).await
    }

    /// Makes the index have what `base` has where an agent decides nothing. That is all submodules: a repository that an
    /// agent made would become a link to a commit that exists nowhere else. And it is protected files that nobody has
    /// changed: with attributes that an agent wrote, git would convert them.
    pub(super) async fn restore_protected(&self, base: &str) -> Result<(), String> {
        let changed = ["diff-index", "--cached", "--raw", "-z", "--no-renames"];
        let changed = [&changed[..], &["--ignore-submodules=none", base, "--"]].concat();
        let listed = self.list(&changed).await?;
        let (mut restored, mut suspects) = (Vec::new(), Vec::new());
        // `:MODE MODE OBJECT OBJECT KIND`, then the path.
        let mut parts = listed.split('\0');
        while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
            let fields: Vec<&str> = head.split(' ').collect();
            match fields[..] {
                [_, GITLINK, ..] => restored.push(path),
                [_, FILE | PROGRAM, before, _, "M"] if is_protected(path) => {
                    suspects.push((path, before));
                }
                _ => {}
            }
        }
        if !suspects.is_empty() {
            let files = self.explicit.as_ref().map_or(self.folder.as_path(), |(_, files)| files);
            let paths = suspects.iter().map(|(path, _)| files.join(path).display().to_string());
            let hash = ["hash-object", "--no-filters", "--"].map(str::to_owned).into_iter();
            let hash: Vec<String> = hash.chain(paths).collect();
            let hash: Vec<&str> = hash.iter().map(String::as_str).collect();
            let found = self.whole(&hash).await?;
            let found = suspects.iter().zip(found.lines());
            restored.extend(found.filter(|((_, old), is)| old == is).map(|((path, _), _)| *path));
        }
        if restored.is_empty() {
            return Ok(());
        }
        let mut restore =
            ["restore", "--staged", "--source", base, "--"].map(str::to_owned).to_vec();
        restore.extend(restored.into_iter().map(|path| format!(":(literal){path}")));
        self.run(&restore.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// Returns the paths of the submodules.
    pub(super) async fn links(&self) -> Result<Vec<String>, String> {
        let listed = self.list(&["ls-files", "--stage", "-z"]).await?;
        let links = listed.split('\0').filter(|line| line.starts_with(GITLINK));
        Ok(links.filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect())
    }

    /// Runs a command. The error is the message of git.
    pub(super) async fn run(&self, args: &[&str]) -> Result<(), String> {
        self.whole(args).await.map(|_| ())
    }

    /// Asks git a question. Returns true for yes, that is status 0, and false for no, that is status 1; with the output.
    ///
    /// # Errors
    /// The message of git, for any other status.
    pub(super) async fn question(&self, args: &[&str]) -> Result<(bool, String), String> {
        let filters = self.filters().await?;
        let finished = self.ended(args, filters, LISTED).await?;
        match finished.status {
            Status::Exited(status @ 0..=1) => Ok((status == 0, finished.output)),
            _ => Err(message(&finished)),
        }
    }

    /// Returns the first line of the output.
    pub(super) async fn line(&self, args: &[&str]) -> Result<String, String> {
        let whole = self.whole(args).await?;
        Ok(whole.lines().next().unwrap_or_default().to_owned())
    }

    /// Returns the whole output.
    pub(super) async fn whole(&self, args: &[&str]) -> Result<String, String> {
        let filters = self.filters().await?;
        self.started(args, filters, OUTPUT).await.map(|(said, _)| said)
    }

    async fn filters(&self) -> Result<&[String], String> {
        let find = || async {
            let named = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."];
            // If there are none, git fails.
            let keys = self.started(&named, &[], OUTPUT).await;
            let keys = keys.map(|(keys, _)| keys).unwrap_or_default();
            // The output was converted to UTF-8. Under another name, the filter would still run.
            if let Some(odd) = keys.split('\0').find(|key| key.contains(REPLACEMENT_CHARACTER)) {
                return Err(format!("the name of a filter is not UTF-8: {odd}; rename it"));
            }
            let keys = keys.split('\0').filter(|key| !key.is_empty());
            Ok(keys.map(str::to_owned).collect::<Vec<String>>())
        };
        self.filters.get_or_try_init(find).await.map(Vec::as_slice)
    }

    /// Returns a list; an error if it is too long.
    pub(super) async fn list(&self, args: &[&str]) -> Result<String, String> {
        // A list does not depend on the contents of files, so no filter runs.
        match self.started(args, &[], LISTED).await? {
            (listed, 0) => Ok(listed),
            _ => Err("there are too many files".to_owned()),
        }
    }

    /// Returns the output with these settings emptied, and how many bytes of it were left out.
    async fn started(
        &self,
        args: &[&str],
        empty: &[String],
        output_cap: usize,
    ) -> Result<(String, u64), String> {
        let finished = self.ended(args, empty, output_cap).await?;
        match finished.status {
            Status::Exited(0) => Ok((finished.output, finished.left_out_bytes)),
            _ => Err(message(&finished)),
        }
    }

    async fn ended(
        &self,
        args: &[&str],
        empty: &[String],
        output_cap: usize,
    ) -> Result<Finished, String> {
        let workspace = Workspace::open(&self.folder).map_err(|error| error.to_string())?;
        let mut all: Vec<OsString> = Vec::new();
        let settings = if self.fetches { &FETCHING[..] } else { &SETTINGS[..] };
        for setting in settings {
            all.extend(["-c".into(), (*setting).into()]);
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
            variables: match self.fetches {
                true => of_user(self.launcher),
                false => variables(empty, self.common.as_deref()),
            },
            deadline: self.deadline,
            output_cap,
            writable_bytes: None,
            confinement: self.confinement.clone(),
        };
        let cancel = CancellationToken::new();
        let finished = self.launcher.run(&workspace, &command, &cancel, &|_| {}).await;
        finished.map_err(|error| error.to_string())
    }
}

/// Returns why git failed: what it said, as far as a terminal can show it.
fn message(finished: &Finished) -> String {
    let said = finished.output.trim();
    if said.is_empty() {
        return match finished.status {
            Status::Exited(status) => format!("git ended with status {status}"),
            _ => "git took too long, or was killed".to_owned(),
        };
    }
    let plain = |letter: char| if letter.is_control() && letter != '\n' { ' ' } else { letter };
    said.chars().map(plain).take(500).collect()
}

/// Returns the file whose name git refused, or the folder that some systems take for `.git`.
fn refused_path(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("invalid path '")?;
    let (path, _) = rest.split_once("'\n").or_else(|| rest.rsplit_once('\''))?;
    let mut whole = String::new();
    for part in path.split('/') {
        whole.push_str(part);
        if part.eq_ignore_ascii_case(".git") {
            break;
        }
        whole.push('/');
    }
    Some(whole.trim_end_matches('/').to_owned())
}

fn no_git() -> String {
    format!("git is not installed: it is in none of {}", SYSTEM_FOLDERS.join(", "))
}

/// True for a path that commands of agents cannot write at the top of a workspace.
fn is_protected(path: &str) -> bool {
    path.split('/').next().is_some_and(|name| PROTECTED.contains(&name))
}

/// Returns the environment for a fetch, in which nothing asks a person. The rest is that of the launcher.
fn of_user(launcher: &Launcher) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = [
        // Also if a setting of the user replaces the address.
        ("GIT_ALLOW_PROTOCOL", "https:ssh:file"),
        // A program of the user may know the password.
        ("GIT_ASKPASS", "true"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("LC_ALL", "C.UTF-8"),
        ("SSH_ASKPASS_REQUIRE", "never"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec();
    for (name, value) in launcher.environment_for_fetching().iter() {
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value.to_owned()));
    }
    variables
}

/// Returns the environment. Only there can git take a setting of any name.
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
    // Programs that git starts are those of the system too.
    variables.push(("PATH".into(), SYSTEM_FOLDERS.join(":").into()));
    variables.extend(common.map(|data| ("GIT_COMMON_DIR".into(), data.into())));
    variables.push(("GIT_CONFIG_COUNT".into(), empty.len().to_string().into()));
    for (index, key) in empty.iter().enumerate() {
        // An empty program disables the filter; `required` must be false, or git would fail.
        let value = if key.ends_with(".required") { "false" } else { "" };
        variables.push((format!("GIT_CONFIG_KEY_{index}").into(), key.into()));
        variables.push((format!("GIT_CONFIG_VALUE_{index}").into(), value.into()));
    }
    variables
}
