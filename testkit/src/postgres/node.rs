//! A server for crash tests: it writes to the disk as a real one, can be stopped in every way, and
//! can be the replica of another. It ends with the thread that started it.

use super::{is_root, programs};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// The time to start, or to stop.
const PATIENCE: Duration = Duration::from_secs(30);
const A_MOMENT: Duration = Duration::from_millis(25);
const PORT: &str = ".s.PGSQL.5432";

/// A small server that forgets nothing that it has confirmed.
const SETTINGS: &str = "
listen_addresses = ''
max_connections = 60
shared_buffers = 8MB
min_wal_size = 2MB
max_wal_size = 8MB
wal_keep_size = 16MB
max_wal_senders = 4
max_replication_slots = 4
autovacuum_naptime = 10
log_line_prefix = '%m [%p] '
";

/// How a server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It ends all sessions and writes a checkpoint.
    Fast,
    /// It ends at once, and recovers at the next start.
    Immediate,
    /// `kill -9` to all its processes.
    Kill,
}

/// A server in a folder of its own.
#[derive(Debug)]
pub struct Node {
    folder: PathBuf,
    disk: Option<Disk>,
    process: Option<Child>,
}

/// A file system of a fixed size, which only the processes in its namespace see. It is gone when
/// its keeper is.
#[derive(Debug)]
struct Disk {
    keeper: Child,
}

impl Node {
    /// Creates an empty server in `folder`, which does not exist. It does not run yet.
    ///
    /// # Errors
    /// When the programs of the server fail.
    pub async fn create(folder: &Path) -> io::Result<Self> {
        let node = Node::in_folder(folder)?;
        let data = node.data();
        let mut make = as_server(&programs().join("initdb"));
        make.arg("-D").arg(&data).args(["-U", "posse", "-A", "trust", "-E", "UTF8"]);
        make.args(["--locale=C.UTF-8", "--no-sync", "--no-instructions", "--wal-segsize=1"]);
        done(make).await?;
        let file = data.join("postgresql.conf");
        let written = std::fs::read_to_string(&file)?;
        std::fs::write(&file, written + SETTINGS)?;
        Ok(node)
    }

    /// Copies a server that does not run.
    ///
    /// # Errors
    /// When the copy fails.
    pub async fn copy(from: &Node, folder: &Path) -> io::Result<Self> {
        let node = Node::in_folder(folder)?;
        node.take(from).await?;
        Ok(node)
    }

