//! Secrets in the environment of this process: read once, then overwritten where other processes
//! could see them.

use linux_keyutils::{KeyRing, KeyRingIdentifier};
pub use posse::redact::names_secret as is_secret;
use posse::store::PostgresOptions;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The variable that names the database. Its value may be an address with a password.
pub const DATABASE: &str = "POSSE_DB";
/// The most bytes of a file with a key.
const FILE_BYTES: u64 = 64 << 10;

/// Reads the values of secret variables. Afterwards `/proc/PID/environ` shows them empty.
pub fn take() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && (is_secret(name) || name == DATABASE && value.contains("://"))
            && !value.is_empty()
        {
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    // If this fails, the values are still hidden from other users and from the user's other processes.
    if !found.is_empty() {
        let _ = blot(&found);
    }
    found
}

/// The value in the file that `NAME_FILE` names, if that is set.
///
/// # Errors
/// Why the file has no value.
pub fn of_file(name: &str) -> Result<Option<String>, String> {
    let Some(path) = super::text(&format!("{name}_FILE")) else { return Ok(None) };
    let read = || -> std::io::Result<String> {
        let mut text = String::new();
        File::open(Path::new(&path))?.take(FILE_BYTES).read_to_string(&mut text)?;
        Ok(text.trim().to_owned())
    };
    match read() {
        Ok(text) if text.is_empty() => Err(format!("{name}_FILE: {path} is empty")),
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(format!("{name}_FILE: cannot read {path}: {error}")),
    }
}

/// The files that variables such as `ANTHROPIC_API_KEY_FILE` name.
pub fn files() -> Vec<PathBuf> {
    let named = std::env::vars_os().filter_map(|(name, path)| {
        let name = name.to_str()?.strip_suffix("_FILE")?.to_owned();
        is_secret(&name).then(|| PathBuf::from(path))
    });
    named.filter_map(|path| std::path::absolute(path).ok()).collect()
}

/// The value of the key `posse:NAME` in a keyring of the kernel: the session's, or the user's.
pub fn of_keyring(name: &str) -> Option<String> {
    if !is_secret(name) {
        return None;
    }
    let wanted = format!("posse:{name}");
    let rings = [KeyRingIdentifier::Session, KeyRingIdentifier::User];
    let mut rings = rings.into_iter().filter_map(|it| KeyRing::from_special_id(it, false).ok());
    let value = rings.find_map(|ring| ring.search(&wanted).ok()?.read_to_vec().ok())?;
    let text = String::from_utf8(value).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What must never be shown of the address of a server: its password, or all of an address that Posse
/// does not understand.
pub fn secret_of(address: &str) -> Option<String> {
    let options = PostgresOptions::new(address);
    let secret = match options.written_password() {
        _ if !is_address(address) => Some(address),
        // What cannot be read may contain a password.
        None => options.place().is_err().then_some(address),
        password => password,
    };
    secret.filter(|secret| !secret.is_empty()).map(str::to_owned)
}

/// True for the address of a server.
pub fn is_address(text: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
}

/// Overwrites the values in the memory where the kernel put them at the start of this program.
/// Later reads of such a variable in this process get an empty value.
fn blot(found: &BTreeMap<String, String>) -> std::io::Result<()> {
    let mut memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem")?;
    let Some((start, end)) = range()? else { return Ok(()) };
    let mut bytes = vec![0; (end - start) as usize];
    memory.seek(SeekFrom::Start(start))?;
    memory.read_exact(&mut bytes)?;
    let mut at = 0;
    for entry in bytes.split(|byte| *byte == 0) {
        let is_found =
            |name: &[u8]| std::str::from_utf8(name).is_ok_and(|it| found.contains_key(it));
        if let Some(equals) = entry.iter().position(|byte| *byte == b'=')
            && is_found(&entry[..equals])
        {
            memory.seek(SeekFrom::Start(start + (at + equals + 1) as u64))?;
            memory.write_all(&vec![0; entry.len() - equals - 1])?;
        }
        at += entry.len() + 1;
    }
    Ok(())
}

/// The address range of the environment in this process, from the kernel.
fn range() -> std::io::Result<Option<(u64, u64)>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program is in parentheses and may contain anything, so count fields after it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let numbers: Vec<Option<u64>> = fields.map(|field| field.parse().ok()).collect();
    // Fields 50 and 51 of proc_pid_stat(5); the first after the name is field 3.
    match (numbers.get(47), numbers.get(48)) {
        (Some(Some(start)), Some(Some(end))) if 0 < *start && start < end => {
            Ok(Some((*start, *end)))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_an_address_is_its_password() {
        assert_eq!(secret_of("postgres://u:PW@h/db").as_deref(), Some("PW"));
        assert_eq!(secret_of("postgresql://u@h/db?password=PW").as_deref(), Some("PW"));
        assert_eq!(secret_of("postgres://u@h/db"), None);
        assert_eq!(secret_of("postgres://u:@h/db"), None);
        assert_eq!(secret_of("postgres://u:P/W@h/db").as_deref(), Some("postgres://u:P/W@h/db"));
        assert_eq!(secret_of("mysql://u:PW@h/db").as_deref(), Some("mysql://u:PW@h/db"));
    }
}
