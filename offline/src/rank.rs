//! Which lines define a name, and which of them is most likely meant.

use crate::definition::{Kind, definition};
use crate::found::Hit;
use crate::language;
use crate::place::{self, FileRole};
use crate::question::{Name, Question};

/// A line that defines what is sought.
#[derive(Clone, Debug)]
pub(crate) struct Defined {
    pub hit: Hit,
    pub kind: Kind,
    /// The name as it stands there.
    pub name: String,
    pub score: i32,
}

/// How much a place counts for what it is.
pub(crate) fn place_score(path: &str) -> i32 {
    match place::sort(path) {
        FileRole::Source => 0,
        FileRole::Document => -18,
        FileRole::Example => -22,
        FileRole::Test => -35,
        FileRole::Foreign => -70,
    }
}

/// Those of `hits` that define `name`, the best first.
pub(crate) fn definitions(name: &Name, hits: &[Hit], question: &Question) -> Vec<Defined> {
    let mut found: Vec<Defined> =
        hits.iter().filter_map(|hit| defined(name, hit, question)).collect();
    found.sort_by(|one, other| {
        let depth = |found: &Defined| place::depth(&found.hit.path);
        let places = || (&one.hit.path, one.hit.line).cmp(&(&other.hit.path, other.hit.line));
        other.score.cmp(&one.score).then(depth(one).cmp(&depth(other))).then_with(places)
    });
    found.dedup_by(|one, other| one.hit.path == other.hit.path && one.hit.line == other.hit.line);
    found
}

fn defined(name: &Name, hit: &Hit, question: &Question) -> Option<Defined> {
    let found = definition(language::of(&hit.path), &hit.text)?;
    let exact = found.name == name.name;
    if found.kind == Kind::Heading || !exact && !name.is_like(found.name) {
        return None;
    }
    let mut score = found.kind.weight() + place_score(&hit.path);
    score += if exact { 15 } else { 0 };
    score -= if found.indent > 0 { 2 } else { 0 };
    score += if question.has(found.kind.word()) { 20 } else { 0 };
    // A name in another case is rarely the same: `Task` and `task`.
    score -= if !exact && found.name.eq_ignore_ascii_case(&name.name) { 10 } else { 0 };
    let path = hit.path.to_lowercase().replace(['_', '-'], "");
    for within in &name.within {
        let within = Name::plain(within).parts().concat();
        score += if path.contains(&within) { 25 } else { 0 };
    }
    let wanted = question.files.iter().any(|file| hit.path.ends_with(&file.path));
    score += if wanted { 60 } else { 0 };
    Some(Defined { hit: hit.clone(), kind: found.kind, name: found.name.to_owned(), score })
}

/// Those of `hits` that use a name, the most telling first: code before text, calls before
/// imports and comments.
pub(crate) fn uses(hits: &[Hit], definitions: &[Defined]) -> Vec<Hit> {
    let defines = |hit: &Hit| {
        definitions.iter().any(|found| {
            found.kind.weight() > 60 && found.hit.path == hit.path && found.hit.line == hit.line
        })
    };
    let mut list: Vec<Hit> = hits.iter().filter(|hit| !defines(hit)).cloned().collect();
    // Stable: the order of the search, by file and line, stays within a rank.
    list.sort_by_key(|hit| {
        let code = i32::from(language::is_code(&hit.path)) * 60;
        let passing = is_import(&hit.text) || crate::shape::comment(&hit.text).is_some();
        i32::from(passing) * 30 - code - place_score(&hit.path)
    });
    list
}

/// True for a line that only imports or declares a name.
pub(crate) fn is_import(line: &str) -> bool {
    const STARTS: &str = "use |pub use |import |from |#include|require|mod |pub mod |\
        export * from|export {|module.exports = {|extern crate ";
    let text = line.trim_start();
    STARTS.split('|').any(|start| text.starts_with(start))
        || text.contains("= require(")
        || text.ends_with("__all__")
}
