//! `posse daemon unit`.

use super::super::Common;
use crate::daemon::address::Address;
use crate::daemon::unit;
use crate::database::Database;
use crate::exit::{Code, Failure};
use crate::print;
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The systemd unit and its files.
struct Unit {
    text: String,
    /// The path where systemd looks for it.
    path: PathBuf,
    /// The file for API keys.
    keys: PathBuf,
}

impl Unit {
    fn of(common: &Common) -> Result<Self, Failure> {
        let executable = std::env::current_exe().map_err(|error| {
            Failure::internal(format!("cannot tell where this program is: {error}"))
        })?;
        let settings = common.environment.config_folder.as_ref().ok_or_else(|| {
            Failure::usage("no folder for settings: neither HOME nor XDG_CONFIG_HOME is set")
        })?;
        let keys = settings.join("daemon.env");
        let text = match &Address::of(common)?.database {
            Database::File(path) => unit::text(&executable, path, &keys),
            Database::Server(server) if server.options.written_password().is_some() => {
                let message = "the address of the database contains a password, which every user \
                               could read in a unit";
                return Err(Failure::usage(message).hint(format!(
                    "leave it out of the address, and put PGPASSWORD=… into {}",
                    keys.display()
                )));
            }
            Database::Server(server) => {
                unit::text(&executable, Path::new(&server.options.url), &keys)
            }
        };
        let path = settings.with_file_name("systemd").join("user").join(unit::NAME);
        Ok(Unit { text, path, keys })
    }

    /// Instructions, after the line `first`.
    fn how(&self, first: &str) -> String {
        let keys = self.keys.display();
        format!(
            "{first}\n  systemctl --user daemon-reload\n  systemctl --user enable --now posse\n\
             to start it with the machine and keep it when you log out:\n  loginctl \
             enable-linger\na service does not have your shell's environment: put API keys into {keys}"
        )
    }
}

/// Prints the unit.
pub fn show(common: &Common) -> Result<Code, Failure> {
    let unit = Unit::of(common)?;
    if common.global.json {
        return tell(&unit, "printed");
    }
    print::piece(&unit.text)?;
    if !common.global.quiet {
        let path = unit.path.display();
        print::note(unit.how(&format!("\nwrite it to {path} (`--install` does), then")));
    }
    Ok(Code::Done)
}

/// Writes the unit to the folder where systemd finds it.
pub fn install(common: &Common) -> Result<Code, Failure> {
    let unit = Unit::of(common)?;
    write(&unit.path, &unit.text)?;
    if common.global.json {
        return tell(&unit, "installed");
    }
    if !common.global.quiet {
        print::note(unit.how(&format!("written to {}; now", unit.path.display())));
    }
    Ok(Code::Done)
}

fn tell(unit: &Unit, done: &str) -> Result<Code, Failure> {
    let Unit { text, path, keys } = unit;
    print::json_pretty(&json!({"done": done, "path": path, "keys": keys, "unit": text}))?;
    Ok(Code::Done)
}

/// Writes the unit, unless a different file exists at `path`.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let shown = path.display();
    let cannot =
        |error: std::io::Error| Failure::internal(format!("cannot write {shown}: {error}"));
    match std::fs::read_to_string(path) {
        Ok(there) if there == text => return Ok(()),
        Ok(_) => {
            return Err(Failure::usage(format!("{shown} is there already, and is another"))
                .hint("remove it first, or write what `posse daemon unit` prints elsewhere"));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(error)),
    }
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text)).map_err(cannot)
}
