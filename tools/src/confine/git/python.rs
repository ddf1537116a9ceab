//! Python modules that a hook or a program of git imports from the folder in which it runs.
//!
//! With `-m` and `-c`, Python looks for every module in the current folder first. So a new file at the top of a
//! checkout can take the place of a module of the standard library.

use super::words::{Places, WORDS, words};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The modules of the standard library: all of `sys.stdlib_module_names` of Python 3.10 to 3.13, the new ones of
/// 3.14, and others that programs try to import.
const STANDARD: &str = "\
    __future__ _abc _aix_support _android_support _apple_support _ast _asyncio _bisect _blake2 \
    _bootlocale _bootsubprocess _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp \
    _codecs_kr _codecs_tw _collections _collections_abc _colorize _compat_pickle _compression \
    _contextvars _crypt _csv _ctypes _curses _curses_panel _datetime _dbm _decimal _distutils_hack \
    _distutils_system_mod _dummy_thread _elementtree _frozen_importlib _frozen_importlib_external \
    _functools _gdbm _hashlib _heapq _imp _interpchannels _interpqueues _interpreters _io \
    _ios_support _json _locale _lsprof _lzma _markupbase _md5 _msi _multibytecodec \
    _multiprocessing _opcode _opcode_metadata _operator _osx_support _overlapped _pickle \
    _posixshmem _posixsubprocess _py_abc _py_warnings _pydatetime _pydecimal _pyio _pylong _pyrepl \
    _queue _random _scproxy _sha1 _sha2 _sha256 _sha3 _sha512 _signal _sitebuiltins _socket \
    _sqlite3 _sre _ssl _stat _statistics _string _strptime _struct _suggestions _symtable \
    _sysconfig _thread _threading_local _tkinter _tokenize _tracemalloc _typing _uuid _warnings \
    _weakref _weakrefset _winapi _wmi _zoneinfo _zstd abc aifc annotationlib antigravity argparse \
    array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii binhex bisect builtins \
    bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys \
    compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv \
    ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest dummy_threading \
    email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions \
    ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq \
    hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json \
    keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap \
    modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers \
    opcode operator optparse org os ossaudiodev pathlib pdb pickle pickletools pipes pkg_resources \
    pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile \
    pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter \
    runpy sched secrets select selectors setuptools shelve shlex shutil signal site sitecustomize \
    smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl \
    stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog \
    tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter token \
    tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata \
    unittest urllib usercustomize uu uuid venv warnings wave weakref webbrowser winreg winsound \
    wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Modules that are often run with `-m`, and the packages that they import.
const IMPORTED: &[(&str, &str)] = &[
    ("pre_commit", "cfgv identify nodeenv virtualenv yaml"),
    (
        "nbstripout",
        "attr attrs fastjsonschema fqdn idna isoduration jsonpointer jsonschema \
         jsonschema_specifications jupyter_core nbformat platformdirs referencing rpds traitlets typing_extensions",
    ),
    ("black", "click mypy_extensions packaging pathspec platformdirs pytokens typing_extensions"),
    ("pytest", "_pytest iniconfig packaging pluggy pygments"),
];

/// Where Python looks for modules, in its own words.
const PATHS: &str = "sys.path";

/// The ends of the names under which Python finds a module.
const FORMS: [&str; 5] = [".py", "/__init__.py", ".pyc", ".so", ".abi3.so"];

impl Places<'_> {
    /// The files from which Python would import modules if `text` runs: the modules after `-m` with the packages
    /// around them, and files that would take the place of other modules. They need not exist.
    pub(super) fn imported_by(&self, text: &str) -> Vec<PathBuf> {
        let Some(modules) = modules_of(text) else { return Vec::new() };
        let first = |module: &str| module.split('.').next().unwrap_or_default().to_owned();
        let mut names: BTreeSet<String> = STANDARD.split_whitespace().map(str::to_owned).collect();
        for (_, packages) in
            IMPORTED.iter().filter(|(it, _)| modules.iter().any(|m| first(m) == *it))
        {
            names.extend(packages.split_whitespace().map(str::to_owned));
        }
        let mut paths: BTreeSet<String> = names.clone();
        for module in &modules {
            let ends = module.match_indices('.').map(|(at, _)| at).chain([module.len()]);
            paths.extend(ends.map(|end| module[..end].replace('.', "/")));
            names.insert(first(module));
        }
        let files = paths.iter().flat_map(|path| FORMS.map(|form| format!("{path}{form}")));
        let mains = modules.iter().map(|it| format!("{}/__main__.py", it.replace('.', "/")));
        let files: Vec<String> = files.chain(mains).collect();
        let mut folders = self.folders_of(text);
        // `sys.path.insert(0, "lib")`.
        let lines = text.lines().filter(|line| line.contains(PATHS));
        let named = lines.flat_map(|line| words(line, WORDS)).map(|word| word.text);
        let named: BTreeSet<PathBuf> = named.flat_map(|word| self.places(word, &folders)).collect();
        folders.extend(named.into_iter().filter(|path| path.is_dir()));
        let mut found = Vec::new();
        for folder in folders.iter().filter(|folder| folder.starts_with(self.workspace)) {
            found.extend(files.iter().map(|file| folder.join(file)));
            // Names of compiled modules contain the version of Python.
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            found.extend(entries.map(|entry| entry.path()).filter(|path| {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let (module, end) = name.split_once('.').unwrap_or((name, ""));
                let is_compiled = end.ends_with(".so") || name.starts_with("_sysconfigdata_");
                is_compiled && (names.contains(module) || module.starts_with("_sysconfigdata_"))
            }));
        }
        found
    }
}

