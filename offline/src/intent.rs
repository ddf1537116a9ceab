//! The intent of a question, by its wording. Each rule is narrow. A question that fits no rule is a
//! search for its words.

use crate::question::Question;
use crate::words;

/// What a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// A greeting, or what the model can do.
    Help,
    /// It is not in English.
    Foreign,
    /// It needs a language model.
    Decline(Need),
    History,
    /// What a changelog says.
    Changes,
    Todos,
    Dependencies,
    License,
    Version,
    Count(CountedThing),
    List(CountedThing),
    Commands,
    Overview,
    Layout,
    Symbol(Aspect),
    File,
    Search(SearchForm),
}

/// What a question needs that this model does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Code or text is to be written or changed.
    Writing,
    /// Something is to be judged.
    Judgement,
    /// Text that came with the question is to be read.
    Material,
}

/// What is counted or listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedThing {
    Files,
    Lines,
    Tests,
    Functions,
    Structs,
    Classes,
    Enums,
    Traits,
    /// Files below a folder of examples.
    Examples,
}

/// What is asked about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aspect {
    Definition,
    Explanation,
    Uses,
    Tests,
}

/// The form of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchForm {
    Passages,
    /// Which files have the words.
    Files,
    /// In tests only.
    Tests,
    /// The question asks for the number of something that this model cannot count.
    Number,
    /// The question asks for a reason or a judgement.
    Reason,
}

/// The purpose of a command, in the usual order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Install,
    Build,
    Run,
    Test,
    Check,
    Deploy,
}

const GREETING: &str = "hi|hello|hey|thanks|thank you|who are you|what are you|what can you do|\
    what can i ask|help|what model are you|which model are you|are you an ai|good morning|\
    which agents are there|what agents are there|list agents|list the agents|list your agents|\
    which agents do you have|what agents do you have|which agents are available|\
    what agents are available|which agents can you use|what agents can you use";
const WRITING: &str = "fix|add|implement|write|create|refactor|rename|remove|delete|change|update|\
    replace|migrate|convert|improve|optimise|optimize|make|move|port|upgrade|generate|rewrite|\
    extend|introduce|translate|draft|document|simplify|clean up|split|merge|extract|modify|edit|\
    summarise|summarize|brainstorm|design|come up with|finish|complete|commit|format|sort|insert|\
    apply|set up a|build me|build a|praise|paraphrase|reword|turn|put|bump|correct|solve|patch";
const JUDGEMENT: &str = "review|audit|critique|judge|evaluate|assess|rate|compare|suggest|propose|\
    recommend|debug|analyse|analyze|investigate|diagnose|find bugs|find the bug|find a bug|\
    find the bugs|find any bugs|find all bugs|find problems|find issues|find errors|find mistakes|\
    find vulnerabilities|find security|find dead code|find the problem|find the error|\
    find potential|find possible|check if|check whether|check for|check this|look for bugs|\
    should i|should we|is this code|is this good|is this correct|is this safe|is it safe|\
    is it good|is it correct|is it secure|is this secure|is it worth|would it be|are there any bugs|\
    are there bugs|are there any problems|are there any issues|are there any security|\
    are there any vulnerabilities|is there a bug|is there anything wrong|any bugs|verify|\
    plan|prioritise|prioritize|estimate|rank|choose|decide|predict|prove";
const OPINION: &str = "what do you think|any good|your opinion|pros and cons|whats wrong|what is wrong|\
    how would you|how could we improve|how can we improve|how can i improve|how to improve|\
    be improved|best way|best practice|best practices|code smell|code smells|refactoring plan|\
    better way|code quality|well written|well tested|well documented|well structured|well designed|good idea|could be better|most important|too complex|\
    what should|which should|worst|cleanest|ugliest";
const SHAPED: &str = "bullets|bullet points|one sentence|two sentences|three sentences|one word|\
    like im five|like i am five|eli5|in simple terms|in plain english|in your own words|haiku|poem|\
    tldr|tl dr";
