//! Guesses what a line of code defines, from the line alone. It knows keywords and shapes, not
//! grammars: good enough for ranking and outlines.

use crate::language::Language;
use code::{c, go, java, other, python, ruby, rust, script};
use data::{created, heading, json_key, make, shell, toml, yaml};

mod code;
mod data;
mod parts;

/// What is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Class,
    Struct,
    Enum,
    Trait,
    Interface,
    Type,
    Macro,
    Table,
    Constant,
    Module,
    Target,
    Declaration,
    Heading,
    Field,
    Key,
    Variable,
    Variant,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Function => "function",
            Kind::Class => "class",
            Kind::Struct => "struct",
            Kind::Enum => "enum",
            Kind::Trait => "trait",
            Kind::Interface => "interface",
            Kind::Type => "type",
            Kind::Macro => "macro",
            Kind::Table => "table",
            Kind::Constant => "constant",
            Kind::Module => "module",
            Kind::Target => "target",
            Kind::Declaration => "declaration",
            Kind::Heading => "heading",
            Kind::Field => "field",
            Kind::Key => "key",
            Kind::Variable => "variable",
            Kind::Variant => "variant",
        }
    }

    /// How much it counts when someone asks where a name is defined.
    pub fn weight(self) -> i32 {
        match self {
            Kind::Class | Kind::Struct | Kind::Enum | Kind::Trait | Kind::Interface => 104,
            Kind::Function | Kind::Type | Kind::Macro | Kind::Table => 100,
            Kind::Constant => 90,
            Kind::Module | Kind::Target => 75,
            Kind::Declaration => 70,
            Kind::Heading => 45,
            Kind::Field => 50,
            Kind::Key => 45,
            Kind::Variable => 35,
            Kind::Variant => 40,
        }
    }

    /// Worth a line in the outline of a file.
    pub fn is_major(self) -> bool {
        self.weight() >= 70 && self != Kind::Declaration
    }
}

/// What a line defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Definition<'l> {
    pub kind: Kind,
    pub name: &'l str,
    /// Columns before it.
    pub indent: usize,
}

/// Lines longer than this are data.
const LONGEST: usize = 400;

type Named<'l> = Option<(Kind, &'l str)>;

/// What `line` of a file in `language` defines.
pub(crate) fn definition(language: Language, line: &str) -> Option<Definition<'_>> {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let text = text.trim_end();
    if text.is_empty() || line.len() > LONGEST {
        return None;
    }
    let named = match language {
        _ if is_comment(language, text) => None,
        Language::Markdown => heading(text).filter(|_| indent == 0),
        Language::Toml => toml(text),
        Language::Yaml => yaml(text),
        Language::Json => json_key(text),
        Language::Make => make(text).filter(|_| indent == 0),
        Language::Shell => shell(text),
        Language::Rust => rust(text, indent),
        Language::Python => python(text, indent),
        Language::Script => script(text, indent),
        Language::Go => go(text, indent),
        Language::C => c(text, indent),
        Language::Java => java(text, indent),
        Language::Ruby => ruby(text),
        Language::Other => other(text),
    };
    let (kind, name) = created(text).or(named)?;
    Some(Definition { kind, name, indent })
}