    /// Copies a server that does not run to a file system of `bytes`, which can become full.
    ///
    /// # Errors
    /// When this machine does not allow it, or when the copy fails.
    pub async fn copy_to_disk(from: &Node, folder: &Path, bytes: u64) -> io::Result<Self> {
        let mut node = Node::in_folder(folder)?;
        let data = node.data();
        std::fs::create_dir(&data)?;
        let script =
            "mount -t tmpfs -o mode=777,size=$1 none \"$2\" && touch \"$3\" && exec sleep 1d";
        let mut keep = command("unshare");
        let mark = folder.join("mounted");
        keep.args(["--mount", "sh", "-c", script, "disk", &bytes.to_string()])
            .arg(&data)
            .arg(&mark);
        let mut keeper = keep.spawn()?;
        let begun = Instant::now();
        while !mark.exists() {
            if keeper.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
                return Err(io::Error::other("a small file system cannot be mounted"));
            }
            sleep(A_MOMENT).await;
        }
        node.disk = Some(Disk { keeper });
        node.take(from).await?;
        Ok(node)
    }

    fn in_folder(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir(folder)?;
        // The server may run as another user, who must be able to write there.
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))?;
        Ok(Node { folder: folder.to_owned(), disk: None, process: None })
    }

    async fn take(&self, from: &Node) -> io::Result<()> {
        let mut copy = self.inside("cp");
        copy.arg("-Rp").arg(from.data()).arg(match self.disk {
            // The folder exists already.
            Some(_) => self.data().join("main"),
            None => self.data(),
        });
        done(copy).await
    }

    /// Creates a replica of this server, which runs, and starts it. From then on this server
    /// confirms only what the replica has on its disk.
    ///
    /// # Errors
    /// When the programs of the server fail.
    pub async fn replica(&self, folder: &Path) -> io::Result<Self> {
        let mut replica = Node::in_folder(folder)?;
        let mut copy = as_server(&programs().join("pg_basebackup"));
        copy.arg("-h").arg(&self.folder).args(["-U", "posse", "-R", "-c", "fast", "-X", "stream"]);
        done({
            copy.arg("--no-sync").arg("-D").arg(replica.data());
            copy
        })
        .await?;
        replica.start().await?;
        self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'").await?;
        self.sql("postgres", "SELECT pg_reload_conf()").await?;
        let asked = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        self.until(asked, "1").await?;
        Ok(replica)
    }

    /// Makes a replica a server of its own.
    ///
    /// # Errors
    /// When it refuses.
    pub async fn promote(&self) -> io::Result<()> {
        self.sql("postgres", "SELECT pg_promote(true, 30)").await?;
        self.until("SELECT pg_is_in_recovery()", "f").await
    }

    async fn until(&self, question: &str, answer: &str) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            match self.sql("postgres", question).await {
                Ok(text) if text == answer => return Ok(()),
                _ if begun.elapsed() > PATIENCE => {
                    return Err(io::Error::other(format!("`{question}` does not become {answer}")));
                }
                _ => sleep(A_MOMENT).await,
            }
        }
    }

    /// The folder of its socket and its log.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(PORT)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder of its tables, for its own programs.
    fn cluster(&self) -> PathBuf {
        if self.disk.is_some() { self.data().join("main") } else { self.data() }
    }

    /// Starts it, and returns when it answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn start(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let log = std::fs::File::options();
            let log = log.clone().create(true).append(true).open(self.folder.join("log"))?;
            let mut serve = self.inside(programs().join("postgres"));
            serve.arg("-D").arg(self.cluster()).arg("-k").arg(&self.folder);
            let mut process = serve.stdout(log.try_clone()?).stderr(log).spawn()?;
            // What a killed server left may prevent the start for a moment.
            while process.try_wait()?.is_none() && begun.elapsed() < PATIENCE {
                if self.sql("postgres", "SELECT 1").await.is_ok() {
                    self.process = Some(process);
                    return Ok(());
                }
                sleep(A_MOMENT).await;
            }
            sleep(A_MOMENT * 4).await;
        }
        Err(io::Error::other(format!(
            "the server does not start: see {}/log",
            self.folder.display()
        )))
    }

    /// Stops it, and returns when none of its processes is left.
    ///
    /// # Errors
    /// When it cannot be stopped.
    pub async fn stop(&mut self, how: Stop) -> io::Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let Some(id) = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) else {
            return Ok(());
        };
        let children = children(id);
        match how {
            Stop::Fast => kill_process(id, Signal::INT)?,
            Stop::Immediate => kill_process(id, Signal::QUIT)?,
            Stop::Kill => {
                kill_process(id, Signal::KILL)?;
                // As if the machine had died: nobody confirms anything from now on.
                for child in &children {
                    let _ = kill_process(*child, Signal::KILL);
                }
            }
        }
        if timeout(PATIENCE, process.wait()).await.is_err() {
            process.start_kill()?;
            return Err(io::Error::other("the server did not stop in time"));
        }
        let begun = Instant::now();
        while children.iter().any(|child| is_alive(*child)) && begun.elapsed() < PATIENCE {
            sleep(A_MOMENT).await;
        }
        Ok(())
    }

    /// True if it was started and has not ended by itself since.
    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }

    /// Fills its file system. Returns false if it has none of its own.
    ///
    /// # Errors
    /// When the file system cannot be written.
    pub async fn fill_disk(&self) -> io::Result<bool> {
        if self.disk.is_none() {
            return Ok(false);
        }
        let mut fill = self.inside("dd");
        fill.args(["if=/dev/zero", "bs=64k"]).arg(format!("of={}", self.filling().display()));
        // It ends with an error: there is no space left.
        let _ = fill.output().await?;
        Ok(true)
    }

    /// Makes space in its file system.
    ///
    /// # Errors
    /// When the file that fills it cannot be removed.
    pub async fn free_disk(&self) -> io::Result<()> {
        let mut remove = self.inside("rm");
        remove.arg("-f").arg(self.filling());
        done(remove).await
    }

    fn filling(&self) -> PathBuf {
        self.data().join("filling")
    }

    /// Executes statements with the client of the server, and returns what they select.
    ///
    /// # Errors
    /// What the client printed.
    pub async fn sql(&self, database: &str, statements: &str) -> io::Result<String> {
        ask(&self.folder, database, statements).await
    }

    /// A program as the user of the server, which sees its file system.
    fn inside(&self, program: impl AsRef<Path>) -> Command {
        let keeper = self.disk.as_ref().and_then(|disk| disk.keeper.id());
        let Some(keeper) = keeper else { return as_server(program.as_ref()) };
        let mut command = command("nsenter");
        command.args(["--target", &keeper.to_string(), "--mount", "--wdns=/"]);
        // Only root can mount something, so there is another user for the server.
        command.arg("setpriv").args(UNPRIVILEGED).arg(program.as_ref());
        command
    }
}

/// Executes statements on the server with its socket in `folder`, and returns what they select.
///
/// # Errors
/// What the client of the server printed.
pub async fn ask(folder: &Path, database: &str, statements: &str) -> io::Result<String> {
    let mut ask = command(programs().join("psql"));
    ask.args(["-q", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h"]).arg(folder);
    ask.args(["-U", "posse", "-d", database, "-c", statements]);
    ask.env("PGCONNECT_TIMEOUT", "10").stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = ask.output().await?;
    said(&ran).map(|()| String::from_utf8_lossy(&ran.stdout).trim_end().to_owned())
}

const UNPRIVILEGED: [&str; 5] =
    ["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--pdeathsig", "KILL"];

/// A program as an ordinary user, because the server refuses root.
fn as_server(program: &Path) -> Command {
    match is_root() {
        true => {
            let mut command = command("setpriv");
            command.args(UNPRIVILEGED).arg(program);
            command
        }
        false => command(program),
    }
}

/// A process that dies with the thread that started it, and when it is dropped.
#[expect(unsafe_code, reason = "the standard library has no safe way to act after the fork")]
fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env("LC_ALL", "C").current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the function makes one system call and touches no memory.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command
}

async fn done(mut command: Command) -> io::Result<()> {
    said(&command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().await?)
}

fn said(ran: &Output) -> io::Result<()> {
    match ran.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&ran.stderr).trim_end().to_owned())),
    }
}

/// The processes that `id` has started and that have not ended.
fn children(id: Pid) -> Vec<Pid> {
    let file = format!("/proc/{0}/task/{0}/children", id.as_raw_nonzero());
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

/// True for a process that has not ended. One that nobody has waited for yet has ended.
fn is_alive(id: Pid) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero()));
    let state = text.ok().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
