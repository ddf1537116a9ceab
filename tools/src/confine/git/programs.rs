//! What programs do with the files in their arguments, and which files are data.

/// Programs that run the first file in their arguments.
pub(super) const INTERPRETERS: &[&str] = &[
    ".",
    "Rscript",
    "ash",
    "bash",
    "bun",
    "dart",
    "dash",
    "deno",
    "expect",
    "fish",
    "julia",
    "ksh",
    "lua",
    "mksh",
    "node",
    "nodejs",
    "perl",
    "php",
    "pwsh",
    "python",
    "ruby",
    "sh",
    "source",
    "source_env",
    "source_env_if_exists",
    "tclsh",
    "ts-node",
    "tsx",
    "yash",
    "zsh",
];

/// Interpreters whose option `-e` comes before a program text.
pub(super) const WITH_TEXT: &[&str] =
    &["julia", "lua", "node", "nodejs", "perl", "php", "ruby", "Rscript"];

/// Interpreters that find a file without the end of its name, and the ends that they try.
pub(super) const COMPLETERS: &[&str] =
    &["bun", "deno", "node", "nodejs", "python", "source_env", "ts-node", "tsx"];
pub(super) const COMPLETED: &[&str] = &[
    "/.envrc",
    ".cjs",
    ".js",
    ".mjs",
    ".node",
    ".ts",
    "/__main__.py",
    "/__main__.pyc",
    "/index.cjs",
    "/index.js",
    "/index.mjs",
    "/index.node",
    "/index.ts",
    "/package.json",
];

/// Programs that obey the file after `-f`, and read the others.
pub(super) const WITH_FILE: &[&str] =
    &["awk", "gawk", "gmake", "just", "make", "mawk", "sed", "task"];

/// Words before a command, and programs that run the command in their arguments.
pub(super) const BEFORE_COMMANDS: &[&str] = &[
    "builtin", "bundle", "bunx", "chronic", "command", "do", "doas", "dotenv", "elif", "else",
    "env", "exec", "flock", "hatch", "if", "ionice", "mise", "nice", "nohup", "npm", "npx",
    "parallel", "pdm", "pipenv", "pnpm", "pnpx", "poetry", "run", "rye", "setsid", "stdbuf",
    "sudo", "then", "time", "timeout", "until", "uv", "uvx", "watch", "while", "xargs", "yarn",
    "dlx", "trap", "coproc",
];

/// Programs that start a command after one of the words below, and else only read files.
pub(super) const STARTERS: &[&str] = &["find", "git"];
pub(super) const STARTS: &[&str] =
    &["--exec", "-exec", "-execdir", "-ok", "-okdir", "-x", "foreach", "run"];

/// Programs that put the content of files, or their arguments, where something else may run it.
pub(super) const PRINTERS: &[&str] = &[
    "base64", "cat", "cp", "cut", "echo", "envsubst", "export", "head", "install", "ln", "local",
    "mv", "printf", "readonly", "set", "sort", "tac", "tail", "tee", "tr",
];

/// Programs that read or check files, and run none of them.
pub(super) const READERS: &[&str] = &[
    "ag",
    "autopep8",
    "bandit",
    "basename",
    "biome",
    "black",
    "buf",
    "cargo",
    "cc",
    "cd",
    "chmod",
    "chown",
    "cksum",
    "clang",
    "clang-format",
    "clang-tidy",
    "cmp",
    "codespell",
    "comm",
    "cppcheck",
    "dart",
    "diff",
    "dirname",
    "djlint",
    "dos2unix",
    "dotenv_if_exists",
    "dprint",
    "du",
    "editorconfig",
    "egrep",
    "eslint",
    "exit",
    "false",
    "fgrep",
    "file",
    "flake8",
    "g++",
    "gcc",
    "gitleaks",
    "gofmt",
    "gofumpt",
    "goimports",
    "golangci-lint",
    "grep",
    "hadolint",
    "iconv",
    "isort",
    "jq",
    "ktlint",
    "less",
    "ls",
    "markdownlint",
    "md5sum",
    "mkdir",
    "mypy",
    "nl",
    "oxlint",
    "prettier",
    "pushd",
    "pycodestyle",
    "pydocstyle",
    "pyflakes",
    "pylint",
    "pyright",
    "pytest",
    "pyupgrade",
    "read",
    "readlink",
    "realpath",
    "return",
    "rg",
    "rm",
    "rubocop",
    "ruff",
    "rustfmt",
    "sha1sum",
    "sha256sum",
    "shellcheck",
    "shfmt",
    "sqlfluff",
    "standard",
    "stat",
    "stylelint",
    "swiftformat",
    "terraform",
    "test",
    "touch",
    "true",
    "tsc",
    "typos",
    "watch_dir",
    "watch_file",
    "wc",
    "yamllint",
    "yapf",
    "yq",
];

/// File extensions that no shell runs: texts, settings, and code that is built first. People and agents change
/// such files every day.
pub(super) const DATA: &[&str] = &[
    "adoc", "c", "cc", "cpp", "cs", "css", "csv", "dart", "gif", "go", "h", "hpp", "hs", "htm",
    "html", "ico", "ini", "java", "jpg", "json", "json5", "jsonc", "jsx", "kt", "less", "lock",
    "log", "md", "mdx", "mod", "pdf", "png", "po", "proto", "rs", "rst", "sass", "scala", "scss",
    "sql", "sum", "svelte", "svg", "swift", "tf", "toml", "tsv", "tsx", "txt", "vue", "xml",
    "yaml", "yml",
];

/// Names of such files without an extension.
pub(super) const DATA_NAMES: &[&str] = &[
    ".babelrc",
    ".editorconfig",
    ".eslintrc",
    ".gitattributes",
    ".mailmap",
    ".npmrc",
    ".prettierrc",
    ".stylelintrc",
    "AUTHORS",
    "CHANGELOG",
    "CODEOWNERS",
    "CONTRIBUTORS",
    "COPYING",
    "Containerfile",
    "Dockerfile",
    "Gemfile",
    "LICENCE",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "Pipfile",
    "Procfile",
    "README",
    "VERSION",
];
