//! The server of a cycle, its replica, and a proxy for each client.

use super::plan::{Plan, Whose};
use super::witness::{self, DATABASE};
use crate::process::{Death, Posse};
use posse_testkit::postgres::{Node, Stop};
use posse_testkit::{Proxy, Traffic};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// The size of a disk that becomes full.
const DISK: u64 = 96 << 20;

/// A server with all tables and the witness, which cycles copy.
pub(super) struct Template(Node);

impl Template {
    pub(super) async fn make(binary: &Path, folder: &Path) -> io::Result<Arc<Self>> {
        // The server may run as another user, who must find its way there.
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711))?;
        let mut node = Node::create(&folder.join("template")).await?;
        node.start().await?;
        let home = folder.join("maker");
        std::fs::create_dir_all(home.join("workspace"))?;
        let posse = Posse::new(binary, &home, String::new()).with_database(socket_url(&node));
        let made = posse.run(&["runs", "list"], "", Death::default()).await?;
        if made.code() != Some(0) {
            return Err(io::Error::other(format!("no tables: {}", made.stderr)));
        }
        witness::install(&node).await?;
        node.stop(Stop::Fast).await?;
        Ok(Arc::new(Template(node)))
    }
}

fn socket_url(node: &Node) -> String {
    format!("postgres:///{DATABASE}?host={}&user=posse&sslmode=disable", node.folder().display())
}

/// The server and the ways to it.
pub(super) struct Site {
    pub(super) node: Node,
    replica: Option<Node>,
    /// One for each worker, and the last one for commands.
    proxies: Vec<Proxy>,
}

impl Site {
    /// Starts what `plan` needs in `folder`.
    pub(super) async fn open(plan: &Plan, template: &Template, folder: &Path) -> io::Result<Self> {
        let main = folder.join("a");
        let mut node = match plan.fills_disk() && Site::has_disks() {
            true => Node::copy_to_disk(&template.0, &main, DISK).await?,
            false => Node::copy(&template.0, &main).await?,
        };
        node.start().await?;
        let replica = match plan.fails_over() {
            true => Some(node.replica(&folder.join("b")).await?),
            false => None,
        };
        let mut proxies = Vec::new();
        for _ in 0..=plan.workers {
            proxies.push(Proxy::start(&node.socket()).await?);
        }
        Ok(Site { node, replica, proxies })
    }

    /// Only root can make a disk that becomes full.
    pub(super) fn has_disks() -> bool {
        rustix::process::geteuid().is_root()
    }

    /// The address of the database for this worker.
    pub(super) fn url(&self, worker: usize) -> String {
        let address = self.proxies[worker.min(self.proxies.len() - 1)].address();
        format!("postgres://posse@{address}/{DATABASE}?sslmode=disable")
    }

    /// The address for commands.
    pub(super) fn command_url(&self) -> String {
        self.url(usize::MAX)
    }

    fn ways(&self, whose: Whose) -> &[Proxy] {
        match whose {
            Whose::One(worker) => &self.proxies[worker..=worker],
            Whose::All => &self.proxies,
        }
    }

    pub(super) fn cut(&self, whose: Whose) {
        self.ways(whose).iter().for_each(Proxy::cut);
    }

    pub(super) fn set(&self, whose: Whose, traffic: Traffic) {
        self.ways(whose).iter().for_each(|proxy| proxy.set(traffic));
    }

    /// Kills the server, and makes its replica the server.
    pub(super) async fn fail_over(&mut self, after: std::time::Duration) -> io::Result<()> {
        self.node.stop(Stop::Kill).await?;
        let Some(replica) = self.replica.take() else {
            return Err(io::Error::other("there is no replica"));
        };
        self.node = replica;
        tokio::time::sleep(after).await;
        self.node.promote().await?;
        self.proxies.iter().for_each(|proxy| proxy.lead_to(&self.node.socket()));
        Ok(())
    }

    /// Takes connections until the server has none left.
    pub(super) async fn exhaust(&self) -> Vec<UnixStream> {
        let mut taken = Vec::new();
        while let Ok(Some(connection)) = self.connect().await {
            taken.push(connection);
        }
        taken
    }

    /// Opens a session. Returns `None` if the server has no connection left.
    async fn connect(&self) -> io::Result<Option<UnixStream>> {
        let mut stream = UnixStream::connect(self.node.socket()).await?;
        let mut hello = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", "posse", "database", DATABASE, "application_name", "filler"] {
            hello.extend(text.as_bytes());
            hello.push(0);
        }
        hello.push(0);
        let mut message = (hello.len() as u32 + 4).to_be_bytes().to_vec();
        message.append(&mut hello);
        stream.write_all(&message).await?;
        let mut answer = [0; 512];
        let read = stream.read(&mut answer).await?;
        Ok((read > 0 && answer[0] == b'R').then_some(stream))
    }

    /// Stops all servers.
    pub(super) async fn close(mut self) -> io::Result<()> {
        self.proxies.clear();
        if let Some(mut replica) = self.replica.take() {
            replica.stop(Stop::Kill).await?;
        }
        self.node.stop(Stop::Kill).await
    }
}
