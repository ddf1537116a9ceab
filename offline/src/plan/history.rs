//! Questions about the history, answered with git through the shell.

use crate::answer::{Answer, cite, code};
use crate::definition::Kind;
use crate::notes::{CommandOutput, Notes, Search, quote};
use crate::place::{self, FileRole};
use crate::question::Question;
use crate::rank;
use crate::words::shortened;

/// The format of a commit: id, day, author, subject, without signatures.
const FORMAT: &str = "--no-show-signature --format='%h %as %an: %s'";
/// Commits that are listed.
const COMMITS: usize = 10;

/// Phrases that ask for people.
const PEOPLE: &str = "authors|contributors|contributor|who contributes|who contributed|\
    who works on|who worked on|who maintains|who wrote this|who is the author";
/// Words that ask for the history, and do not say of what.
const OWN: &str = "change changed commit commits committed git log history recent recently latest \
    last added wrote changes maintains contributes contributed contributors author authors touched \
    modified edited blame happened lately who maintainers newest number script";

/// The subject of a question about the history.
enum Subject {
    Everything,
    People,
    File(String),
    Lines {
        path: String,
        first: usize,
        last: usize,
        name: String,
    },
    /// The file of the question is not known.
    Unknown(Vec<String>),
    Count,
    /// The files of the last commit.
    LastFiles,
}

/// Answers from the history.
pub(crate) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    match subject(question, notes)? {
        Subject::People => tell_people(notes, &mut answer)?,
        Subject::Everything => {
            let log = format!("log -n {COMMITS} {FORMAT}");
            let said = notes.git(&log, "list the latest commits")?;
            if let Some(text) = output(&said, &mut answer) {
                answer.say("The latest commits:").block(&lines(text, COMMITS), "");
            }
        }
        Subject::File(path) => tell_file(&path, notes, &mut answer)?,
        Subject::Unknown(words) => {
            answer.say(format!(
                "I cannot tell whose history you mean: no single file has *{}* in its name. Name a \
                    file, or a function in backticks.",
                words.join("* and *")
            ));
        }
        Subject::Count => {
            let said = notes.git("rev-list --count HEAD", "count the commits")?;
            if let Some(text) = output(&said, &mut answer) {
                answer.say(format!("{} commits up to HEAD.", text.trim()));
            }
        }
        Subject::LastFiles => {
            let log = format!("log -n 1 --name-status --no-ext-diff --no-textconv {FORMAT}");
            let said = notes.git(&log, "list the files of the last commit")?;
            if let Some(text) = output(&said, &mut answer) {
                answer.say("The last commit and its files:").block(&lines(text, COMMITS * 4), "");
            }
        }
        Subject::Lines { path, first, last, name } => {
            let range = quote(&format!("{first},{last}:{path}"));
            let log =
                format!("log -n {COMMITS} {FORMAT} -s --no-ext-diff --no-textconv -L {range}");
            match notes.git(&log, "list the commits of some lines")? {
                CommandOutput::Output(text) => {
                    tell_lines(&name, &cite(&path, first), &text, &mut answer)
                }
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
    if let Some(text) = output(&authors, answer) {
        answer.say("Commits by author:").block(&lines(text, COMMITS * 2), "");
        if let CommandOutput::Output(latest) = &latest {
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
            let last = crate::shape::end_of_definition(&page, best.hit.line, 80);
            return Some(Subject::Lines {
                path: best.hit.path.clone(),
                first: best.hit.line,
                last,
                name: name.shown(),
            });
        }
        return Some(Subject::Unknown(vec![name.shown()]));
    }
    if question.has("how many commits|number of commits") {
        return Some(Subject::Count);
    }
    if question.has("files") && question.has("last commit|latest commit") {
        return Some(Subject::LastFiles);
    }
    let left: Vec<_> = question.left(OWN).collect();
    if question.has(PEOPLE) && left.is_empty() {
        return Some(Subject::People);
    }
    if left.is_empty() {
        return Some(Subject::Everything);
    }
    // "the release script", "the parser": a file whose name has all the words.
    let files = notes.glob("**/*")?;
    let fits = |path: &&String| left.iter().all(|term| term.is_in(path));
    let own = |path: &&String| !matches!(place::sort(path), FileRole::Test | FileRole::Foreign);
    let mut named = files.list.iter().filter(fits).filter(own);
    match (named.next(), named.next()) {
        (Some(only), None) => Some(Subject::File(only.clone())),
        _ => Some(Subject::Unknown(left.iter().map(|term| term.word.clone()).collect())),
    }
}

/// The output of git; without it, the answer says why.
fn output<'s>(said: &'s CommandOutput, answer: &mut Answer) -> Option<&'s str> {
    match said {
        CommandOutput::Output(text) => return Some(text),
        CommandOutput::Failed(text)
            if text.contains("not a git repo") || text.contains("outside repo") =>
        {
            answer.say("This folder is not in a git repository, so I know nothing of its history.");
        }
        CommandOutput::Failed(text) => {
            let reason =
                text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
            answer.say(format!("Git could not tell: {}.", code(&shortened(reason.trim(), 160))));
        }
        CommandOutput::NoShell => {
            answer.say(
                "I cannot ask git here: this agent has no shell. Ask an agent with the tool Bash, \
                    such as `general-purpose`, or run `git log` yourself.",
            );
        }
    }
    None
}

fn tell_file(path: &str, notes: &mut Notes<'_>, answer: &mut Answer) -> Option<()> {
    let log = |options: &str| format!("log {options} {FORMAT} -- {}", quote(&format!("./{path}")));
    let latest = notes.git(&log(&format!("-n {COMMITS}")), "list the commits of a file");
    let added = notes.git(&log("--diff-filter=A"), "find when a file was added");
    let (latest, added) = (latest?, added?);
    let Some(text) = output(&latest, answer) else { return Some(()) };
    let shown = lines(text, COMMITS);
    let Some(newest) = shown.first() else {
        let path = code(path);
        answer.say(format!("{path} is in no commit: it is not tracked, or there is no such file."));
        return Some(());
    };
    answer.say(format!("{} was changed last in {}.", code(path), code(newest)));
    if let CommandOutput::Output(added) = added
        && let Some(oldest) = lines(&added, 50).last()
    {
        answer.say(format!("It was added in {}.", code(oldest)));
    }
    if shown.len() > 1 {
        answer.say("Its commits, the newest first:").block(&shown, "");
    }
    Some(())
}
