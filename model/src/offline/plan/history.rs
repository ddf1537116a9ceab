//! Who changed what, and when: git, through the shell if there is one.

use crate::offline::answer::{Answer, cite, code, shortened};
use crate::offline::definition::Kind;
use crate::offline::found::Page;
use crate::offline::notes::{Notes, Said, Search, quote};
use crate::offline::place::{self, Sort};
use crate::offline::question::Question;
use crate::offline::rank;

/// How a commit is written: id, day, author, subject.
const FORMAT: &str = "--date=short --format='%h %ad %an: %s'";
/// Commits that are listed.
const COMMITS: usize = 10;

/// Phrases that ask for people.
const PEOPLE: &str = "authors|contributors|contributor|who contributes|who contributed|\
    who works on|who worked on|who maintains|who wrote this";
/// Words that say that the history is meant, not of what.
const OWN: &str = "change|changed|commit|commits|git|log|history|recent|recently|latest|last|\
    added|wrote|changes|maintains|contributes|contributed|contributors|author|authors|zuletzt|\
    geändert";

/// What the history is wanted of.
enum Subject {
    Everything,
    People,
    File(String),
    Lines { path: String, first: usize, last: usize, name: String },
}

/// Answers from the history.
pub(in crate::offline) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    match subject(question, notes)? {
        Subject::People => tell_people(notes, &mut answer)?,
        Subject::Everything => {
            let log = format!("log -n {COMMITS} {FORMAT}");
            let said = notes.git(&log, "list the latest commits")?;
            if let Some(text) = output(&said, notes, &mut answer)? {
                answer.say("The latest commits:").block(&lines(&text, COMMITS), "");
            }
        }
        Subject::File(path) => tell_file(&path, notes, &mut answer)?,
        Subject::Lines { path, first, last, name } => {
            let range = quote(&format!("{first},{last}:{path}"));
            let log =
                format!("log -n {COMMITS} {FORMAT} -s --no-ext-diff --no-textconv -L {range}");
            match notes.git(&log, "list the commits of some lines")? {
                Said::Output(text) => tell_lines(&name, &cite(&path, first), &text, &mut answer),
                // Lines that were not committed yet have no history; their file may have.
                _ => tell_file(&path, notes, &mut answer)?,
            }
        }
    }
    Some(answer)
}

fn tell_people(notes: &mut Notes<'_>, answer: &mut Answer) -> Option<()> {
    let authors = notes.git("shortlog -s -n -e HEAD", "count commits by author");
    let latest = notes.git(&format!("log -n 5 {FORMAT}"), "list the latest commits");
    let (authors, latest) = (authors?, latest?);
    if let Some(text) = output(&authors, notes, answer)? {
        answer.say("Commits by author:").block(&lines(&text, COMMITS * 2), "");
        if let Said::Output(latest) = &latest {
            answer.say("The latest commits:").block(&lines(latest, 5), "");
        }
    }
    Some(())
}

fn tell_lines(name: &str, place: &str, text: &str, answer: &mut Answer) {
    let shown = lines(text, COMMITS);
    let Some(latest) = shown.first() else {
        answer.say(format!("{} ({place}) is in no commit yet.", code(name)));
        return;
    };
    answer.say(format!("{} ({place}) was changed last in {}.", code(name), code(latest)));
    if shown.len() > 1 {
        answer.say("All commits of these lines, the newest first:").block(&shown, "");
    }
}

fn lines(text: &str, most: usize) -> Vec<&str> {
    text.lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty() && *line != "[no output]")
        .take(most)
        .collect()
}