const HISTORY: &str = "who changed|who wrote|who touched|who modified|who edited|who committed|\
    who authored|who added|who introduced|who removed|who contributes|who contributed|who last|\
    who worked on|who works on|who maintains|who created|who is the author|who are the authors|\
    who are the contributors|authors|contributors|last changed|last modified|last edited|\
    last touched|last commit|last commits|latest commit|latest commits|recent commit|commits|\
    recent commits|commit history|git log|git history|git blame|changed recently|recent changes|\
    recently changed|changed last|history of|most recent change|latest changes|last changes";
const CHANGES: &str = "changelog|release notes|whats new|what is new|new in version|\
    changed in version|changes in version|changed in the last release|what changed in v|\
    changed in the latest release|changed in the latest version|changes in the latest version";
const WHEN: &str = "added|changed|created|introduced|removed|modified|written|edited|updated|\
    committed|touched|born|start|started|deleted";
const DEPENDS: &str = "dependency|dependencies|does it depend on|does this depend on|\
    does this project depend on|do we depend on|third-party|third party|what does it depend on|\
    what does this depend on|what does this project depend on|which crates does|what crates does|\
    which packages does|what packages does|which libraries does|what libraries does|\
    which libraries are|what libraries are|which crates are used|which packages are used|\
    what libraries|which libraries|which modules does it|which gems|what gems|npm packages";
/// The phrases that ask for a command, and the phrases that say which one.
const HOW: &str = "how do i|how do you|how do we|how to|how can i|how can you|how can we|\
    how should i|how would i|how does one|how is it|how is this|how is the project|how are the|\
    what command|which command|what is the command to|whats the command to|what are the commands to|\
    which commands|what commands|command to|command for|steps to|instructions for|instructions to|\
    what are the instructions|how|i want to|show me how to";
const VERBS: [(Purpose, &str); 6] = [
    (Purpose::Check, "lint|linter|format the code|run clippy|run the linter|run the checks"),
    (
        Purpose::Test,
        "run the tests|run tests|run all the tests|run all tests|run the test suite|tests run|\
            run the unit tests|execute the tests|run its tests|test it|test this|tests executed|\
            test the project|test this project|run a test|run a single test|test|tested|test suite",
    ),
    (
        Purpose::Install,
        "install|installed|set up|setup|set it up|get started|getting started|installation",
    ),
    (Purpose::Deploy, "deploy|deployed|release|released|publish|published|ship|deployment"),
    (Purpose::Build, "build|built|compile|compiled"),
    (Purpose::Run, "run|start|started|launch|execute|serve|try"),
];
/// Words beside those that do not change the question.
const BESIDE: &str = "build built compile compiled run start started launch execute serve install \
    installed installation setup lint linter format deploy deployed release released publish \
    published ship deployment try checks clippy suite unit single server dev development locally \
    local scratch machine everything command commands instructions steps binary website site web \
    executable started getting production latest try version dependencies summarise summarize";
const USES: &str = "used|uses|usage|usages|use of|called|calls|call|callers|caller|calling|\
    referenced|references|reference|invoked|invokes|imports|imported|import|depends on|users of|\
    relies on|who needs|mentioned|mentions|mention|how often|how many times";
const TESTS: &str = "tested|tests for|tests of|test for|test of|tests cover|test covers|\
    tests covering|covered by|covered|unit tests|unit test|which tests|which test|what tests|\
    coverage|tests exercise|in tests|in the tests";
const DEFINED: &str = "where is|where are|wheres|where can i find|where do i find|where|defined|\
    declared|definition|declaration|which file|what file|in which file|locate|location of|find|\
    implemented|lives";
const LAYOUT: &str = "laid out|layout|structure|structured|organised|organized|organisation|\
    organization|architecture|folders|directories|what modules|which modules|what crates|\
    which crates|code map|directory tree|file tree";
const OVERVIEW: &str = "overview|purpose|what is this|what does this|whats this|what is it|\
    what does it do|about|this project|this repository|this repo|this codebase|this library|\
    this program|this package|the project|the repository|this app|this application|this code|\
    this service|this tool|the codebase|this folder|here|this crate|this module|readme";

