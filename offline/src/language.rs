//! Which language a file is in, by its name.

use crate::place::base;
use crate::words;

/// What a file is written in, as far as definitions look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
    /// JavaScript and TypeScript.
    Script,
    Go,
    /// Java and what looks like it: Kotlin, C#, Swift, Scala, PHP, Dart.
    Java,
    /// C and C++.
    C,
    Ruby,
    Shell,
    Markdown,
    Toml,
    Yaml,
    Json,
    /// Makefiles and justfiles.
    Make,
    Other,
}

/// Endings or names, the language, what people call it, and what a fenced block calls it.
struct Row(&'static str, Language, &'static str, &'static str);

const ENDINGS: [Row; 33] = [
    Row("rs", Language::Rust, "Rust", "rust"),
    Row("py pyi", Language::Python, "Python", "python"),
    Row("ts tsx mts", Language::Script, "TypeScript", "ts"),
    Row("js jsx mjs cjs", Language::Script, "JavaScript", "js"),
    Row("vue", Language::Script, "Vue", "vue"),
    Row("svelte", Language::Script, "Svelte", "svelte"),
    Row("go", Language::Go, "Go", "go"),
    Row("java", Language::Java, "Java", "java"),
    Row("kt kts", Language::Java, "Kotlin", "kotlin"),
    Row("cs", Language::Java, "C#", "csharp"),
    Row("swift", Language::Java, "Swift", "swift"),
    Row("scala", Language::Java, "Scala", "scala"),
    Row("php", Language::Java, "PHP", "php"),
    Row("dart", Language::Java, "Dart", "dart"),
    Row("c h", Language::C, "C", "c"),
    Row("cc cpp cxx hpp hh", Language::C, "C++", "cpp"),
    Row("rb rake gemspec", Language::Ruby, "Ruby", "ruby"),
    Row("sh bash zsh", Language::Shell, "shell", "sh"),
    Row("sql", Language::Other, "SQL", "sql"),
    Row("md markdown", Language::Markdown, "Markdown", "md"),
    Row("rst", Language::Markdown, "reStructuredText", "rst"),
    Row("adoc", Language::Markdown, "AsciiDoc", "adoc"),
    Row("txt", Language::Markdown, "plain text", ""),
    Row("toml", Language::Toml, "TOML", "toml"),
    Row("ini cfg", Language::Toml, "INI", "ini"),
    Row("yml yaml", Language::Yaml, "YAML", "yaml"),
    Row("json", Language::Json, "JSON", "json"),
    Row("mk", Language::Make, "Make", "make"),
    Row("cmake", Language::Other, "CMake", "cmake"),
    Row("html", Language::Other, "HTML", "html"),
    Row("css scss", Language::Other, "CSS", "css"),
    Row("proto", Language::Other, "Protocol Buffers", "proto"),
    Row("lua ex exs hs zig", Language::Other, "other languages", ""),
];

/// Endings of files that have no definitions and yet are named in questions.
const OTHER_ENDINGS: &str = "lock xml gradle properties env conf service tf nix svg csv log tex pl \
    vim graphql bat";

const NAMES: [Row; 5] = [
    Row("Makefile makefile GNUmakefile", Language::Make, "Make", "make"),
    Row("justfile Justfile", Language::Make, "just", "make"),
    Row("CMakeLists.txt", Language::Other, "CMake", "cmake"),
    Row("Rakefile Gemfile", Language::Ruby, "Ruby", "ruby"),
    Row("Dockerfile", Language::Other, "Docker", "dockerfile"),
];

fn row(path: &str) -> Option<&'static Row> {
    let name = base(path);
    NAMES.iter().find(|row| words::has(row.0, name)).or_else(|| {
        let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
        ENDINGS.iter().find(|row| words::has(row.0, &ending))
    })
}

/// The language of the file at `path`. A script without an ending counts as shell.
pub(crate) fn of(path: &str) -> Language {
    use crate::place::{FileRole, sort};
    match row(path) {
        Some(row) => row.1,
        None if base(path).contains('.') || path.ends_with('/') => Language::Other,
        None if sort(path) == FileRole::Document => Language::Markdown,
        None => Language::Shell,
    }
}

/// What people call the language of the file at `path`, if it is known.
pub(crate) fn called(path: &str) -> Option<&'static str> {
    row(path).map(|row| row.2)
}

/// What a fenced block calls it; empty when not known.
pub(crate) fn fence(path: &str) -> &'static str {
    row(path).map_or("", |row| row.3)
}

/// True for code rather than text or settings.
pub(crate) fn is_code(path: &str) -> bool {
    use Language::{Json, Markdown, Other, Toml, Yaml};
    !matches!(of(path), Markdown | Toml | Yaml | Json | Other) || base(path).ends_with(".proto")
}

/// The endings of a language's files, by what people call it: `rust`, `go`, `typescript`.
pub(crate) fn endings(called: &str) -> Vec<&'static str> {
    let called = called.to_lowercase();
    let row = ENDINGS.iter().find(|row| row.2.to_lowercase() == called);
    row.into_iter().flat_map(|row| row.0.split_whitespace()).collect()
}

/// True for an ending, without its dot, that files have.
pub(crate) fn is_known_ending(ending: &str) -> bool {
    ENDINGS.iter().any(|row| words::has(row.0, ending)) || words::has(OTHER_ENDINGS, ending)
}

/// True for `name.ending` where the ending is one that files have.
pub(crate) fn has_known_ending(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty() && is_known_ending(&ending.to_ascii_lowercase())
    })
}

/// True for a file that goes by this name everywhere.
pub(crate) fn is_known_name(name: &str) -> bool {
    const DOCUMENTS: &str = "README LICENSE CHANGELOG CONTRIBUTING CODEOWNERS Procfile Vagrantfile \
        Jenkinsfile";
    NAMES.iter().any(|row| words::has(row.0, name)) || words::has(DOCUMENTS, name)
}
