//! The source of the password, for the error when the server refuses it. Never the password itself.

use super::options::PostgresOptions;
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The rights of others, with which a `.pgpass` is ignored.
const OTHERS: u32 = 0o077;

/// Returns the password in `file`.
///
/// # Errors
/// The reason, when it cannot be read or is empty.
pub(super) fn in_file(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let read = fs::read_to_string(file)
        .map_err(|error| format!("its password cannot be read from {shown}: {error}"))?;
    match read.trim_end_matches(['\r', '\n']) {
        "" => Err(format!("{shown}, which must contain its password, is empty")),
        password => Ok(password.to_owned()),
    }
}

/// Returns the password that a connection uses, wherever it comes from.
pub(super) fn of(connect: &PgConnectOptions) -> Option<String> {
    // It is written as in an address: with `%` and two digits for bytes that are special there.
    let written = connect.to_url_lossy().password()?.as_bytes().to_vec();
    let mut password = Vec::new();
    let mut rest = written.as_slice();
    while let [byte, after @ ..] = rest {
        let (plain, left) = match after {
            [high, low, left @ ..] if *byte == b'%' => (from_hex(*high, *low)?, left),
            _ => (*byte, after),
        };
        password.push(plain);
        rest = left;
    }
    String::from_utf8(password).ok()
}

fn from_hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Says which password the server refused, and what to do. `in_address` is whether the address has
/// one, and `connect` has the one that was used.
pub(super) fn advice(
    options: &PostgresOptions,
    in_address: bool,
    connect: &PgConnectOptions,
) -> String {
    if in_address {
        return "the password in the address was used; correct it there".to_owned();
    }
    if let Some(file) = &options.password_file {
        return format!("the password in {} was used; correct it there", file.display());
    }
    if options.password.is_some() {
        return "the password in PGPASSWORD was used; correct it, or unset it to use `.pgpass`"
            .to_owned();
    }
    let Some(file) = &options.pgpass else { return "no password was given to Posse".to_owned() };
    let shown = file.display();
    if connect.to_url_lossy().password().is_some() {
        return format!("the password in {shown} was used; correct it there");
    }
    let none = "Posse has no password for it";
    match fs::metadata(file) {
        Ok(found) if found.permissions().mode() & OTHERS != 0 => format!(
            "Posse ignores {shown}, because other users may read it: `chmod 600 {shown}` keeps it to you"
        ),
        Ok(_) => format!("{none}: no line of {shown} fits this host, port, database and user"),
        Err(error) if error.kind() == ErrorKind::NotFound => format!(
            "{none}: put it into PGPASSWORD, into `password_file` of your settings, or into {shown}"
        ),
        Err(error) => format!("{none}: {shown} cannot be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_source_of_a_password_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let pgpass = folder.path().join(".pgpass");
        let shown = pgpass.display().to_string();
        let url = "postgres://u@localhost/d";
        let plain =
            || PostgresOptions { pgpass: Some(pgpass.clone()), ..PostgresOptions::new(url) };
        let connect = || PgConnectOptions::new_without_pgpass().username("u");
        let told = |options: &PostgresOptions| advice(options, false, &connect());
        assert!(told(&plain()).contains(&format!("or into {shown}")), "{}", told(&plain()));
        fs::write(&pgpass, "h:5432:d:u:secret\n").unwrap();
        let set = |mode| fs::set_permissions(&pgpass, fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        assert!(told(&plain()).contains(&format!("`chmod 600 {shown}`")), "{}", told(&plain()));
        set(0o600);
        assert!(told(&plain()).contains("no line of"), "{}", told(&plain()));
        let used = advice(&plain(), false, &connect().password("secret"));
        assert_eq!(used, format!("the password in {shown} was used; correct it there"));
        let given = PostgresOptions { password: Some("secret".to_owned()), ..plain() };
        assert!(told(&given).contains("PGPASSWORD was used"), "{}", told(&given));
        let file = PostgresOptions { password_file: Some(PathBuf::from("/p")), ..given.clone() };
        assert!(told(&file).contains("the password in /p was used"), "{}", told(&file));
        assert!(advice(&file, true, &connect()).contains("in the address was used"));
    }

    #[test]
    fn the_password_of_a_connection_is_found() {
        for password in ["secret", "p%40@:/ ü%", ""] {
            let connect = PgConnectOptions::new_without_pgpass().password(password);
            assert_eq!(of(&connect).unwrap_or_default(), password);
        }
        assert_eq!(of(&PgConnectOptions::new_without_pgpass()), None);
    }

    #[test]
    fn a_file_without_a_password_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let missing = in_file(&file).unwrap_err();
        assert!(missing.contains("cannot be read"), "{missing}");
        fs::write(&file, "\n").unwrap();
        assert!(in_file(&file).unwrap_err().ends_with("is empty"));
        fs::write(&file, "secret\n").unwrap();
        assert_eq!(in_file(&file), Ok("secret".to_owned()));
    }
}
