//! Writes MCP servers into settings: the user's file, or `.mcp.json` of a project. The rest of a file stays as it is.

use super::ConfigError;
use super::always::replace;
use crate::mcp_settings::{MCP_JSON, ServerSettings};
use serde_json::{Map, Value as Json, json};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

/// Adds `server` to the settings of the user in `file`, or to the `.mcp.json` of a project, and creates the file if it is
/// missing.
///
/// # Errors
/// When the file cannot be read, parsed or written, or has a server of this name. The file is then unchanged.
pub fn add_server(file: &Path, server: &ServerSettings) -> Result<(), ConfigError> {
    let wrong = |reason: String| ConfigError::Unwritable { path: file.to_owned(), reason };
    let there =
        || wrong(format!("it has an MCP server `{}` already; remove that one first", server.name));
    if is_json(file) {
        let mut document = read_json(file)?;
        let servers = json_servers(&mut document).ok_or_else(|| wrong(no_table("mcpServers")))?;
        if servers.contains_key(&server.name) {
            return Err(there());
        }
        let written = json!({"command": server.command, "args": server.args, "env": server.env});
        servers.insert(server.name.clone(), written);
        return write_json(file, &document);
    }
    let mut document = read_toml(file)?;
    let servers = toml_servers(&mut document).ok_or_else(|| wrong(no_table("mcp_servers")))?;
    if servers.contains_key(&server.name) {
        return Err(there());
    }
    servers.insert(&server.name, Item::Table(table_of(server)));
    replace(file, &document.to_string()).map_err(|error| wrong(error.to_string()))
}

/// Removes the server `name` from `file`. Returns false if it is not there.
///
/// # Errors
/// When the file cannot be read, parsed or written. The file is then unchanged.
pub fn remove_server(file: &Path, name: &str) -> Result<bool, ConfigError> {
    let wrong = |reason: String| ConfigError::Unwritable { path: file.to_owned(), reason };
    if is_json(file) {
        let mut document = read_json(file)?;
        let removed = json_servers(&mut document).and_then(|servers| servers.shift_remove(name));
        return match removed {
            Some(_) => write_json(file, &document).map(|()| true),
            None => Ok(false),
        };
    }
    let mut document = read_toml(file)?;
    let removed = toml_servers(&mut document).and_then(|servers| servers.remove(name));
    match removed {
        Some(_) => replace(file, &document.to_string())
            .map(|()| true)
            .map_err(|error| wrong(error.to_string())),
        None => Ok(false),
    }
}

fn is_json(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == MCP_JSON)
}

fn no_table(key: &str) -> String {
    format!("`{key}` is not a table")
}

fn read(file: &Path) -> Result<String, ConfigError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => {
            Err(ConfigError::Unwritable { path: file.to_owned(), reason: error.to_string() })
        }
    }
}

fn read_json(file: &Path) -> Result<Json, ConfigError> {
    let text = read(file)?;
    if text.trim().is_empty() {
        return Ok(Json::Object(Map::new()));
    }
    // The message of the parser may quote a secret.
    serde_json::from_str(&text).map_err(|error| ConfigError::Unwritable {
        path: file.to_owned(),
        reason: format!("line {} is no JSON", error.line()),
    })
}

fn write_json(file: &Path, document: &Json) -> Result<(), ConfigError> {
    let written = serde_json::to_string_pretty(document).map_err(std::io::Error::from);
    written.and_then(|text| replace(file, &format!("{text}\n"))).map_err(|error| {
        ConfigError::Unwritable { path: file.to_owned(), reason: error.to_string() }
    })
}

fn json_servers(document: &mut Json) -> Option<&mut Map<String, Json>> {
    let servers = document.as_object_mut()?.entry("mcpServers");
    servers.or_insert_with(|| json!({})).as_object_mut()
}

fn read_toml(file: &Path) -> Result<DocumentMut, ConfigError> {
    read(file)?.parse().map_err(|error: toml_edit::TomlError| ConfigError::Unwritable {
        path: file.to_owned(),
        reason: format!("it is no TOML: {}", error.message()),
    })
}

fn toml_servers(document: &mut DocumentMut) -> Option<&mut dyn toml_edit::TableLike> {
    let key = ["mcpServers", "mcp_servers"].into_iter().find(|key| document.contains_key(key));
    let mut new = Table::new();
    new.set_implicit(true);
    document.entry(key.unwrap_or("mcp_servers")).or_insert(Item::Table(new)).as_table_like_mut()
}

fn table_of(server: &ServerSettings) -> Table {
    let mut table = Table::new();
    table.insert("command", toml_edit::value(&server.command));
    if !server.args.is_empty() {
        table.insert("args", toml_edit::value(server.args.iter().collect::<Array>()));
    }
    if !server.env.is_empty() {
        let env: InlineTable =
            server.env.iter().map(|(name, value)| (name, value.as_str())).collect();
        table.insert("env", toml_edit::value(env));
    }
    match &server.network {
        posse_protocol::Network::Off => {}
        posse_protocol::Network::Open => {
            table.insert("network", toml_edit::value("open"));
        }
        posse_protocol::Network::Hosts(hosts) => {
            table.insert("network", toml_edit::value(hosts.iter().collect::<Array>()));
        }
    }
    table
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};
    use crate::mcp_settings::read_json as read_servers;

    fn server(name: &str) -> ServerSettings {
        let text = "command = 'npx'\nargs = ['-y', 'x']\nenv = { A = '${B}' }\nnetwork = ['x.org']";
        ServerSettings::read(name, toml::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn a_server_is_added_once_read_as_it_was_written_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().join("config.toml");
        std::fs::write(&user, "# mine\nmodel = 'x/y'\n").unwrap();
        add_server(&user, &server("a")).unwrap();
        add_server(&user, &server("b")).unwrap();
        assert!(add_server(&user, &server("a")).unwrap_err().to_string().contains("already"));
        let load = || {
            let sources = Sources { user: Some(user.clone()), ..Sources::default() };
            Config::load(&sources).unwrap().mcp_servers
        };
        let read: Vec<ServerSettings> = load().into_iter().map(|it| it.value).collect();
        assert_eq!(read, [server("a"), server("b")]);
        assert!(remove_server(&user, "a").unwrap() && !remove_server(&user, "a").unwrap());
        assert_eq!(load().len(), 1);
        assert!(std::fs::read_to_string(&user).unwrap().starts_with("# mine\nmodel = 'x/y'\n"));
        let project = folder.path().join(MCP_JSON);
        std::fs::write(&project, "{\"other\": 1}").unwrap();
        add_server(&project, &server("a")).unwrap();
        assert!(add_server(&project, &server("a")).is_err());
        assert_eq!(read_servers(&project).unwrap()[0].as_ref().unwrap().args, ["-y", "x"]);
        assert!(remove_server(&project, "a").unwrap() && !remove_server(&project, "a").unwrap());
        assert!(std::fs::read_to_string(&project).unwrap().contains("\"other\": 1"));
        std::fs::write(&user, "= broken").unwrap();
        assert!(add_server(&user, &server("a")).is_err());
    }
}
