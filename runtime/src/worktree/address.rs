//! Addresses of git repositories as people write them, with a commit or a branch.

use std::path::Path;

/// How many hexadecimal digits the id of a commit has.
const FULL: usize = 40;

/// The longest address.
const LONGEST: usize = 2_000;

/// A user name of this length in an address is probably a token.
const TOKEN: usize = 20;

/// The address of a repository, and what to check out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The address, as git takes it.
    pub(crate) url: String,
    /// A full commit id, a branch or a tag; the default branch if it is empty.
    pub(crate) revision: String,
}

impl Address {
    /// Reads `text`: `https://…`, `ssh://…`, `user@host:path`, `file:///…` or a folder, relative to
    /// `folder`; then, if wanted, `@` and a commit or a branch.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub(crate) fn read(text: &str, folder: &Path) -> Result<Address, String> {
        let refused = |why: &str| Err(format!("the repository `{}` {why}", shown(text)));
        if text.is_empty() || text.starts_with('-') || text.len() > LONGEST {
            return refused("is no address");
        }
        if text.chars().any(|it| it.is_control() || it.is_whitespace()) {
            return refused("has white space in its address");
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, text),
        };
        match scheme {
            Some(scheme @ ("https" | "ssh")) => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                if let Some((user, _)) = host.rsplit_once('@')
                    && (user.contains(':') || (scheme == "https" && user.len() >= TOKEN))
                {
                    return refused(
                        "has a password in its address; leave that to git: a credential helper \
                         of each worker",
                    );
                }
                let (path, revision) = split(path);
                Ok(Address { url: format!("{scheme}://{host}/{path}"), revision })
            }
            Some("file") => {
                let (path, revision) = split(rest);
                Ok(Address { url: format!("file://{path}"), revision })
            }
            Some(_) => refused("cannot be reached so: use https, ssh, file or a folder"),
            None => Address::of_folder(text, folder).or_else(|| of_ssh(text)).map_or_else(
                || refused("is no folder with a git repository, and no address"),
                |address| address.checked(text),
            ),
        }
    }

    /// Reads the path of a folder. A folder with `@` in its name comes first.
    fn of_folder(text: &str, folder: &Path) -> Option<Address> {
        let url = |path: &str| {
            let real = folder.join(path).canonicalize().ok().filter(|path| path.is_dir())?;
            // Git decodes the path.
            Some(format!("file://{}", real.to_str()?.replace('%', "%25")))
        };
        if let Some(url) = url(text) {
            return Some(Address { url, revision: String::new() });
        }
        let (path, revision) = text.rsplit_once('@')?;
        let path = if path.is_empty() { "." } else { path };
        Some(Address { url: url(path)?, revision: revision.to_owned() })
    }

    fn checked(self, text: &str) -> Result<Address, String> {
        match self.revision.starts_with('-') {
            true => Err(format!("the repository `{}` has no such branch", shown(text))),
            false => Ok(self),
        }
    }

    /// Returns the commit, if the address names one by its full id.
    pub(crate) fn commit(&self) -> Option<&str> {
        is_commit(&self.revision).then_some(&self.revision)
    }
}

/// True for the full id of a commit.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == FULL && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// True for an address as [`Address::read`] returns it. One from a copied database could be something else, such as an
/// option of git.
pub(crate) fn is_address(url: &str) -> bool {
    match url.split_once("://") {
        Some((scheme, _)) => matches!(scheme, "https" | "ssh" | "file"),
        None => !url.starts_with('-') && !url.contains("::") && of_ssh(url).is_some(),
    }
}

/// Reads `user@host:path`.
fn of_ssh(text: &str) -> Option<Address> {
    let (host, path) = text.split_once(':')?;
    if host.contains('/') || path.starts_with(':') || path.is_empty() {
        return None;
    }
    let (path, revision) = split(path);
    Some(Address { url: format!("{host}:{path}"), revision })
}

/// Splits what is after the last `@` from a path.
fn split(path: &str) -> (String, String) {
    match path.rsplit_once('@') {
        Some((path, revision)) => (path.to_owned(), revision.to_owned()),
        None => (path.to_owned(), String::new()),
    }
}

/// Returns an address as messages show it: without what may be a password.
pub(crate) fn shown(text: &str) -> String {
    let text: String = text.chars().take(300).collect();
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}/{path}")
        }
        None => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_its_commit_or_branch() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a@b")).unwrap();
        let here = format!("file://{}", top.display());
        let check = |text: &str, url: &str, revision: &str| {
            let read = Address::read(text, &top).unwrap();
            assert_eq!((read.url.as_str(), read.revision.as_str()), (url, revision), "{text}");
        };
        check("https://example.org/x.git", "https://example.org/x.git", "");
        check("https://me@example.org/x.git@main", "https://me@example.org/x.git", "main");
        check("https://example.org/x@feature/y", "https://example.org/x", "feature/y");
        check("ssh://git@example.org/x.git", "ssh://git@example.org/x.git", "");
        check("git@example.org:me/x.git", "git@example.org:me/x.git", "");
        check("git@example.org:me/x.git@v1.0", "git@example.org:me/x.git", "v1.0");
        check("file:///srv/x@main", "file:///srv/x", "main");
        check(".", &here, "");
        check("@main", &here, "main");
        check("./@main", &here, "main");
        check("a@b", &format!("{here}/a@b"), "");
        check("a@b@main", &format!("{here}/a@b"), "main");
        std::fs::create_dir_all(top.join("50%41")).unwrap();
        check("50%41", &format!("{here}/50%2541"), "");
    }

    #[test]
    fn an_address_that_is_not_safe_is_refused_without_its_password() {
        let here = Path::new("/nowhere");
        for text in [
            "",
            "--upload-pack=touch /tmp/x",
            "ext::sh -c touch% /tmp/x",
            "ext::touch",
            "http://example.org/x",
            "git://example.org/x",
            "https://me:hunter2hunter2@example.org/x.git",
            "https://hunter2hunter2hunter2@example.org/x.git",
            "https://example.org/x y",
            "no-such-folder",
            "no-such-folder@main",
        ] {
            let why = Address::read(text, here).unwrap_err();
            assert!(!why.contains("hunter2"), "{why}");
        }
        for url in ["--upload-pack=x", "ext::sh -c x", "/tmp/x", "http://x/y", "", "-x:y"] {
            assert!(!is_address(url), "{url}");
        }
        for url in ["https://x/y", "ssh://x/y", "file:///x", "git@x:y/z"] {
            assert!(is_address(url), "{url}");
        }
    }

    #[test]
    fn only_a_full_id_is_a_commit() {
        let of = |revision: &str| Address { url: String::new(), revision: revision.to_owned() };
        assert!(of(&"a1".repeat(20)).commit().is_some());
        for revision in ["", "main", "a1a1a1a", &"A1".repeat(20), &"g1".repeat(20)] {
            assert!(of(revision).commit().is_none(), "{revision}");
        }
    }
}
