//! Python modules that a hook or a program of git imports from the folder in which it runs.
//!
//! With `-m` and `-c`, Python looks for every module in the current folder first. So a new file at the top of a
//! checkout can take the place of a module of the standard library.

use super::words::Places;
use std::path::PathBuf;

/// The modules of the standard library, without those that no hook uses.
const STANDARD: &str = "\
    __future__ _abc _ast _asyncio _bisect _blake2 _bootlocale _bootsubprocess _bz2 _codecs \
    _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _collections \
    _collections_abc _colorize _compat_pickle _compression _contextvars _crypt _csv _ctypes \
    _curses _curses_panel _datetime _dbm _decimal _dummy_thread _elementtree _frozen_importlib \
    _frozen_importlib_external _functools _gdbm _hashlib _heapq _imp _interpreters _io _json \
    _locale _lsprof _lzma _markupbase _md5 _multibytecodec _multiprocessing _opcode \
    _opcode_metadata _operator _pickle _posixshmem _posixsubprocess _py_abc _py_warnings \
    _pydatetime _pydecimal _pyio _queue _random _sha1 _sha2 _sha256 _sha3 _sha512 _signal \
    _sitebuiltins _socket _sqlite3 _sre _ssl _stat _statistics _string _strptime _struct \
    _suggestions _symtable _sysconfig _thread _threading_local _tokenize _tracemalloc _typing \
    _uuid _warnings _weakref _weakrefset _zoneinfo _zstd abc aifc annotationlib argparse array \
    ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect bz2 cProfile calendar \
    cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall compression \
    concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses \
    dataclasses datetime dbm decimal difflib dis distutils doctest dummy_threading email \
    encodings enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools \
    gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http \
    imaplib imghdr imp importlib inspect io ipaddress itertools json keyword linecache locale \
    logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder multiprocessing netrc \
    nis nntplib ntpath numbers opcode operator optparse os ossaudiodev pathlib pdb pickle \
    pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty \
    pwd py_compile pyclbr pydoc pyexpat queue quopri random re readline reprlib resource \
    rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd \
    smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat \
    statistics string stringprep struct subprocess sunau symtable sysconfig syslog tabnanny \
    tarfile telnetlib tempfile termios textwrap threading time timeit token tokenize tomllib \
    trace traceback tracemalloc tty types typing unicodedata unittest urllib uu uuid warnings \
    wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Modules that are often run with `-m`, and the packages that they import.
const IMPORTED: &[(&str, &str)] = &[
    ("pre_commit", "cfgv identify nodeenv virtualenv yaml"),
    (
        "nbstripout",
        "attr attrs fastjsonschema jsonschema jupyter_core nbformat platformdirs referencing rpds traitlets typing_extensions",
    ),
    ("black", "click mypy_extensions packaging pathspec platformdirs pytokens typing_extensions"),
    ("pytest", "_pytest iniconfig packaging pluggy pygments"),
];

/// The ends of the names under which Python finds a module.
const FORMS: [&str; 5] = [".py", "/__init__.py", ".pyc", ".so", ".abi3.so"];

impl Places<'_> {
    /// The files from which Python would import modules if `text` runs: the module after `-m`, and files that
    /// would take the place of others. They need not exist.
    pub(super) fn imported_by(&self, text: &str) -> Vec<PathBuf> {
        let Some(module) = module_of(text) else { return Vec::new() };
        let mut names: Vec<&str> = STANDARD.split_whitespace().collect();
        let (first, rest) = module.split_once('.').unwrap_or((module, ""));
        let packages = IMPORTED.iter().filter(|(module, _)| *module == first);
        names.extend(packages.flat_map(|(_, packages)| packages.split_whitespace()));
        names.extend((!first.is_empty()).then_some(first));
        let mut files: Vec<String> =
            names.iter().flat_map(|name| FORMS.map(|form| format!("{name}{form}"))).collect();
        if !first.is_empty() {
            let path = module.replace('.', "/");
            files.push(format!("{path}/__main__.py"));
            files.extend((!rest.is_empty()).then(|| format!("{path}.py")));
        }
        let folders = self.folders_of(text);
        let inside: Vec<_> =
            folders.iter().filter(|folder| folder.starts_with(self.workspace)).collect();
        let modules =
            |name: &str| inside.iter().map(|folder| folder.join(name)).collect::<Vec<_>>();
        let mut found: Vec<PathBuf> = files.iter().flat_map(|name| modules(name)).collect();
        // Names of compiled modules contain the version of Python.
        for folder in &inside {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let compiled = entries.map(|entry| entry.path()).filter(|path| {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let (module, end) = name.split_once('.').unwrap_or((name, ""));
                end.ends_with(".so") && names.contains(&module)
            });
            found.extend(compiled);
        }
        found
    }
}

/// The module that Python runs in `text`. It is empty if Python runs a text. `None` if Python imports nothing from
/// the folder.
fn module_of(text: &str) -> Option<&str> {
    if !text.to_ascii_lowercase().contains("python") {
        return None;
    }
    let is_end = |letter: char| letter.is_whitespace() || "'\"`;|&()".contains(letter);
    let words: Vec<&str> = text.split(is_end).filter(|word| !word.is_empty()).collect();
    let is_module = |word: &&str| {
        let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        let is_next = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
        word.starts_with(is_first) && word.chars().all(is_next)
    };
    let mut runs_text = false;
    for (at, word) in words.iter().enumerate() {
        let Some(option) = word.strip_prefix('-').filter(|it| !it.starts_with('-')) else {
            continue;
        };
        let mut letters = option.chars().take_while(char::is_ascii_alphabetic);
        let Some(split) = letters.position(|letter| "mc".contains(letter)) else { continue };
        if option[split..].starts_with('c') {
            runs_text |= option.len() == split + 1;
            continue;
        }
        let glued = Some(&option[split + 1..]).filter(|it| !it.is_empty());
        let module = glued.or_else(|| words.get(at + 1).copied());
        if let Some(module) = module.filter(is_module) {
            return Some(module);
        }
    }
    runs_text.then_some("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_that_python_runs_is_found() {
        for (text, expected) in [
            ("exec \"$INSTALL_PYTHON\" -mpre_commit \"${ARGS[@]}\"", Some("pre_commit")),
            ("python3 -m tools.strip %f", Some("tools.strip")),
            ("\"/usr/bin/python3\" -Im nbstripout", Some("nbstripout")),
            ("python3.12 -c 'import json'", Some("")),
            ("python3 scripts/check.py -x", None),
            ("git commit -m x", None),
            ("python3 x.py | grep -m1 y", None),
        ] {
            assert_eq!(module_of(text), expected, "{text}");
        }
    }
}
