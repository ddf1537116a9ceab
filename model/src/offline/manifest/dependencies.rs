//! What manifests need, format by format.

use super::Dependency;
use crate::offline::found::Page;
use crate::offline::place::base;

/// What the manifest on `page` needs.
pub(in crate::offline) fn dependencies(page: &Page) -> Vec<Dependency> {
    match base(&page.path) {
        "Cargo.toml" | "Pipfile" => tables(page, toml_dependency),
        "pyproject.toml" => pyproject(page),
        "package.json" | "composer.json" | "deno.json" | "vcpkg.json" => objects(page),
        "go.mod" => go_mod(page),
        "pom.xml" => pom(page),
        "Gemfile" => words(page, "gem "),
        "build.gradle" | "build.gradle.kts" => gradle(page),
        "CMakeLists.txt" => cmake(page),
        "setup.py" | "setup.cfg" => setup(page),
        "mix.exs" => words(page, "{:"),
        "environment.yml" => list_items(page),
        name if name.starts_with("requirements") => requirements(page),
        name if name.ends_with(".gemspec") => gemspec(page),
        name if name.ends_with(".csproj") => csproj(page),
        _ => Vec::new(),
    }
}

fn dependency(name: &str, version: &str, line: usize, for_development: bool) -> Option<Dependency> {
    let name = name.trim().trim_matches(['"', '\'', ',', ':', ' ']);
    let version = version.trim().trim_matches(['"', '\'', ',', ' ']);
    let plain = !name.is_empty() && !name.contains(char::is_whitespace);
    plain.then(|| Dependency {
        name: name.to_owned(),
        version: version.to_owned(),
        line,
        for_development,
    })
}

/// Keys below tables whose name ends in `dependencies` or `packages`.
fn tables(page: &Page, read: fn(&str, usize, bool) -> Option<Dependency>) -> Vec<Dependency> {
    let mut inside = None;
    let mut found = Vec::new();
    for (line, text) in page.texts() {
        let text = text.trim();
        if let Some(table) = text.strip_prefix('[') {
            let table = table.trim_matches(['[', ']']).to_ascii_lowercase();
            let development =
                table.contains("dev") || table.contains("build") || table.contains("test");
            let last = table.rsplit('.').next().unwrap_or_default();
            inside = (last.ends_with("dependencies") || last.ends_with("packages"))
                .then_some(development);
            // `[dependencies.serde]` is a dependency of its own.
            if let Some((before, name)) =
                table.rsplit_once('.').filter(|(before, _)| before.ends_with("dependencies"))
            {
                found.extend(dependency(name, "", line, before.contains("dev")));
            }
        } else if let Some(development) = inside {
            found.extend(read(text, line, development));
        }
    }
    found
}

fn toml_dependency(text: &str, line: usize, development: bool) -> Option<Dependency> {
    let (key, value) = text.split_once('=').filter(|_| !text.starts_with('#'))?;
    let name = key.trim().split('.').next()?;
    let version = match value.split_once("version") {
        Some((_, rest)) => rest.split('"').nth(1).unwrap_or_default(),
        None if value.trim_start().starts_with('{') => "",
        None if key.contains(".workspace") => "",
        None => value,
    };
    // A package of the same repository is no outside dependency.
    (!value.contains("path =")).then(|| dependency(name, version, line, development))?
}

fn pyproject(page: &Page) -> Vec<Dependency> {
    let mut found = tables(page, |text, line, development| {
        let quoted = text.starts_with('"') || text.starts_with(']') || text.contains("= [");
        toml_dependency(text, line, development).filter(|_| !quoted)
    });
    found.retain(|dependency| dependency.name != "python");
    let (mut table, mut list) = (String::new(), None);
    for (line, text) in page.texts() {
        let text = text.trim();
        if text.starts_with('[') && text.ends_with(']') && !text.contains('"') {
            table = text.trim_matches(['[', ']']).to_owned();
            list = None;
            continue;
        }
        if let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.contains('"')) {
            let key = key.trim();
            let development = table.contains("optional") || table.contains("groups");
            let wanted = key == "dependencies" && table == "project" || development;
            list = (wanted && value.trim_start().starts_with('[')).then_some(development);
        }
        let Some(development) = list else { continue };
        let items = text
            .split_once('=')
            .filter(|(key, _)| !key.contains('"'))
            .map_or(text, |(_, value)| value);
        for item in items.split('"').skip(1).step_by(2) {
            let (name, version) = requirement(item);
            found.extend(dependency(name, version, line, development));
        }
        if items.trim_end().ends_with(']') {
            list = None;
        }
    }
    found.sort_by_key(|dependency| dependency.line);
    found.dedup();
    found
}

/// `name>=1.2; marker` as a name and a version.
fn requirement(text: &str) -> (&str, &str) {
    let text = text.split(['#', ';']).next().unwrap_or_default().trim();
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@')))
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start();
    (
        name,
        if rest.starts_with('[') {
            rest.split_once(']').map_or("", |(_, version)| version)
        } else {
            rest
        },
    )
}

