//! The options in the address of a database.

/// The options of an address that have an effect here.
const OPTIONS: [&str; 10] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "port",
    "dbname",
    "user",
    "password",
    "options",
];
/// Other spellings of them, and options that Posse sets itself.
const ALSO: [&str; 8] = [
    "ssl-mode",
    "ssl-root-cert",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "application_name",
    "statement-cache-capacity",
    "",
];
/// The longest name of an option that an error repeats.
const LONGEST: usize = 32;

/// Checks the names of the options in an address.
///
/// # Errors
/// The reason, when one is unknown. It repeats no part of a password.
pub(super) fn check_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let mut is_after_password = false;
    for name in names {
        if OPTIONS.contains(&name) || ALSO.contains(&name) || name.starts_with("options[") {
            is_after_password |= name == "password";
            continue;
        }
        let is_plain = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
        // It may be the rest of a password that contains a `&`.
        if is_after_password || name.len() > LONGEST || !name.bytes().all(is_plain) {
            return Err(
                "its address has an option that Posse does not know; in a password, write \
                        %26 for `&` and %3F for `?`"
                    .to_owned(),
            );
        }
        let near = posse_protocol::near::nearest(name, OPTIONS);
        let meant = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let known = OPTIONS.join(", ");
        return Err(format!(
            "its address has an option `{name}`, which Posse does not know; {meant}It knows {known}"
        ));
    }
    Ok(())
}

/// Checks that the files in an address can be read: the library does not say which one it could not.
///
/// # Errors
/// The reason, when one cannot be read.
pub(super) fn check_files<'n>(
    settings: impl Iterator<Item = (&'n str, &'n str)>,
) -> Result<(), String> {
    const FILES: [&str; 7] =
        ["sslrootcert", "ssl-root-cert", "ssl-ca", "sslcert", "ssl-cert", "sslkey", "ssl-key"];
    // A name with `%` is encoded. A certificate may be given itself.
    let is_path = |value: &str| !value.contains('%') && !value.starts_with("-----BEGIN");
    for (name, file) in settings.filter(|(name, value)| FILES.contains(name) && is_path(value)) {
        if let Err(error) = std::fs::File::open(file) {
            return Err(format!("`{name}={file}` in its address cannot be read: {error}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let here = tempfile::NamedTempFile::new().unwrap();
        let here = here.path().to_str().unwrap();
        assert_eq!(check_files([("sslrootcert", here), ("host", "/missing")].into_iter()), Ok(()));
        assert_eq!(check_files([("sslrootcert", "/a%20b")].into_iter()), Ok(()));
        let why = check_files([("sslkey", "/missing/key")].into_iter()).unwrap_err();
        assert!(why.contains("`sslkey=/missing/key`") && why.contains("No such file"), "{why}");
    }

    #[test]
    fn an_unknown_option_is_named_unless_it_may_be_a_part_of_a_password() {
        let check = |names: &[&'static str]| check_names(names.iter().copied());
        assert_eq!(check(&["sslmode", "host", "options[work_mem]", ""]), Ok(()));
        let why = check(&["sslmod"]).unwrap_err();
        assert!(why.contains("`sslmod`") && why.contains("did you mean `sslmode`?"), "{why}");
        let why = check(&["foo"]).unwrap_err();
        assert!(why.contains("`foo`") && why.contains("It knows sslmode, sslrootcert"), "{why}");
        for names in [&["password", "hunter"][..], &["hunter2@h/d"]] {
            let why = check(names).unwrap_err();
            assert!(!why.contains("hunter") && why.contains("%26"), "{why}");
        }
    }
}
