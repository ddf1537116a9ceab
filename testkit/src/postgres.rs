//! A private PostgreSQL server: the package of Debian, on a Unix socket in its own folder, without
//! a port.
//!
//! All tests of a run share one server. The first test that needs it starts it, together with a
//! keeper. The keeper is a small shell script that stops the server and removes its folder soon
//! after the last test has ended, however it ended: a test holds a lock on a file, and the keeper
//! waits for that lock.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "for tests, which end where something fails"
)]

mod node;

pub use node::{Node, Stop, ask};

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Starts the server, reports that it is ready, and stops it when no test holds the lock any more.
/// `$1` is the folder, `$2` the folder of the server's programs. The rest are arguments of the server.
const KEEPER: &str = r#"
set -u
D=$1 B=$2
shift 2
settings=("$@")
as() {
    if [ "$(id -u)" = 0 ]; then
        exec setpriv --reuid=nobody --regid=nogroup --clear-groups --pdeathsig QUIT \
            env HOME="$D" LC_ALL=C "$@"
    else
        exec env LC_ALL=C "$@"
    fi
}
(as "$B/initdb" -D "$D/data" -U posse -A trust -E UTF8 --locale=C.UTF-8 --no-sync \
    --no-instructions) >"$D/log" 2>&1 || { touch "$D/failed"; exit 1; }
# Removes the folder at once for who comes next: another server may begin there.
remove() { mv "$D" "$D-gone-$$" && rm -rf "$D-gone-$$"; }
# Files of a killed server may prevent the start for a moment.
serve() {
    for _ in $(seq 100); do
        (as "$B/postgres" -D "$D/data" -k "$D" -c listen_addresses= -c fsync=off \
            -c full_page_writes=off -c max_connections=300 -c autovacuum_naptime=10 \
            "${settings[@]}") >>"$D/log" 2>&1 &
        server=$!
        while kill -0 "$server" 2>/dev/null; do
            if (as "$B/pg_isready" -q -h "$D" -U posse); then touch "$D/ready"; return; fi
            sleep 0.05
        done
        sleep 0.1
    done
}
serve
free=0
while :; do
    if ! kill -0 "$server" 2>/dev/null; then
        [ -e "$D/again" ] || break
        rm -f "$D/again"
        serve
    fi
    sleep 0.5
    # If the folder was removed, nobody needs the server any more.
    [ -e "$D/users" ] || { kill -QUIT "$server"; break; }
    if flock -n -x "$D/gate" flock -n -x "$D/users" true; then free=$((free + 1)); else free=0; fi
    if [ "$free" -ge 6 ]; then
        exec 8>"$D/gate" 9>"$D/users"
        flock -x 8
        if flock -n -x 9; then
            kill -QUIT "$server"
            wait "$server"
            remove
            exit 0
        fi
        exec 8>&- 9>&-
        free=0
    fi
done
remove
"#;

const PATIENCE: Duration = Duration::from_secs(60);

/// The server. It runs at least as long as this exists.
pub struct Server {
    folder: PathBuf,
    /// Locked while this exists.
    _users: File,
}

/// PgBouncer in transaction mode, in front of the server. It ends when this is dropped.
pub struct Bouncer {
    process: std::process::Child,
    folder: PathBuf,
}

/// A separate database on the server, which is removed when this is dropped.
pub struct Database {
    server: Server,
    name: String,
}

/// Returns a database for a test if the environment asks for tests on PostgreSQL
/// (`POSSE_TEST_STORE=postgres`). Otherwise the test uses SQLite.
pub fn wanted() -> Option<Database> {
    let store = std::env::var("POSSE_TEST_STORE").unwrap_or_default();
    (store == "postgres").then(|| Server::shared().database())
}

impl Server {
    /// Returns the shared server, and starts it if needed.
    pub fn shared() -> Self {
        Server::of(std::env::temp_dir().join("posse-pg"), &[])
    }

    /// Returns a server that no other test uses, and that can be killed.
    pub fn alone() -> Self {
        Server::alone_with(&[])
    }