/// What `question` wants.
pub(crate) fn of(question: &Question) -> Intent {
    let named = !question.names.is_empty();
    let has_file = !question.files.is_empty();
    if question.length() == 0 && !question.has_material() || is_greeting(question) {
        return Intent::Help;
    }
    if let Some(need) = needs(question) {
        return Intent::Decline(need);
    }
    if question.is_foreign() && !question.names.iter().any(|name| name.sure) && !has_file {
        return Intent::Foreign;
    }
    if question.has(CHANGES) && question.files.is_empty() && question.quoted.is_empty() {
        return Intent::Changes;
    }
    if wants_history(question) {
        return Intent::History;
    }
    if wants_todos(question) {
        return Intent::Todos;
    }
    if question.names_nothing() && question.has("license|licence|licensed|licenses|licensing") {
        return Intent::License;
    }
    if question.has(DEPENDS) && !(named && question.has("depends on")) {
        return Intent::Dependencies;
    }
    if let Some(number) = number(question) {
        return match number {
            Some(thing) => Intent::Count(thing),
            None if question.has("how many times|how often") && named => {
                Intent::Symbol(Aspect::Uses)
            }
            None if named => Intent::Symbol(Aspect::Explanation),
            None => Intent::Search(SearchForm::Number),
        };
    }
    if question.has("version|msrv") && question.names_nothing() && wants_version(question) {
        return Intent::Version;
    }
    if let Some(thing) = listed(question) {
        return Intent::List(thing);
    }
    if !named && !has_file && wants_command(question) {
        return Intent::Commands;
    }
    let of_project = question.names_nothing()
        && question.begins("what is|what does|whats|explain|describe|tell me about|what can");
    if question.names.iter().any(|name| name.sure) || named && is_bare(question) && !of_project {
        return Intent::Symbol(aspect(question));
    }
    if has_file {
        let outline = "summarise summarize summary outline contents public";
        return if question.has(USES) && !question.has("use") {
            Intent::Symbol(Aspect::Uses)
        } else if question.left(outline).next().is_some() && question.files[0].line.is_none() {
            Intent::Search(SearchForm::Passages)
        } else {
            Intent::File
        };
    }
    let whole = question.names_nothing() && question.folder.is_none();
    let beside = "general big high level brief short quick explore introduction idea goal about \
        explanation parts folders laid layout structure structured organised organized modules \
        organisation organization architecture crates purpose overview map tree readme summarise \
        summarize summary repository beginner newcomer";
    if whole && question.has(LAYOUT) && question.left(beside).next().is_none() {
        return Intent::Layout;
    }
    let itself = question.has("this service|this tool|this site|this website|this plugin");
    let beside = if itself {
        format!("{beside} service tool site website plugin")
    } else {
        beside.to_owned()
    };
    let beside = beside.as_str();
    let project = question.has(OVERVIEW) || question.names_project();
    if whole && project && question.left(beside).next().is_none() {
        return Intent::Overview;
    }
    if question.folder.as_ref().is_some_and(|folder| folder.sure)
        && question.left(beside).next().is_none()
    {
        return Intent::Layout;
    }
    let form = if question
        .has("which files|what files|files that|files which|files about|files with")
    {
        SearchForm::Files
    } else if question.has("which tests|what tests|tests for|tests cover|tested|tests of|in tests")
    {
        SearchForm::Tests
    } else if question.begins("why|how come|is it|is this|is the code|is the project|are they") {
        SearchForm::Reason
    } else {
        SearchForm::Passages
    };
    Intent::Search(form)
}

fn is_greeting(question: &Question) -> bool {
    question.length() <= 6
        && question.names_nothing()
        && question.after(GREETING).is_some_and(|rest| {
            rest.split_whitespace().all(|word| words::is_stop(word) || words::has("model ai", word))
        })
}

