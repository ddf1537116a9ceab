//! Which language a file is in, by its name.

use super::place::base;

/// What a file is written in, as far as definitions look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
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
    Sql,
    Markdown,
    Toml,
    Yaml,
    Json,
    /// Makefiles and justfiles.
    Make,
    CMake,
    Other,
}

/// An ending, the language, what people call it, and what a fenced block calls it.
struct Row(&'static str, Language, &'static str, &'static str);

const ENDINGS: [Row; 58] = [
    Row("rs", Language::Rust, "Rust", "rust"),
    Row("py", Language::Python, "Python", "python"),
    Row("pyi", Language::Python, "Python", "python"),
    Row("ts", Language::Script, "TypeScript", "ts"),
    Row("tsx", Language::Script, "TypeScript", "tsx"),
    Row("mts", Language::Script, "TypeScript", "ts"),
    Row("js", Language::Script, "JavaScript", "js"),
    Row("jsx", Language::Script, "JavaScript", "jsx"),
    Row("mjs", Language::Script, "JavaScript", "js"),
    Row("cjs", Language::Script, "JavaScript", "js"),
    Row("vue", Language::Script, "Vue", "vue"),
    Row("svelte", Language::Script, "Svelte", "svelte"),
    Row("go", Language::Go, "Go", "go"),
    Row("java", Language::Java, "Java", "java"),
    Row("kt", Language::Java, "Kotlin", "kotlin"),
    Row("kts", Language::Java, "Kotlin", "kotlin"),
    Row("cs", Language::Java, "C#", "csharp"),
    Row("swift", Language::Java, "Swift", "swift"),
    Row("scala", Language::Java, "Scala", "scala"),
    Row("php", Language::Java, "PHP", "php"),
    Row("dart", Language::Java, "Dart", "dart"),
    Row("c", Language::C, "C", "c"),
    Row("h", Language::C, "C", "c"),
    Row("cc", Language::C, "C++", "cpp"),
    Row("cpp", Language::C, "C++", "cpp"),
    Row("cxx", Language::C, "C++", "cpp"),
    Row("hpp", Language::C, "C++", "cpp"),
    Row("hh", Language::C, "C++", "cpp"),
    Row("m", Language::C, "Objective-C", "objc"),
    Row("rb", Language::Ruby, "Ruby", "ruby"),
    Row("rake", Language::Ruby, "Ruby", "ruby"),
    Row("gemspec", Language::Ruby, "Ruby", "ruby"),
    Row("sh", Language::Shell, "shell", "sh"),
    Row("bash", Language::Shell, "shell", "sh"),
    Row("zsh", Language::Shell, "shell", "sh"),
    Row("sql", Language::Sql, "SQL", "sql"),
    Row("md", Language::Markdown, "Markdown", "md"),
    Row("markdown", Language::Markdown, "Markdown", "md"),
    Row("rst", Language::Markdown, "reStructuredText", "rst"),
    Row("adoc", Language::Markdown, "AsciiDoc", "adoc"),
    Row("txt", Language::Markdown, "plain text", ""),
    Row("toml", Language::Toml, "TOML", "toml"),
    Row("ini", Language::Toml, "INI", "ini"),
    Row("cfg", Language::Toml, "INI", "ini"),
    Row("yml", Language::Yaml, "YAML", "yaml"),
    Row("yaml", Language::Yaml, "YAML", "yaml"),
    Row("json", Language::Json, "JSON", "json"),
    Row("mk", Language::Make, "Make", "make"),
    Row("cmake", Language::CMake, "CMake", "cmake"),
    Row("html", Language::Other, "HTML", "html"),
    Row("css", Language::Other, "CSS", "css"),
    Row("scss", Language::Other, "SCSS", "scss"),
    Row("proto", Language::Other, "Protocol Buffers", "proto"),
    Row("lua", Language::Other, "Lua", "lua"),
    Row("ex", Language::Other, "Elixir", "elixir"),
    Row("exs", Language::Other, "Elixir", "elixir"),
    Row("hs", Language::Other, "Haskell", "haskell"),
    Row("zig", Language::Other, "Zig", "zig"),
];

/// Endings of files that have no definitions and yet are named in questions.
const OTHER_ENDINGS: [&str; 18] = [
    "lock",
    "xml",
    "gradle",
    "properties",
    "env",
    "conf",
    "service",
    "tf",
    "nix",
    "svg",
    "csv",
    "log",
    "tex",
    "r",
    "pl",
    "vim",
    "graphql",
    "bat",
];

const NAMES: [Row; 9] = [
    Row("Makefile", Language::Make, "Make", "make"),
    Row("makefile", Language::Make, "Make", "make"),
    Row("GNUmakefile", Language::Make, "Make", "make"),
    Row("justfile", Language::Make, "just", "make"),
    Row("Justfile", Language::Make, "just", "make"),
    Row("CMakeLists.txt", Language::CMake, "CMake", "cmake"),
    Row("Rakefile", Language::Ruby, "Ruby", "ruby"),
    Row("Gemfile", Language::Ruby, "Ruby", "ruby"),
    Row("Dockerfile", Language::Other, "Docker", "dockerfile"),
];

fn row(path: &str) -> Option<&'static Row> {
    let name = base(path);
    NAMES.iter().find(|row| row.0 == name).or_else(|| {
        let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
        ENDINGS.iter().find(|row| row.0 == ending)
    })
}

/// The language of the file at `path`. A script without an ending counts as shell.
pub(super) fn of(path: &str) -> Language {
    match row(path) {
        Some(row) => row.1,
        None if !base(path).contains('.') && !path.ends_with('/') => {
            if super::place::sort(path) == super::place::Sort::Document {
                Language::Markdown
            } else {
                Language::Shell
            }
        }
        None => Language::Other,
    }
}

/// What people call the language of the file at `path`, if it is known.
pub(super) fn called(path: &str) -> Option<&'static str> {
    row(path).map(|row| row.2)
}

/// What a fenced block calls it; empty when not known.
pub(super) fn fence(path: &str) -> &'static str {
    row(path).map_or("", |row| row.3)
}

/// True for code rather than text or settings.
pub(super) fn is_code(path: &str) -> bool {
    use Language::{Json, Markdown, Other, Toml, Yaml};
    !matches!(of(path), Markdown | Toml | Yaml | Json | Other) || base(path).ends_with(".proto")
}

/// The endings of a language's files, by what people call it: `rust`, `go`, `typescript`.
pub(super) fn endings(called: &str) -> Vec<&'static str> {
    let called = called.to_lowercase();
    let known = |row: &&Row| row.2.to_lowercase() == called || row.0 == called;
    let name = ENDINGS.iter().find(known).map(|row| row.2);
    let same = ENDINGS.iter().filter(|row| Some(row.2) == name);
    same.map(|row| row.0).collect()
}

/// True for `name.ending` where the ending is one that files have.
pub(super) fn has_known_ending(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let ending = ending.to_ascii_lowercase();
    !stem.is_empty()
        && (ENDINGS.iter().any(|row| row.0 == ending) || OTHER_ENDINGS.contains(&ending.as_str()))
}

/// True for a file that goes by this name everywhere.
pub(super) fn is_known_name(name: &str) -> bool {
    const DOCUMENTS: [&str; 8] = [
        "README",
        "LICENSE",
        "CHANGELOG",
        "CONTRIBUTING",
        "CODEOWNERS",
        "Procfile",
        "Vagrantfile",
        "Jenkinsfile",
    ];
    NAMES.iter().any(|row| row.0 == name) || DOCUMENTS.contains(&name)
}