fn requirements(page: &Page) -> Vec<Dependency> {
    let development = base(&page.path) != "requirements.txt";
    let lines = page.texts().filter(|(_, text)| !text.trim_start().starts_with(['#', '-']));
    lines
        .filter_map(|(line, text)| {
            let (name, version) = requirement(text);
            dependency(name, version, line, development)
        })
        .collect()
}

/// Keys of objects whose name ends in `dependencies` or is `require`.
fn objects(page: &Page) -> Vec<Dependency> {
    let mut inside = None;
    let mut found = Vec::new();
    for (line, text) in page.texts() {
        let text = text.trim();
        let Some((key, value)) = text.strip_prefix('"').and_then(|rest| rest.split_once('"'))
        else {
            if text.starts_with('}') {
                inside = None;
            }
            continue;
        };
        let lower = key.to_ascii_lowercase();
        if value.trim_start_matches([':', ' ']).starts_with(['{', '[']) {
            let wanted = lower.ends_with("dependencies")
                || lower.starts_with("require")
                || lower == "imports";
            inside = (wanted && !value.trim_end().trim_end_matches(',').ends_with(['}', ']']))
                .then_some(lower.contains("dev"));
        } else if let Some(development) = inside {
            found.extend(dependency(key, value.trim_start_matches([':', ' ']), line, development));
        }
    }
    found
}

fn go_mod(page: &Page) -> Vec<Dependency> {
    let mut inside = false;
    let mut found = Vec::new();
    for (line, text) in page.texts() {
        let text = text.trim();
        let entry = match text.strip_prefix("require") {
            Some(rest) if rest.trim() == "(" => {
                inside = true;
                continue;
            }
            Some(rest) => rest.trim(),
            None if inside && text == ")" => {
                inside = false;
                continue;
            }
            None if inside => text,
            None => continue,
        };
        let mut parts = entry.split_whitespace();
        if let (Some(name), Some(version)) = (parts.next(), parts.next()) {
            found.extend(dependency(name, version, line, entry.contains("// indirect")));
        }
    }
    found
}

/// The text of an element that begins and ends on this line.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let text = text.trim().strip_prefix(&format!("<{name}>"))?;
    text.split_once("</").map(|(inner, _)| inner)
}

fn pom(page: &Page) -> Vec<Dependency> {
    let mut inside = false;
    let mut found: Vec<Dependency> = Vec::new();
    for (line, text) in page.texts() {
        inside = (inside || text.contains("<dependency>")) && !text.contains("</dependency>");
        if !inside {
            continue;
        }
        if let Some(name) = element(text, "artifactId") {
            found.extend(dependency(name, "", line, false));
        } else if let (Some(version), Some(last)) = (element(text, "version"), found.last_mut()) {
            last.version = version.to_owned();
        } else if let (Some("test"), Some(last)) = (element(text, "scope"), found.last_mut()) {
            last.for_development = true;
        }
    }
    found
}

/// The first two quoted words of lines that begin so.
fn words(page: &Page, start: &str) -> Vec<Dependency> {
    let mut group = false;
    let mut found = Vec::new();
    for (line, text) in page.texts() {
        let text = text.trim();
        if text.starts_with("group ") {
            group = text.contains(":test") || text.contains(":development");
        } else if text == "end" {
            group = false;
        }
        let Some(rest) = text.strip_prefix(start) else { continue };
        let mut quoted = rest.split(['"', '\'']).skip(1).step_by(2);
        if start == "{:" {
            let name =
                rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
            found.extend(dependency(
                name,
                quoted.next().unwrap_or_default(),
                line,
                rest.contains(":test"),
            ));
        } else if let Some(name) = quoted.next() {
            found.extend(dependency(name, quoted.next().unwrap_or_default(), line, group));
        }
    }
    found
}

fn gemspec(page: &Page) -> Vec<Dependency> {
    let lines = page.texts().filter(|(_, text)| text.contains("_dependency"));
    lines
        .filter_map(|(line, text)| {
            let mut quoted = text.split(['"', '\'']).skip(1).step_by(2);
            dependency(
                quoted.next()?,
                quoted.next().unwrap_or_default(),
                line,
                text.contains("development"),
            )
        })
        .collect()
}

fn gradle(page: &Page) -> Vec<Dependency> {
    let lines = page.texts().map(|(line, text)| (line, text.trim()));
    lines
        .filter_map(|(line, text)| {
            let kind = text.split(['(', ' ']).next()?;
            let known = [
                "implementation",
                "api",
                "compileOnly",
                "runtimeOnly",
                "testImplementation",
                "kapt",
                "ksp",
            ];
            if !known.contains(&kind) {
                return None;
            }
            let quoted = text.split(['"', '\'']).nth(1)?;
            let (name, version) = quoted.rsplit_once(':').unwrap_or((quoted, ""));
            dependency(name, version, line, kind.starts_with("test"))
        })
        .collect()
}

