//! The side outside of the confinement: the targets of the probes, and their traces.

use super::inside::{Stage, slug};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// What files hold at first.
const CONTENT: &str = "canary";

/// Each of these is a file that one probe is about.
const FILES: [&str; 13] = [
    "append",
    "open with O_TRUNC",
    "truncate",
    "rename",
    "unlink",
    "link",
    "write through an inherited descriptor",
    "open /proc/self/fd/N again to write",
    "chmod",
    "chown",
    "utimensat",
    "setxattr",
    "FS_IOC_SETFLAGS",
];

/// Folders that everybody may write to, and the probes that try it.
const COMMON: [(&str, &str); 4] = [
    ("create in /tmp", "/tmp"),
    ("create in /var/tmp", "/var/tmp"),
    ("create in /run", "/run"),
    ("create in /dev/shm", "/dev/shm"),
];

/// The probe that a FIFO is for.
const PIPE: &str = "write into a FIFO outside";

/// Folders that are private to each command.
const PRIVATE: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

pub(super) struct Scene {
    folder: PathBuf,
    stage: Stage,
    listener: TcpListener,
    datagrams: UdpSocket,
    local: UnixListener,
    local_abstract: UnixListener,
    /// Where a FIFO is, and its reader.
    pipe: Option<(PathBuf, File)>,
    before: Vec<(&'static str, Trace)>,
    _inherited: Vec<File>,
}

/// The visible state of a file.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    content: Option<String>,
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    changed: (i64, i64),
    links: u64,
}

