//! Which of many lines matter most.

use super::definition::{Kind, definition};
use super::found::Hit;
use super::language;
use super::place::{self, Sort};
use super::question::{Name, Question};

/// A line that defines what is sought.
#[derive(Clone, Debug)]
pub(super) struct Defined {
    pub hit: Hit,
    pub kind: Kind,
    /// The name as it stands there.
    pub name: String,
    pub score: i32,
}

/// How much a place counts for what it is.
pub(super) fn place_score(path: &str) -> i32 {
    let sort = match place::sort(path) {
        Sort::Source => 0,
        Sort::Document => -18,
        Sort::Example => -22,
        Sort::Test => -35,
        Sort::Foreign => -70,
    };
    sort - place::depth(path).min(6) as i32
}

/// Those of `hits` that define `name`, the best first.
pub(super) fn definitions(name: &Name, hits: &[Hit], question: &Question) -> Vec<Defined> {
    let mut found: Vec<Defined> =
        hits.iter().filter_map(|hit| defined(name, hit, question)).collect();
    found.sort_by(|one, other| {
        let places = || (&one.hit.path, one.hit.line).cmp(&(&other.hit.path, other.hit.line));
        other.score.cmp(&one.score).then_with(places)
    });
    found.dedup_by(|one, other| one.hit.path == other.hit.path && one.hit.line == other.hit.line);
    found
}

fn defined(name: &Name, hit: &Hit, question: &Question) -> Option<Defined> {
    let found = definition(language::of(&hit.path), &hit.text)?;
    let exact = found.name == name.name;
    let in_heading = found.kind == Kind::Heading && is_word_in(&name.name, found.name);
    if !exact && !name.is_like(found.name) && !in_heading {
        return None;
    }
    let mut score = found.kind.weight() + place_score(&hit.path);
    score += if exact { 15 } else { 0 };
    let text = hit.text.trim_start();
    score += if text.starts_with("pub ") || text.starts_with("export ") { 4 } else { 0 };
    score -= if found.indent > 0 { 2 } else { 0 };
    score += if question.has(found.kind.word()) { 20 } else { 0 };
    // The name in another case is rarely the same thing: `Task` and `task`.
    score -= if !exact && found.name.eq_ignore_ascii_case(&name.name) { 10 } else { 0 };
    let path = hit.path.to_lowercase();
    for within in &name.within {
        let within = Name::plain(within).parts().concat();
        score += if path.replace(['_', '-'], "").contains(&within) { 25 } else { 0 };
    }
    for term in &question.terms {
        score += if term.is_in(&path) { 10 } else { 0 };
    }
    Some(Defined { hit: hit.clone(), kind: found.kind, name: found.name.to_owned(), score })
}

/// Whether `word` is one of the words of `text`.
pub(super) fn is_word_in(word: &str, text: &str) -> bool {
    let part =
        |character: char| character.is_alphanumeric() || character == '_' || character == '-';
    text.split(|character| !part(character)).any(|found| found.eq_ignore_ascii_case(word))
}

/// Those of `hits` that use a name, the most telling first: code before text, calls before
/// imports and comments.
pub(super) fn uses(hits: &[Hit], definitions: &[Defined]) -> Vec<Hit> {
    let defines = |hit: &Hit| {
        definitions.iter().any(|found| {
            found.kind.weight() > 60 && found.hit.path == hit.path && found.hit.line == hit.line
        })
    };
    let mut list: Vec<&Hit> = hits.iter().filter(|hit| !defines(hit)).collect();
    // Stable: the order of the search, by file and line, stays within a rank.
    let namesake = |hit: &Hit| {
        definitions.iter().any(|found| found.hit.path == hit.path && found.hit.line == hit.line)
    };
    list.sort_by_key(|hit| i32::from(namesake(hit)) * 25 - use_score(hit));
    list.into_iter().cloned().collect()
}

fn use_score(hit: &Hit) -> i32 {
    let sort = match place::sort(&hit.path) {
        Sort::Source => 40,
        Sort::Example => 25,
        Sort::Test => 20,
        Sort::Document => 10,
        Sort::Foreign => 0,
    };
    let code = if language::is_code(&hit.path) { 20 } else { 0 };
    let passing =
        if is_import(&hit.text) || super::answer::comment(&hit.text).is_some() { -12 } else { 0 };
    sort + code + passing
}

/// True for a line that only makes a name known.
pub(super) fn is_import(line: &str) -> bool {
    let text = line.trim_start();
    [
        "use ",
        "pub use ",
        "import ",
        "from ",
        "#include",
        "require",
        "mod ",
        "pub mod ",
        "export * from",
        "export {",
    ]
    .iter()
    .any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(path: &str, line: usize, text: &str) -> Hit {
        Hit { path: path.to_owned(), line, text: text.to_owned() }
    }

    #[test]
    fn a_definition_comes_before_its_namesakes() {
        let hits = [
            hit("tests/it/a.rs", 3, "fn run() {"),
            hit("src/lib.rs", 9, "    pub run: u32,"),
            hit("src/run.rs", 7, "pub fn run(agent: &Agent) {"),
            hit("docs/run.md", 1, "# Run"),
            hit("src/x.rs", 2, "    run(agent);"),
        ];
        let question = Question::parse("where is run defined", None);
        let found = definitions(&Name::plain("run"), &hits, &question);
        let places: Vec<&str> = found.iter().map(|found| found.hit.path.as_str()).collect();
        assert_eq!(places, ["src/run.rs", "tests/it/a.rs", "src/lib.rs", "docs/run.md"]);
        let uses = uses(&hits, &found);
        assert_eq!(uses[0].path, "src/x.rs");
    }

    #[test]
    fn what_it_belongs_to_decides_between_equals() {
        let hits = [
            hit("src/log.rs", 1, "    pub fn append() {"),
            hit("src/store.rs", 1, "    pub fn append() {"),
        ];
        let question = Question::parse("where is Store::append", None);
        let found = definitions(&question.names[0], &hits, &question);
        assert_eq!(found[0].hit.path, "src/store.rs");
    }
}