/// The modules that Python runs in `text`. `None` if Python imports nothing from the folder in which it runs: it
/// looks there if it runs a module, a text or its input.
fn modules_of(text: &str) -> Option<BTreeSet<String>> {
    let mut modules: Option<BTreeSet<String>> = None;
    let is_space = |letter: char| letter.is_whitespace() || "'\"`()".contains(letter);
    // Each begins where a command may begin, so that the options of other programs do not count.
    for command in text.split([';', '|', '&', '\n']) {
        let mut words = command.split(is_space).filter(|word| !word.is_empty());
        let is_set = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.contains('-'));
        let is_python = |word: &&str| word.to_ascii_lowercase().contains("python") && !is_set(word);
        while words.by_ref().any(|word| is_python(&word)) {
            modules = modules_after(&mut words, modules);
        }
    }
    // A program of Python looks beside its own file, unless it says otherwise.
    let first = text.lines().next().unwrap_or_default();
    let is_program = first.starts_with("#!") && first.contains("python");
    if is_program && !text.contains(PATHS) {
        return modules;
    }
    modules.map(|modules| modules.into_iter().chain(imports(text)).collect())
}

/// The modules that the statements of a Python text import.
fn imports(text: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for statement in text.split(['\n', ';', '\'', '"', '`', '(', ')']) {
        let statement = statement.trim();
        let (before, names) = match statement.split_once("import ") {
            Some(("", names)) => (String::new(), names),
            Some((from, names)) => match from.trim().strip_prefix("from ") {
                Some(module) => (format!("{}.", module.trim()), names),
                None => continue,
            },
            None => continue,
        };
        let names = names.split(',').filter_map(|name| name.split_whitespace().next());
        modules.extend(names.map(|name| format!("{before}{name}")));
        modules.extend(before.strip_suffix('.').map(str::to_owned));
    }
    let is_next = |letter: char| letter.is_alphanumeric() || "_.".contains(letter);
    modules.retain(|name| name.chars().all(is_next) && !name.starts_with('.'));
    modules
}

/// Reads the options of a Python program, up to what it runs.
fn modules_after<'t>(
    words: &mut impl Iterator<Item = &'t str>,
    mut modules: Option<BTreeSet<String>>,
) -> Option<BTreeSet<String>> {
    loop {
        let word = words.next();
        let option = word.and_then(|word| word.strip_prefix('-'));
        let Some(option) = option else {
            // Without a script, it runs its input.
            if word.is_none_or(|word| word.starts_with('<') || word.starts_with('$')) {
                modules.get_or_insert_default();
            }
            return modules;
        };
        if option.starts_with('-') {
            continue;
        }
        let at = option.find(['m', 'c', 'X', 'W']);
        let value = at.map(|at| &option[at + 1..]).filter(|value| !value.is_empty());
        match at.map(|at| option.as_bytes()[at]) {
            Some(b'm') => {
                let module = value.or_else(|| words.next()).unwrap_or_default();
                let modules = modules.get_or_insert_default();
                let is_next = |letter: char| letter.is_alphanumeric() || "_.".contains(letter);
                modules.extend(module.chars().all(is_next).then(|| module.to_owned()));
                modules.remove("");
                return Some(modules.clone());
            }
            Some(b'c') => {
                modules.get_or_insert_default();
                return modules;
            }
            Some(_) if value.is_none() => {
                words.next();
            }
            // `-` alone is the input.
            None if option.is_empty() => {
                modules.get_or_insert_default();
                return modules;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test may ask Python")]
    fn all_modules_of_the_standard_library_are_known() {
        let ask =
            "import sys; print(*getattr(sys, 'stdlib_module_names', sys.builtin_module_names))";
        let said = std::process::Command::new("python3").args(["-c", ask]).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.split_whitespace().count() > 10, "{said}");
        let known: BTreeSet<&str> = STANDARD.split_whitespace().collect();
        let unknown: Vec<&str> = said.split_whitespace().filter(|it| !known.contains(it)).collect();
        assert_eq!(unknown, [""; 0]);
    }

    #[test]
    fn the_modules_that_python_runs_are_found() {
        for (text, expected) in [
            ("exec \"$INSTALL_PYTHON\" -mpre_commit \"${ARGS[@]}\"", Some("pre_commit")),
            ("python3 -m tools.strip %f", Some("tools.strip")),
            ("\"/usr/bin/python3\" -Im nbstripout", Some("nbstripout")),
            ("python3 -m compileall -q src\npython3 -m black .", Some("black compileall")),
            ("find src -name \"*.py\" | xargs python3 -m black", Some("black")),
            ("python3 -Ximporttime -m black # git commit -n -m message", Some("black")),
            ("python3 -X importtime -W ignore -m black", Some("black")),
            ("PYTHONPATH=lib python3 -m x", Some("x")),
            ("python3.12 -c 'import json'", Some("json")),
            ("python3 -c \"from tools import x, y\"", Some("tools tools.x tools.y")),
            ("python3 - <<E\nimport a.b as c, d\nE", Some("a.b d")),
            ("python3 - <<EOF", Some("")),
            ("cat x | python3", Some("")),
            ("python3 -m \"$M\"", Some("")),
            ("python3 scripts/check.py -x", None),
            ("python3 -u scripts/check.py -m x", None),
            ("git commit -m x", None),
            ("python3 x.py | grep -m1 y", None),
        ] {
            let found = modules_of(text).map(|all| all.into_iter().collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