fn subject(question: &Question, notes: &mut Notes<'_>) -> Option<Subject> {
    if let Some(file) = question.files.first() {
        let found = notes.glob(&format!("**/{}", file.path.trim_end_matches('/')))?;
        let path = found.list.iter().min_by_key(|path| place::depth(path)).cloned();
        return Some(Subject::File(path.unwrap_or_else(|| file.path.clone())));
    }
    if let Some(name) = question.names.first() {
        let hits = notes.lines(&Search::new(name.loose_pattern()).any_case().at_most(150))?;
        let definitions = rank::definitions(name, &hits.list, question);
        if let Some(best) = definitions.first().filter(|best| best.kind != Kind::Variable) {
            let page = notes.read(&best.hit.path, best.hit.line, 80)?;
            let last = crate::offline::answer::end_of_definition(&page, best.hit.line, 80);
            return Some(Subject::Lines {
                path: best.hit.path.clone(),
                first: best.hit.line,
                last,
                name: name.shown(),
            });
        }
        if let Some(hit) = hits.list.first() {
            return Some(Subject::File(hit.path.clone()));
        }
    }
    let left: Vec<_> =
        question.terms.iter().filter(|term| !OWN.split('|').any(|own| own == term.word)).collect();
    if question.has(PEOPLE) && left.is_empty() {
        return Some(Subject::People);
    }
    if left.is_empty() {
        return Some(Subject::Everything);
    }
    // "the release script", "the parser": the file whose name fits best.
    let globs: Vec<String> = left.iter().map(|term| format!("**/*{}*", term.glob())).collect();
    let named = notes.glob(&format!("{{{}}}", globs.join(",")))?;
    let fits = |path: &String| {
        let lower = path.to_lowercase();
        let own = left.iter().filter(|term| term.is_in(&lower)).count();
        let test = usize::from(matches!(place::sort(path), Sort::Test | Sort::Foreign));
        (std::cmp::Reverse(own), test, place::base(path).len(), place::depth(path))
    };
    match named.list.iter().min_by_key(|path| fits(path)) {
        Some(path) => Some(Subject::File(path.clone())),
        None => Some(Subject::Everything),
    }
}

/// What git said; otherwise the answer says why there is nothing.
fn output(said: &Said, notes: &mut Notes<'_>, answer: &mut Answer) -> Option<Option<String>> {
    match said {
        Said::Output(text) => return Some(Some(text.clone())),
        Said::Failed(text) => {
            let reason =
                text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
            answer.say(format!("Git could not tell: {}.", code(&shortened(reason.trim(), 160))));
            return Some(None);
        }
        Said::NoShell => {}
    }
    answer.say(
        "I cannot ask git here: this agent has no shell. Ask an agent with the tool Bash, such \
            as `general-purpose`, or run `git log` yourself.",
    );
    let heads = notes.glob(".git/logs/HEAD")?;
    let page = match heads.list.first() {
        Some(path) => notes.read(path, 1, 2000)?,
        None => Page::default(),
    };
    let commits: Vec<&str> = page
        .lines
        .iter()
        .rev()
        .filter_map(|(_, line)| line.split_once('\t'))
        .map(|(_, subject)| subject)
        .take(5)
        .collect();
    if !commits.is_empty() {
        answer.say("The last entries of this clone's own log:").block(&commits, "");
    }
    Some(None)
}

fn tell_file(path: &str, notes: &mut Notes<'_>, answer: &mut Answer) -> Option<()> {
    let log = |options: &str| format!("log {options} {FORMAT} -- {}", quote(path));
    let latest = notes.git(&log(&format!("-n {COMMITS}")), "list the commits of a file");
    let added = notes.git(&log("--diff-filter=A"), "find when a file was added");
    let (latest, added) = (latest?, added?);
    let Some(text) = output(&latest, notes, answer)? else { return Some(()) };
    let shown = lines(&text, COMMITS);
    let Some(newest) = shown.first() else {
        let path = code(path);
        answer.say(format!("{path} is in no commit: it is not tracked, or there is no such file."));
        return Some(());
    };
    answer.say(format!("{} was changed last in {}.", code(path), code(newest)));
    if let Said::Output(added) = added
        && let Some(oldest) = lines(&added, 50).last()
    {
        answer.say(format!("It was added in {}.", code(oldest)));
    }
    if shown.len() > 1 {
        answer.say("Its commits, the newest first:").block(&shown, "");
    }
    Some(())
}