/// What `question` needs that this model does not have.
fn needs(question: &Question) -> Option<Need> {
    let begins = |clause: &str, verbs: &str| {
        verbs.split('|').any(|verb| clause.starts_with(&format!(" {verb} ")))
    };
    // "Summarise FILE" is served by its outline, "summarise this project" by its README.
    let outline = |clause: &str| {
        let summary = begins(clause, "summarise|summarize");
        let known =
            question.files.len() == 1 || question.has(OVERVIEW) || question.folder.is_some();
        summary && known && !question.has(SHAPED)
    };
    let listing = |clause: &str| begins(clause, "make a list|write down|create a list|sort of");
    for clause in question.clauses() {
        if begins(&clause, JUDGEMENT) {
            return Some(Need::Judgement);
        }
        if begins(&clause, WRITING) && !outline(&clause) && !listing(&clause) {
            return Some(Need::Writing);
        }
    }
    if question.has(OPINION) {
        return Some(Need::Judgement);
    }
    if question.has(SHAPED) {
        return Some(Need::Writing);
    }
    let code = |text: &String| text.contains(['{', ';', '=']) || text.contains("()");
    let pasted =
        question.has_material() || question.quoted.iter().any(code) && question.has("this");
    let elsewhere = !question.names.is_empty()
        || !question.files.is_empty()
        || question.folder.as_ref().is_some_and(|folder| folder.sure)
        || question.has("project|repository|repo|codebase|folder|directory");
    (pasted && !elsewhere).then_some(Need::Material)
}

fn wants_history(question: &Question) -> bool {
    let when = question.begins("when was|when were|when did") && question.has(WHEN);
    when || question.has(HISTORY) && !question.has("recent commits api")
}

fn wants_todos(question: &Question) -> bool {
    let marks = "todo|todos|to-do|to-dos|fixme|fixmes|todo comments|todo items";
    let asks = question.begins("list|show|find|what|which|are|is|where|any|all|open|give|how many");
    let left = "todo todos to-do to-dos fixme fixmes comments comment items marks left open notes \
        todo-list xxx hack hacks remaining";
    let alone = question.left(left).next().is_none() && question.names_nothing();
    alone && (question.has(marks) && (asks || question.length() <= 3))
        || alone && question.has("left to do|still to do|unfinished work|whats left|what is left")
}

fn wants_version(question: &Question) -> bool {
    let beside = "version msrv minimum minimal supported required require requires current latest \
        rust python node go java support supports oldest lowest edition running need needs needed";
    question.left(beside).next().is_none()
}

/// Words for things that can be counted, with the phrases for them.
const THINGS: [(CountedThing, &str); 9] = [
    (CountedThing::Files, "files|file"),
    (CountedThing::Lines, "lines of code|lines|loc|line"),
    (CountedThing::Tests, "tests|test cases|unit tests|test functions|integration tests"),
    (CountedThing::Functions, "functions|methods|fns|functions and methods"),
    (CountedThing::Structs, "structs"),
    (CountedThing::Classes, "classes"),
    (CountedThing::Enums, "enums"),
    (CountedThing::Traits, "traits|interfaces"),
    (CountedThing::Examples, "examples|example programs"),
];

/// The thing that `rest` of a question begins with, after words such as "Rust" or "source".
fn thing(rest: &str) -> Option<CountedThing> {
    let mut rest = rest.trim_start();
    loop {
        let fits = |phrase: &str| {
            rest.strip_prefix(phrase)
                .is_some_and(|after| after.is_empty() || after.starts_with(' '))
        };
        let found = THINGS.iter().find(|(_, phrases)| phrases.split('|').any(fits));
        if let Some((thing, _)) = found {
            return Some(*thing);
        }
        let (word, after) = rest.split_once(' ')?;
        let passes = "the all any of source different total individual code public every each \
            existing there unit my our its";
        if !words::has(passes, word)
            && crate::language::endings(word).is_empty()
            && !crate::language::is_known_ending(word)
        {
            return None;
        }
        rest = after.trim_start();
    }
}

/// Words of a question about a number or a list that do not narrow it.
const COUNTING: &str = "count number many amount size big large long total altogether test cases \
    unit loc integration public different individual every each enumerate print methods fns \
    live lives stored kept suite examples example programs";