fn cmake(page: &Page) -> Vec<Dependency> {
    let lines = page
        .texts()
        .filter_map(|(line, text)| Some((line, text.trim().strip_prefix("find_package(")?)));
    lines
        .filter_map(|(line, rest)| {
            let mut words = rest.split([' ', ')']);
            let name = words.next()?;
            let version =
                words.next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
            dependency(name, version.unwrap_or_default(), line, false)
        })
        .collect()
}

fn setup(page: &Page) -> Vec<Dependency> {
    let mut inside = false;
    let mut found = Vec::new();
    for (line, text) in page.texts() {
        let begins = text.trim_start().starts_with("install_requires");
        inside = inside || begins;
        if !inside {
            continue;
        }
        if base(&page.path) == "setup.cfg" {
            if !begins && !text.starts_with([' ', '\t']) {
                inside = false;
            } else if !begins {
                let (name, version) = requirement(text);
                found.extend(dependency(name, version, line, false));
            }
            continue;
        }
        for item in text.split(['"', '\'']).skip(1).step_by(2) {
            let (name, version) = requirement(item);
            found.extend(dependency(name, version, line, false));
        }
        inside = !text.contains(']');
    }
    found
}

fn list_items(page: &Page) -> Vec<Dependency> {
    let lines =
        page.texts().filter_map(|(line, text)| Some((line, text.trim().strip_prefix("- ")?)));
    lines
        .filter_map(|(line, item)| {
            let (name, version) = requirement(item);
            dependency(name, version, line, false)
        })
        .collect()
}

fn csproj(page: &Page) -> Vec<Dependency> {
    let lines = page.texts().filter(|(_, text)| text.contains("<PackageReference"));
    lines
        .filter_map(|(line, text)| {
            let attribute = |name: &str| {
                text.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split('"').next())
            };
            dependency(attribute("Include")?, attribute("Version").unwrap_or_default(), line, false)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Page {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
        Page { path: path.to_owned(), lines, more: false }
    }

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found: Vec<String> = dependencies(&page(path, text))
            .iter()
            .map(|found| {
                format!(
                    "{} {}{}",
                    found.name,
                    found.version,
                    if found.for_development { " dev" } else { "" }
                )
            })
            .collect();
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn dependencies_are_read_in_many_formats() {
        check(
            "Cargo.toml",
            "[package]\nname = \"x\"\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\na = \"2\"\nown = { path = \"../own\" }\nb.workspace = true\n[dev-dependencies]\nproptest = \"1\"",
            &["serde 1", "a 2", "b ", "proptest 1 dev"],
        );
        check(
            "package.json",
            "{\n  \"name\": \"x\",\n  \"dependencies\": {\n    \"react\": \"^18\",\n    \"@a/b\": \"1\"\n  },\n  \"devDependencies\": {\n    \"vite\": \"5\"\n  }\n}",
            &["react ^18", "@a/b 1", "vite 5 dev"],
        );
        check(
            "pyproject.toml",
            "[project]\nname = \"x\"\ndependencies = [\n  \"httpx>=0.27\",\n  \"a[b]~=1\",\n]\n[project.optional-dependencies]\ndev = [\"pytest>=8\", \"ruff\"]\n[tool.x]\ny = 1",
            &["httpx >=0.27", "a ~=1", "pytest >=8 dev", "ruff  dev"],
        );
        check(
            "requirements.txt",
            "# c\nflask==3.0 # web\n-r other.txt\nnumpy",
            &["flask ==3.0", "numpy "],
        );
        check(
            "go.mod",
            "module x\nrequire (\n\ta.b/c v1.2.0\n\td.e/f v0.1.0 // indirect\n)\nrequire g.h/i v2.0.0",
            &["a.b/c v1.2.0", "d.e/f v0.1.0 dev", "g.h/i v2.0.0"],
        );
        check(
            "pom.xml",
            "<dependency>\n<artifactId>junit</artifactId>\n<version>5</version>\n<scope>test</scope>\n</dependency>",
            &["junit 5 dev"],
        );
        check(
            "Gemfile",
            "gem \"rails\", \"~> 7\"\ngroup :test do\n  gem 'rspec'\nend",
            &["rails ~> 7", "rspec  dev"],
        );
        check(
            "build.gradle",
            "dependencies {\n  implementation 'a:b:1.0'\n  testImplementation(\"c:d:2\")\n}",
            &["a:b 1.0", "c:d 2 dev"],
        );
        check(
            "CMakeLists.txt",
            "find_package(ZLIB 1.2 REQUIRED)\nfind_package(Threads)",
            &["ZLIB 1.2", "Threads "],
        );
        check(
            "setup.py",
            "setup(\n  install_requires=[\"six\", 'attrs>=2'],\n)",
            &["six ", "attrs >=2"],
        );
    }
}
