//! The systemd unit of the daemon.

use std::path::Path;

/// The name of the unit.
pub const NAME: &str = "posse.service";

/// A unit that keeps the daemon of `database` running. The API keys come from `keys`, because a
/// service does not have the environment of a shell.
pub fn text(executable: &Path, database: &Path, keys: &Path) -> String {
    let (executable, database) = (quoted(executable), quoted(database));
    // systemd takes the rest of the line verbatim, except specifiers.
    let keys = keys.display().to_string().replace('%', "%%");
    format!(
        "\
[Unit]
Description=Posse: runs that outlive the terminal

[Service]
Type=exec
ExecStart={executable} daemon start --foreground --db {database}
# API keys, one per line, such as ANTHROPIC_API_KEY=…; readable only by you (chmod 600).
EnvironmentFile=-{keys}
Restart=on-failure
RestartSec=2
# Current steps may end. Processes of agents end with the daemon.
KillMode=mixed
TimeoutStopSec=45
# If a command uses all memory, the daemon must survive.
OOMPolicy=continue
# A memory dump would contain API keys.
LimitCORE=0
# Options that restrict namespaces, system calls or privileges would break the sandbox of agents'
# commands, which uses them itself.

[Install]
WantedBy=default.target
"
    )
}

/// A path as one word of a systemd command line.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let text =
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_one_word_whatever_is_in_it() {
        assert_eq!(quoted(Path::new("/a b/100%$x")), r#""/a b/100%%$$x""#);
        let text = text(Path::new("/bin/posse"), Path::new("/x.db"), Path::new("/etc/keys"));
        let start = r#"ExecStart="/bin/posse" daemon start --foreground --db "/x.db""#;
        assert!(text.lines().any(|line| line == start), "{text}");
        assert!(text.contains("\nRestart=on-failure\n"), "{text}");
    }
}