/// The thing to count: nothing when the question does not ask for a number, `None` inside when this
/// model cannot count it.
fn number(question: &Question) -> Option<Option<CountedThing>> {
    let size = "how big is|how large is|how long is|what is the size of|lines of code";
    if question.begins(size) && question.left(COUNTING).next().is_none() {
        return Some(Some(CountedThing::Lines));
    }
    let asked = "how many|count|count the|count all|number of|the number of|what is the number of|\
        whats the number of|total number of|how many times|how often";
    let rest = question.after(asked)?;
    let thing = thing(rest).filter(|_| {
        question.left(COUNTING).all(|term| {
            question.endings.contains(&term.word)
                || !crate::language::endings(&term.word).is_empty()
        })
    });
    Some(thing.filter(|_| question.names.is_empty() && question.quoted.is_empty()))
}

/// The thing to list: nothing if the question has other words.
fn listed(question: &Question) -> Option<CountedThing> {
    let asks = "list|list all|list the|list all the|show|show all|show me|show me the|show the|\
        show me all|give me|find all|which|what|what are the|where are|where are the|where is the|\
        are there|are there any|is there|is there a|is there any|name|name the|print|enumerate|\
        does it have|does this have|does this project have|does the project have";
    let only = question.length() <= 3 && question.names_nothing() && question.terms.is_empty();
    let rest = match question.after(asks) {
        Some(rest) => rest.to_owned(),
        None if only && question.has("tests|tests exist") => " tests ".to_owned(),
        None => return None,
    };
    let rest = rest.replace(" test suite ", " tests ");
    let found = thing(&rest).filter(|thing| *thing != CountedThing::Lines)?;
    let narrowed = question.left(COUNTING).any(|term| !question.endings.contains(&term.word));
    let named = !question.names.is_empty() || !question.quoted.is_empty();
    // Of one file, the outline says it.
    let of_file = !question.files.is_empty();
    (!narrowed && !named && !of_file).then_some(found)
}

/// Whether the question asks only for a command.
fn wants_command(question: &Question) -> bool {
    let asks = question.begins(HOW) || VERBS.iter().any(|(_, verbs)| question.begins(verbs));
    let noun = question.length() <= 4 && question.has("commands|instructions|install|installation");
    (asks || noun) && question.left(BESIDE).next().is_none() && !purposes(question).is_empty()
}

/// What commands are wanted for.
pub(crate) fn purposes(question: &Question) -> Vec<Purpose> {
    let mut rest: String = question.clauses().collect::<Vec<_>>().concat();
    let mut found = Vec::new();
    for (purpose, verbs) in VERBS {
        // The longest phrase first, and each only once: "run the tests" does not ask how to run it.
        let mut verbs: Vec<&str> = verbs.split('|').collect();
        verbs.sort_by_key(|verb| std::cmp::Reverse(verb.len()));
        for verb in verbs {
            let phrase = format!(" {verb} ");
            if rest.contains(&phrase) {
                rest = rest.replace(&phrase, " ");
                if !found.contains(&purpose) {
                    found.push(purpose);
                }
            }
        }
    }
    found.sort_unstable();
    found
}

/// Whether a question is only about its names.
fn is_bare(question: &Question) -> bool {
    let asks = "where|wheres|what is|what are|what does|what do|whats|explain|describe|show|find|\
        locate|how does|how is|who|which|is|does|tell|definition of|definition|usages of|uses of";
    (question.begins(asks) || question.length() <= 2)
        && question.left("covered cover coverage exercise unit callers").next().is_none()
}