    /// Returns such a server with these settings, each as `name=value`.
    pub fn alone_with(settings: &[&str]) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("posse-pg-{}-{next}", std::process::id());
        Server::of(std::env::temp_dir().join(name), settings)
    }

    fn of(folder: PathBuf, settings: &[&str]) -> Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "no PostgreSQL server: see {}", folder.display());
            if let Some(users) = join(&folder, settings) {
                return Server { folder, _users: users };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server (`kill -9`) and lets it start again. Returns when it is ready.
    pub fn kill(&self) {
        let file = |name: &str| self.folder.join(name);
        let text = std::fs::read_to_string(file("data/postmaster.pid")).unwrap();
        let pid: i32 = text.lines().next().unwrap().trim().parse().unwrap();
        std::fs::write(file("again"), "").unwrap();
        std::fs::remove_file(file("ready")).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !file("ready").exists() {
            assert!(Instant::now() < deadline, "the server does not come back");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&user=posse&sslmode=disable", self.folder.display())
    }

    /// Creates a database.
    pub fn database(self) -> Database {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("t{}_{next}", std::process::id());
        let database = Database { server: self, name };
        let create = format!("CREATE DATABASE {} STRATEGY file_copy", database.name);
        psql(&database.server.folder, "postgres", &create).expect("a database can be created");
        database
    }
}

impl Database {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A folder that the server can read.
    pub fn folder(&self) -> &Path {
        &self.server.folder
    }

    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Executes statements. Panics if one fails.
    pub fn execute(&self, statements: &str) {
        self.text(statements);
    }

    /// Returns the one text that `query` selects. Panics if it fails.
    pub fn text(&self, query: &str) -> String {
        match psql(&self.server.folder, &self.name, query) {
            Ok(text) => text,
            Err(why) => panic!("{query}: {why}"),
        }
    }
}

impl Bouncer {
    /// Starts PgBouncer, or returns `None` if it is not installed.
    pub fn start(database: &Database) -> Option<Self> {
        use std::os::unix::fs::PermissionsExt;
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].map(PathBuf::from);
        let program = program.into_iter().find(|program| program.exists())?;
        let folder = database.folder().join(format!("{}.pool", database.name()));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        let (pool, server) = (folder.display(), database.folder().display());
        // Fewer connections than clients, so that each message may use another session.
        let settings = format!(
            "[databases]\n* = host={server} user=posse\n[pgbouncer]\nlisten_addr =\n\
             listen_port = 6432\nunix_socket_dir = {pool}\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 100\n"
        );
        let file = folder.join("settings.ini");
        std::fs::write(&file, settings).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
                command.args(["--pdeathsig", "KILL"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.arg(file).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Some(Bouncer { process: command.spawn().unwrap(), folder })
    }

    pub fn url(&self, database: &Database) -> String {
        let (folder, name) = (self.folder.display(), database.name());
        format!("postgres:///{name}?host={folder}&port=6432&user=posse&sslmode=disable")
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // What remains is removed with the server.
        let _ = psql(&self.server.folder, "postgres", &drop);
    }
}

/// Executes statements with the server's own client, and returns what they select.
///
/// # Errors
/// What the client printed.
fn psql(server: &Path, database: &str, statements: &str) -> Result<String, String> {
    let ran = Command::new(programs().join("psql"))
        .args(["-q", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h"])
        .arg(server)
        .args(["-U", "posse", "-d", database, "-c", statements])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    match ran.status.success() {
        true => Ok(String::from_utf8_lossy(&ran.stdout).trim_end().to_owned()),
        false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}

/// Registers as a user of the server in `folder`, and starts it if needed. Returns `None` if it is
/// not ready, or about to be removed.
fn join(folder: &Path, settings: &[&str]) -> Option<File> {
    let _ = std::fs::create_dir(folder);
    let open = |name: &str| {
        File::options().create(true).truncate(false).write(true).open(folder.join(name)).ok()
    };
    let gate = open("gate")?;
    gate.lock().ok()?;
    // The process that held the gate before may have removed it with everything else, and another may have made it anew.
    let number = |found: std::io::Result<std::fs::Metadata>| found.ok().map(|found| found.ino());
    let is_there = |file: &File, name: &str| {
        let path = folder.join(name);
        number(file.metadata()).is_some() && number(file.metadata()) == number(path.metadata())
    };
    let users = open("users").filter(|_| is_there(&gate, "gate"))?;
    users.lock_shared().ok()?;
    if !is_there(&gate, "gate") || !is_there(&users, "users") {
        return None;
    }
    assert!(
        !folder.join("failed").exists(),
        "PostgreSQL cannot start: see {}/log",
        folder.display()
    );
    if folder.join("ready").exists() {
        return Some(users);
    }
    if !folder.join("begun").exists() {
        start(folder, settings);
        std::fs::write(folder.join("begun"), "").ok()?;
    }
    None
}

fn start(folder: &Path, settings: &[&str]) {
    use std::os::unix::fs::PermissionsExt;
    let programs = programs();
    // The server may run as another user, who must be able to write to the folder.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let started = Command::new("setsid")
        .args(["--fork", "bash", "-c", KEEPER, "keeper"])
        .args([folder, &programs])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(started.unwrap().success(), "no keeper for the server");
}

/// Returns the folder with the programs of the newest installed server on Debian.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|version| version.path().join("bin")).max();
    newest.expect("install PostgreSQL: apt-get install postgresql")
}
