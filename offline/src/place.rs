//! The kind of a file, by its path alone.

/// What a file is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileRole {
    Source,
    Test,
    Example,
    Document,
    /// Vendored or generated: the last place to look at.
    Foreign,
}

const TEST_FOLDERS: [&str; 8] =
    ["test", "tests", "spec", "specs", "__tests__", "e2e", "testdata", "fixtures"];
const EXAMPLE_FOLDERS: [&str; 8] =
    ["example", "examples", "demo", "demos", "sample", "samples", "bench", "benches"];
const DOCUMENT_FOLDERS: [&str; 3] = ["doc", "docs", "documentation"];
const DOCUMENT_ENDINGS: [&str; 6] = [".md", ".rst", ".txt", ".adoc", ".org", ".markdown"];
const FOREIGN_FOLDERS: [&str; 12] = [
    "node_modules",
    "vendor",
    "third_party",
    "bower_components",
    "site-packages",
    "__pycache__",
    ".venv",
    "venv",
    "dist",
    "generated",
    "snapshots",
    "__snapshots__",
];
const FOREIGN_ENDINGS: [&str; 16] = [
    ".min.js",
    ".min.css",
    ".map",
    ".lock",
    "-lock.json",
    "-lock.yaml",
    "go.sum",
    ".pb.go",
    "_pb2.py",
    ".g.dart",
    ".generated.ts",
    ".generated.rs",
    ".snap",
    ".svg",
    ".csv",
    ".ipynb",
];

/// The pattern that excludes vendored files from searches.
pub(crate) const OWN_FILES: &str = "!{**/node_modules/**,**/vendor/**,**/third_party/**,\
    **/bower_components/**,**/site-packages/**,**/__pycache__/**,**/.venv/**,**/venv/**,\
    **/*.min.js,**/*.min.css,**/*.map,**/*.lock,**/*-lock.json,**/*-lock.yaml,**/go.sum,**/*.svg,\
    **/*.ipynb}";

/// What the file at `path` is there for.
pub(crate) fn sort(path: &str) -> FileRole {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let within = |names: &[&str]| folders.split('/').any(|folder| names.contains(&folder));
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let builds = name == "CMakeLists.txt" || name.starts_with("requirements");
    let form = path.contains("ISSUE_TEMPLATE") || path.contains("PULL_REQUEST_TEMPLATE");
    if within(&FOREIGN_FOLDERS) || ends(&FOREIGN_ENDINGS) || form {
        FileRole::Foreign
    } else if within(&TEST_FOLDERS) || is_test_name(name) {
        FileRole::Test
    } else if within(&EXAMPLE_FOLDERS) {
        FileRole::Example
    } else if ends(&DOCUMENT_ENDINGS) && !builds
        || within(&DOCUMENT_FOLDERS)
        || is_plain_document(name)
    {
        FileRole::Document
    } else {
        FileRole::Source
    }
}

pub(crate) fn is_test(path: &str) -> bool {
    sort(path) == FileRole::Test
}

fn is_test_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || stem.ends_with("Test") && stem.len() > 4
        || stem.ends_with("Tests") && stem.len() > 5
        || name.contains(".test.")
        || name.contains(".spec.")
        || matches!(name, "conftest.py" | "tests.rs" | "test.rs" | "tests.py")
}

fn is_plain_document(name: &str) -> bool {
    let upper = |text: &str| {
        text.len() > 3
            && text.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_'))
    };
    !name.contains('.') && upper(name)
}

/// True for a file that tells people what the project is.
pub(crate) fn is_readme(path: &str) -> bool {
    let name = base(path).to_ascii_lowercase();
    name == "readme" || name.starts_with("readme.")
}

/// The last part of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The last part of a path without its ending.
pub(crate) fn stem(path: &str) -> &str {
    let base = base(path);
    match base.find('.') {
        Some(0) | None => base,
        Some(at) => &base[..at],
    }
}

/// The folder of a path; empty at the top.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// How many folders deep.
pub(crate) fn depth(path: &str) -> usize {
    path.matches('/').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_what_a_file_is() {
        let table = [
            (FileRole::Test, "tests/it/main.rs"),
            (FileRole::Test, "src/tables.test.ts"),
            (FileRole::Test, "pkg/queue_test.go"),
            (FileRole::Test, "src/test/java/FooTest.java"),
            (FileRole::Test, "test_fetch.py"),
            (FileRole::Source, "src/testing.rs"),
            (FileRole::Source, "src/contest.py"),
            (FileRole::Source, "Makefile"),
            (FileRole::Source, "CMakeLists.txt"),
            (FileRole::Document, "docs/guide.html"),
            (FileRole::Document, "README"),
            (FileRole::Document, "notes.txt"),
            (FileRole::Foreign, "vendor/x/y.go"),
            (FileRole::Foreign, "Cargo.lock"),
            (FileRole::Foreign, "web/app.min.js"),
            (FileRole::Example, "examples/hello.rs"),
        ];
        for (expected, path) in table {
            assert_eq!(sort(path), expected, "{path}");
        }
        assert_eq!(
            (stem("a/b.test.ts"), stem(".env"), base("a/b.c"), folder("a")),
            ("b", ".env", "b.c", "")
        );
    }
}
