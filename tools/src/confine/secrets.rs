//! Where secrets are on a machine. They are hidden from every confined command.

use super::aliases::{self, Alias};
use super::command_sandbox::CommandSandbox;
use super::home;
use rustix::process::geteuid;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Paths in a home folder.
const IN_HOME: &[&str] = &[
    // Keys and passwords.
    ".ssh",
    ".gnupg",
    ".pki",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".vault-token",
    ".config/op",
    ".config/sops",
    // Clouds and code hosting.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".boto",
    ".s3cfg",
    ".config/rclone",
    ".oci",
    ".kube",
    ".docker",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/hcloud",
    ".config/heroku",
    ".fly",
    ".terraform.d/credentials.tfrc.json",
    ".databrickscfg",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/ngrok",
    // Packages and data.
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".pip",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet",
    ".kaggle",
    ".huggingface",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".dotnet/corefx",
    ".local/share/gem/credentials",
    ".stack/upload",
    ".wasmer/wasmer.toml",
    ".luarocks/upload_config.lua",
    ".nimble/github_api_token",
    ".opam/plugins/opam-publish",
    ".config/mise/age.txt",
    ".npm-global/etc",
    ".npm-packages/etc",
    ".conda/condarc",
    ".conda/.condarc",
    ".cache/deno/deno_history.txt",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    ".var/app",
    // Agents, including this one.
    ".config/posse",
    ".local/share/posse",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    // Histories of what the user typed.
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
];

/// Paths elsewhere. Only root can read most of them, and a command that runs as root could, too.
const ON_THE_MACHINE: &[&str] = &[
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/shadow-",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
    "/etc/NetworkManager/system-connections",
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/lib/kubelet",
    "/var/lib/sss",
    "/var/spool/cron",
    "/var/mail",
    "/var/spool/mail",
];

/// The maximum number of entries of `/etc` to check.
const ENTRIES_CONSIDERED: usize = 4000;

/// Where secrets may be in these home folders.
pub(super) fn in_homes(homes: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    homes.iter().flat_map(|home| IN_HOME.iter().map(|name| home.join(name)))
}

/// All paths to hide that exist, with links resolved.
pub(crate) fn hidden(sandbox: &CommandSandbox) -> Vec<PathBuf> {
    // A path that the user shows explicitly is not hidden.
    let mut paths: Vec<PathBuf> =
        in_homes(&sandbox.homes).filter(|path| !sandbox.shown.contains(path)).collect();
    paths.extend(sandbox.hidden.iter().cloned());
    if geteuid().is_root() {
        paths.extend(ON_THE_MACHINE.iter().map(PathBuf::from));
        paths.extend(closed_to_others(Path::new("/etc"), 2));
        // Home folders of other people. The user's own is mounted again.
        paths.extend(["/home", "/root"].map(PathBuf::from));
    }
    let homes = &sandbox.homes;
    let mut found: Vec<PathBuf> =
        paths.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
    found.retain(|path| path.parent().is_some() && !homes.contains(path));
    found.extend(mounted_again(&found, sandbox));
    found.sort_unstable();
    found.dedup();
    found
}

/// Other paths of what is hidden, and of the hidden home folders. A part of a home folder that the user
/// mounted in a folder of the run is not hidden there, nor where it has programs.
fn mounted_again(hidden: &[PathBuf], sandbox: &CommandSandbox) -> Vec<PathBuf> {
    let homes = home::hidden(sandbox);
    let given = [&sandbox.workspace].into_iter().chain(&sandbox.writable).chain(&sandbox.readable);
    let given: Vec<&PathBuf> = given.chain(&sandbox.shown).collect();
    let needed = sandbox.programs.iter().chain(&sandbox.toolchains);
    let needed: Vec<&PathBuf> = needed.filter(|it| it.is_absolute()).collect();
    let is_wanted = |alias: &Alias| {
        let path = &alias.path;
        given.contains(&path)
            || sandbox.homes.contains(path)
            || alias.is_part
                && (given.iter().any(|it| path.starts_with(it))
                    || needed.iter().any(|it| it.starts_with(path)))
    };
    // Of the folders with all homes, and of folders of the system, only the whole is hidden elsewhere.
    let is_general = |path: &Path| path.parent().and_then(Path::parent).is_none();
    let hidden = hidden.iter().chain(homes).map(PathBuf::as_path);
    let (general, own): (Vec<&Path>, Vec<&Path>) = hidden.partition(|path| is_general(path));
    let general = aliases::of(general.into_iter()).into_iter().filter(|alias| !alias.is_part);
    let found = aliases::of(own.into_iter()).into_iter().chain(general);
    let found = found.filter(|alias| !is_wanted(alias) && alias.path.exists());
    found.map(|alias| alias.path).collect()
}

/// Entries of a folder, down to `depth`, that only their owner and group can read. A command with the
/// uid of root could read them, even without capabilities.
fn closed_to_others(folder: &Path, depth: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries.take(ENTRIES_CONSIDERED).flatten() {
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        let readable = metadata.mode() & 0o004 != 0;
        if metadata.is_symlink() {
            continue;
        }
        if !readable {
            found.push(entry.path());
        } else if metadata.is_dir() && depth > 1 {
            found.extend(closed_to_others(&entry.path(), depth - 1));
        }
    }
    found
}
