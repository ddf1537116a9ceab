//! `.mcp.json`: the servers of a project, in the form that Claude Code reads.
//!
//! A project says which program to start, and nothing about what that program may reach.

use super::{FileServer, ServerSettings};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// The name of the file.
pub const MCP_JSON: &str = ".mcp.json";

/// The most bytes of the file.
const MOST_BYTES: u64 = 1 << 20;

/// Reads the servers of the file at `path`; none if there is no file. Each that cannot be used is an error with the
/// reason.
///
/// # Errors
/// If the file cannot be read or is no such file.
pub fn read_json(path: &Path) -> Result<Vec<Result<ServerSettings, String>>, String> {
    let at = |why: String| format!("{}: {why}", path.display());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(format!("it cannot be read: {error}"))),
    };
    let mut text = String::new();
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| at(format!("it cannot be read: {error}")))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(at(format!("it has more than {MOST_BYTES} bytes")));
    }
    // The message of the parser may quote a value, which may be secret.
    let parsed: File = serde_json::from_str(&text).map_err(|error| {
        at(format!("line {}: it is no JSON with a table `mcpServers` of tables", error.line()))
    })?;
    let server = |(name, written): (String, Value)| {
        let written = Written::deserialize(written).map_err(|_| {
            at(format!("MCP server `{name}`: one of its values has the wrong type"))
        })?;
        let Written { kind, command, url, args, env } = written;
        let file = FileServer { kind, command, url, args, env, ..FileServer::default() };
        ServerSettings::read(&name, file).map_err(at)
    };
    Ok(parsed.servers.into_iter().map(server).collect())
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "mcpServers", default)]
    servers: BTreeMap<String, Value>,
}

/// What Posse uses of a server there. Other programs have keys of their own, which say nothing to Posse.
#[derive(Deserialize)]
struct Written {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    url: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use posse_protocol::Network;

    fn read(text: &str) -> Result<Vec<Result<ServerSettings, String>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MCP_JSON);
        std::fs::write(&path, text).unwrap();
        read_json(&path)
    }

    #[test]
    fn a_project_names_programs_and_cannot_give_them_a_network() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "network": "open", "disabled": 1},
            "b c": {"command": "x"}, "d": {"type": "http", "url": "https://x.org"}, "e": {"args": 1}}}"#;
        let servers = read(text).unwrap();
        let first = servers[0].as_ref().unwrap();
        assert_eq!((first.name.as_str(), &first.network), ("a", &Network::Off));
        for (server, says) in
            servers[1..].iter().zip(["must have a name", "`url` yet", "wrong type"])
        {
            let error = server.as_ref().unwrap_err();
            assert!(error.contains(says) && error.contains(MCP_JSON), "{error}");
        }
        assert_eq!(read("{}").unwrap().len(), 0);
        assert!(read("{\"mcpServers\": {\n\"a\": hunter2").unwrap_err().contains("line 2"));
    }
}