fn aspect(question: &Question) -> Aspect {
    if question.has(TESTS) {
        Aspect::Tests
    } else if question.has(USES) && !question.has("used for|use for") {
        Aspect::Uses
    } else if question.has("what is|what does|whats|how does|how is|why|explain|describe|show|do") {
        match question.has("where|defined|declared") {
            true => Aspect::Definition,
            false => Aspect::Explanation,
        }
    } else if question.has(DEFINED) {
        Aspect::Definition
    } else {
        Aspect::Explanation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Intent) {
        assert_eq!(of(&Question::parse(text, Some("/work/koa"))), expected, "{text}");
    }

    #[test]
    fn questions_about_names_and_files() {
        for (text, expected) in [
            ("Where is `Runtime` defined?", Aspect::Definition),
            ("who calls next_step", Aspect::Uses),
            ("how many times is next_step called?", Aspect::Uses),
            ("is assign_berth tested anywhere", Aspect::Tests),
            ("what does retryLater do?", Aspect::Explanation),
            ("how does TextDiff work", Aspect::Explanation),
            ("Wo ist backoff_seconds definiert?", Aspect::Explanation),
        ] {
            check(text, Intent::Symbol(expected));
        }
        check("summarise src/a.rs", Intent::File);
        check("list the functions in src/a.rs", Intent::File);
        check("which files mention caching", Intent::Search(SearchForm::Files));
        check("which tests cover retries", Intent::Search(SearchForm::Tests));
    }

    #[test]
    fn questions_about_the_project() {
        for text in ["What does this project do?", "what is this?", "what does Koa do?", "overview"]
        {
            check(text, Intent::Overview);
        }
        for text in ["how is the code laid out?", "explain the architecture", "what's in tools/?"] {
            check(text, Intent::Layout);
        }
        check("Which dependencies does it have?", Intent::Dependencies);
        check("what license is it under", Intent::License);
        check("which version of Rust does it need?", Intent::Version);
        check("who changed src/a.rs last", Intent::History);
        check("when was this added", Intent::History);
        check("what changed in version 2.1?", Intent::Changes);
        check("list all TODOs", Intent::Todos);
        check("how does the todo list component work", Intent::Search(SearchForm::Passages));
        check("hello", Intent::Help);
    }

    #[test]
    fn commands_are_wanted_for_a_purpose() {
        let purposes = |text: &str| {
            check(text, Intent::Commands);
            purposes(&Question::parse(text, None))
        };
        use Purpose::{Build, Install, Run, Test};
        assert_eq!(purposes("how do I run the tests"), [Test]);
        assert_eq!(purposes("How do I build, run and test it?"), [Build, Run, Test]);
        assert_eq!(purposes("how can I start the dev server"), [Run]);
        assert_eq!(purposes("how do I install this?"), [Install]);
        check("how do I add a new tool?", Intent::Search(SearchForm::Passages));
        check("how does the build cache work", Intent::Search(SearchForm::Passages));
    }

    #[test]
    fn only_what_can_be_counted_is_counted() {
        check("how many Rust files are there?", Intent::Count(CountedThing::Files));
        check("how many tests are in the tests directory?", Intent::Count(CountedThing::Tests));
        check("how many lines of code", Intent::Count(CountedThing::Lines));
        check("how big is this project", Intent::Count(CountedThing::Lines));
        check("how many redirects are allowed", Intent::Search(SearchForm::Number));
        check(
            "how are redirects followed and how many are allowed?",
            Intent::Search(SearchForm::Passages),
        );
        check(
            "why does the walker keep a limited number of file handles open?",
            Intent::Search(SearchForm::Reason),
        );
        check("List the .rs files in the tests directory", Intent::List(CountedThing::Files));
        check("are there any tests?", Intent::List(CountedThing::Tests));
        check("list all structs in src", Intent::List(CountedThing::Structs));
    }

    #[test]
    fn what_needs_a_language_model_is_declined() {
        use Need::{Judgement, Material, Writing};
        for (text, need) in [
            ("please rename foo_bar to baz", Writing),
            ("fix the failing test", Writing),
            ("list the TODOs and fix them", Writing),
            ("summarize the readme in 3 bullets", Writing),
            ("find bugs in src/a.rs", Judgement),
            ("explore this repository and propose a refactoring plan", Judgement),
            ("review this change:\ndiff --git a/x b/x\n+a", Judgement),
            ("explain this: `fn main() { foo(); }`", Material),
            ("what is this?\n```\nx = 1\n```", Material),
        ] {
            check(text, Intent::Decline(need));
        }
        check("Gibt es Tests?", Intent::Foreign);
        check("这个项目是做什么的？", Intent::Foreign);
    }
}
