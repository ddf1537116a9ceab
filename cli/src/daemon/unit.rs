//! The daemon as a unit of systemd.

use std::path::Path;

/// The name of the unit.
pub const NAME: &str = "posse.service";

/// A unit with which systemd keeps the daemon of `database` running. Keys come from `keys`, for a
/// service has not the environment of a shell.
pub fn text(executable: &Path, database: &Path, keys: &Path) -> String {
    let (executable, database) = (quoted(executable), quoted(database));
    // Systemd takes the rest of the line as it is, but for specifiers.
    let keys = keys.display().to_string().replace('%', "%%");
    format!(
        "\
[Unit]
Description=Posse: runs that outlive the terminal

[Service]
Type=exec
ExecStart={executable} daemon start --foreground --db {database}
# Keys, a line each, such as ANTHROPIC_API_KEY=…; for your eyes only (chmod 600).
EnvironmentFile=-{keys}
Restart=on-failure
RestartSec=2
# Steps that are under way may end. What agents have started ends with the daemon.
KillMode=mixed
TimeoutStopSec=45
# A command that takes all memory is not to take the daemon along.
OOMPolicy=continue
# A dump of its memory would hold keys.
LimitCORE=0
# What restricts namespaces, system calls or privileges would break the shells of agents, which
# confine themselves with the first two.

[Install]
WantedBy=default.target
"
    )
}

/// A path as one word of a command line of systemd.
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