impl Scene {
    /// Sets up a scene among the temporary files, and a FIFO in one of `homes`.
    pub(super) fn set_up(homes: &[PathBuf]) -> io::Result<Scene> {
        let word = format!("posse-probe-{}-{}", std::process::id(), unique());
        let folder = std::env::temp_dir().join(format!("{word}-scene"));
        std::fs::create_dir(&folder)?;
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        let folder = folder.canonicalize()?;
        for name in ["target", "workspace", "workspace/.git", "hidden", "home", "home/other"] {
            std::fs::create_dir(folder.join(name))?;
        }
        let target = folder.join("target");
        for name in FILES {
            std::fs::write(target.join(slug(name)), CONTENT)?;
        }
        std::fs::write(folder.join("hidden/secret"), CONTENT)?;
        std::fs::write(folder.join("home/other/.env"), CONTENT)?;
        symlink(folder.join("home/other/.env"), folder.join("workspace/env"))?;
        std::fs::write(folder.join("workspace/.git/HEAD"), "ref: refs/heads/main\n")?;
        std::fs::write(folder.join("workspace/.git/config"), CONTENT)?;
        std::fs::write(folder.join("workspace/included"), CONTENT)?;
        let include = format!("[include]\n\tpath = {}/workspace/included\n", folder.display());
        std::fs::write(folder.join("home/.gitconfig"), include)?;
        let mut inherited = Vec::new();
        for name in [FILES[6], FILES[7]] {
            let file = File::options().append(true).open(target.join(slug(name)))?;
            // On purpose without close-on-exec, so that a program of the host inherits it.
            rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
            inherited.push(file);
        }
        let pipe = pipe_in(homes, &word)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let datagrams = UdpSocket::bind("127.0.0.1:0")?;
        let local = UnixListener::bind(target.join("socket"))?;
        let local_abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&word)?)?;
        listener.set_nonblocking(true)?;
        datagrams.set_nonblocking(true)?;
        local.set_nonblocking(true)?;
        local_abstract.set_nonblocking(true)?;
        let stage = Stage {
            socket: target.join("socket"),
            secret: folder.join("hidden/secret"),
            at_home: folder.join("home/other/.env"),
            workspace: folder.join("workspace"),
            pipe: pipe.as_ref().map(|(folder, _)| folder.join("pipe")),
            port: listener.local_addr()?.port(),
            datagrams: datagrams.local_addr()?.port(),
            network: super::network::own(),
            process: std::process::id() as i32,
            shared_memory: super::kernel::make_shared_memory(),
            target,
            word,
        };
        let mut scene = Scene {
            folder,
            stage,
            listener,
            datagrams,
            local,
            local_abstract,
            pipe,
            before: Vec::new(),
            _inherited: inherited,
        };
        scene.before = FILES.map(|name| (name, scene.trace(name))).into_iter().collect();
        Ok(scene)
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.stage.workspace.clone()
    }

    /// Folders that are to be read and never changed.
    pub(super) fn outside(&self) -> impl Iterator<Item = PathBuf> {
        let pipe = self.pipe.iter().map(|(folder, _)| folder.clone());
        std::iter::once(self.stage.target.clone()).chain(pipe)
    }

    /// True for a probe that finds nothing to attack here.
    pub(super) fn lacks(&self, name: &str) -> bool {
        name == PIPE && self.pipe.is_none()
    }

    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(super) fn secret(&self) -> PathBuf {
        self.folder.join("hidden")
    }

    pub(super) fn describe(&self) -> String {
        serde_json::to_string(&self.stage).unwrap_or_default()
    }

    fn trace(&self, name: &str) -> Trace {
        let path = self.stage.target.join(slug(name));
        match path.metadata() {
            Ok(found) => Trace {
                content: std::fs::read_to_string(&path).ok(),
                mode: found.mode(),
                owner: (found.uid(), found.gid()),
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
                links: found.nlink(),
            },
            Err(_) => Trace {
                content: None,
                mode: 0,
                owner: (0, 0),
                modified: (0, 0),
                changed: (0, 0),
                links: 0,
            },
        }
    }

    /// Whether the probe has left a trace here.
    pub(super) fn shows(&self, name: &str) -> bool {
        if let Some((_, before)) = self.before.iter().find(|(it, _)| *it == name) {
            return self.trace(name) != *before;
        }
        if let Some((_, folder)) = COMMON.iter().find(|(it, _)| *it == name) {
            return Path::new(folder).join(&self.stage.word).symlink_metadata().is_ok();
        }
        let in_workspace = |path: &str| self.stage.workspace.join(path).symlink_metadata().is_ok();
        let says = |path: &str, text: &str| {
            let found = std::fs::read_to_string(self.stage.workspace.join(path));
            found.is_ok_and(|found| found.contains(text))
        };
        match name {
            "TCP connect" | "TCP fast open" | "MPTCP connect" => self.heard(name),
            PIPE => {
                let read = self.pipe.as_ref().map(|(_, reader)| (&*reader).read(&mut [0; 64]));
                matches!(read, Some(Ok(1..)))
            }
            "UDP send" => self.datagrams.recv(&mut [0; 64]).is_ok(),
            "Unix socket by path" => self.local.accept().is_ok(),
            "abstract Unix socket" => self.local_abstract.accept().is_ok(),
            "write .git/hooks" => in_workspace(".git/hooks/pre-commit"),
            "write .git/config" => {
                let config = std::fs::read_to_string(self.stage.workspace.join(".git/config"));
                config.ok().as_deref() != Some(CONTENT)
            }
            "make .posse" => in_workspace(".posse"),
            "make posse.toml" => in_workspace("posse.toml"),
            "replace .git" => in_workspace("moved"),
            "settings of a nested repository" => says("nested/.git/config", "fsmonitor"),
            "a hook of a nested repository" => in_workspace("hooked/.git/hooks/pre-commit"),
            "a repository without files" => says("bare/config", "path"),
            "a link in .git" => in_workspace(".git/COMMIT_EDITMSG"),
            "settings that the user's include" => !says("included", CONTENT),
            _ => self.stage.target.join(slug(name)).symlink_metadata().is_ok(),
        }
    }

    /// Whether a process connected and sent the name of the probe.
    fn heard(&self, name: &str) -> bool {
        while let Ok((mut client, _)) = self.listener.accept() {
            let mut said = String::new();
            let _ = client.set_nonblocking(false);
            let _ = client.set_read_timeout(Some(std::time::Duration::from_secs(1)));
            let _ = client.read_to_string(&mut said);
            if said == name || said.is_empty() {
                return true;
            }
        }
        false
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        super::kernel::remove_shared_memory(self.stage.shared_memory);
        for (_, folder) in COMMON {
            let _ = std::fs::remove_file(Path::new(folder).join(&self.stage.word));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        if let Some((folder, _)) = &self.pipe {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// A FIFO with a reader, in a folder of its own in the first of `homes` where that works. Not in
/// folders that are private to each command, because a command may write there.
fn pipe_in(homes: &[PathBuf], word: &str) -> io::Result<Option<(PathBuf, File)>> {
    let is_private = |home: &PathBuf| PRIVATE.iter().any(|folder| home.starts_with(folder));
    for home in homes.iter().filter(|home| !is_private(home)) {
        let folder = home.join(format!(".{word}"));
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error),
            Err(_) => continue,
            Ok(()) => {}
        }
        let pipe = folder.join("pipe");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let reader =
            make_pipe(&pipe).and_then(|()| Ok(rustix::fs::open(&pipe, flags, Mode::empty())?));
        match reader {
            Ok(reader) => return Ok(Some((folder, reader.into()))),
            // Not every file system has them.
            Err(_) => drop(std::fs::remove_dir_all(&folder)),
        }
    }
    Ok(None)
}

fn unique() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos())
}

/// Makes a named pipe.
pub(super) fn make_pipe(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0)?)
}