fn is_comment(language: Language, text: &str) -> bool {
    let hash = matches!(
        language,
        Language::Python
            | Language::Ruby
            | Language::Shell
            | Language::Yaml
            | Language::Toml
            | Language::Make
    );
    text.starts_with("//")
        || text.starts_with("/*")
        || text.starts_with("* ")
        || hash && text.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use Language::*;

    #[track_caller]
    fn check(language: Language, line: &str, expected: Option<(Kind, &str)>) {
        let found = definition(language, line).map(|found| (found.kind, found.name));
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn definitions_are_told_by_their_line() {
        check(
            Rust,
            "pub(crate) async fn next_step(transcript: &T) -> Step {",
            Some((Kind::Function, "next_step")),
        );
        check(Rust, "    pub const fn of() -> u8 {", Some((Kind::Function, "of")));
        check(Rust, "pub struct Runtime<T> {", Some((Kind::Struct, "Runtime")));
        check(Rust, "macro_rules! check {", Some((Kind::Macro, "check")));
        check(Rust, "    pub max_tokens: u64,", Some((Kind::Field, "max_tokens")));
        check(Rust, "    Stopped { limit: Limit },", Some((Kind::Variant, "Stopped")));
        check(Rust, "extern \"C\" fn hook() {", Some((Kind::Function, "hook")));
        check(Python, "    async def fetch(self):", Some((Kind::Function, "fetch")));
        check(Python, "MAX = 4", Some((Kind::Constant, "MAX")));
        check(Python, "    guid: str", Some((Kind::Field, "guid")));
        check(Script, "export default function App() {", Some((Kind::Function, "App")));
        check(Script, "export const overlaps = (a, b) =>", Some((Kind::Function, "overlaps")));
        check(Script, "  set body (value) {", Some((Kind::Function, "body")));
        check(Script, "  async submit(event) {", Some((Kind::Function, "submit")));
        check(Script, "  onBooked: (table: number) => void;", Some((Kind::Field, "onBooked")));
        check(Go, "func (d *Dispatcher) Run() {", Some((Kind::Function, "Run")));
        check(Go, "type Store interface {", Some((Kind::Interface, "Store")));
        check(Go, "\tDueAt    time.Time", None);
        check(Go, "\tAttempts int", Some((Kind::Field, "Attempts")));
        check(
            Java,
            "    public static List<String> names(int count) throws X {",
            Some((Kind::Function, "names")),
        );
        check(
            Java,
            "public @interface SerializedName {",
            Some((Kind::Interface, "SerializedName")),
        );
        check(Java, "    private final Clock clock;", Some((Kind::Field, "clock")));
        check(
            C,
            "enum ring_status ring_push(ring_t *ring, size_t count)",
            Some((Kind::Function, "ring_push")),
        );
        check(C, "void ring_init(ring_t *ring);", Some((Kind::Declaration, "ring_init")));
        check(C, "} ring_t;", Some((Kind::Type, "ring_t")));
        check(C, "typedef struct ring {", Some((Kind::Struct, "ring")));
        check(C, "#define LIMIT 5", Some((Kind::Constant, "LIMIT")));
        check(C, "void Ring::clear() {", Some((Kind::Function, "clear")));
        check(Ruby, "  def self.phase(date)", Some((Kind::Function, "phase")));
        check(Ruby, "class Almanac::Moon", Some((Kind::Class, "Moon")));
        check(Shell, "build_bench() {", Some((Kind::Function, "build_bench")));
        check(Python, "CREATE TABLE IF NOT EXISTS items (", Some((Kind::Table, "items")));
        check(Other, "create unique index a.by_name on b (c);", Some((Kind::Table, "by_name")));
        check(Markdown, "## How to build ##", Some((Kind::Heading, "How to build")));
        check(Toml, "[workspace.dependencies]", Some((Kind::Key, "dependencies")));
        check(Yaml, "  - name: test", Some((Kind::Key, "name")));
        check(Json, "  \"scripts\": {", Some((Kind::Key, "scripts")));
        check(Make, "check: build ## vet", Some((Kind::Target, "check")));
        check(Make, "test *args:", Some((Kind::Target, "test")));
    }

    #[test]
    fn uses_are_no_definitions() {
        check(Rust, "    let step = next_step(&t);", Some((Kind::Variable, "step")));
        check(Rust, "        match next_step(&t) {", None);
        check(Rust, "use crate::step::next_step;", None);
        check(Rust, "impl Runtime {", None);
        check(Python, "    return fetch(x)", None);
        check(Python, "if name == 3:", None);
        check(Python, "# MAX = 4", None);
        check(Script, "  if (free) {", None);
        check(Script, "import { overlaps } from \"./tables\";", None);
        check(Go, "\tgo dispatcher.Run()", None);
        check(C, "    ring_push(&ring, bytes, 5);", None);
        check(C, "    return crc32_of(0, 0);", None);
        check(Java, "        return names(3);", None);
        check(Make, "\tgo build", None);
    }
}
