//! The way out of a sandbox to granted hosts: a proxy for one command.

use super::{LaunchError, bridge};
use crate::egress::{Listening, Proxy};
use posse_protocol::Network;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// The proxy of one command. Its socket is in a folder of its own.
pub(super) struct OwnProxy {
    folder: TempDir,
    _listening: Listening,
}

impl OwnProxy {
    pub(super) fn open(network: &Network) -> Result<OwnProxy, LaunchError> {
        let failed = |error: io::Error| LaunchError::NotConfined {
            reason: format!("there is no proxy for the hosts that it may talk to: {error}"),
        };
        // Whatever the umask says: other users of the machine have no business there.
        let mut builder = tempfile::Builder::new();
        builder.prefix("posse-proxy-").permissions(Permissions::from_mode(0o700));
        let folder = builder.tempdir().map_err(failed)?;
        let listening = Proxy::new(network.clone()).listen(&folder.path().join("socket"));
        Ok(OwnProxy { folder, _listening: listening.map_err(failed)? })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The environment variables that tell programs the address of the proxy.
    pub(super) fn variables() -> Vec<(String, String)> {
        let address = format!("http://127.0.0.1:{}", bridge::PORT);
        bridge::VARIABLES.map(|name| (name.to_owned(), address.clone())).to_vec()
    }
}
