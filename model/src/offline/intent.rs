//! What a question wants, told by its phrases. English first; the usual phrases in German,
//! French, Spanish and Chinese too.

use super::question::{Question, is_han};
use super::topic::{self, Topic};

/// What a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Nothing about the project: a greeting, or what the model can do.
    Greeting,
    /// So much that it is best shared out.
    Broad,
    /// Something written or changed, which this model cannot do.
    Change,
    History,
    Todos,
    Dependencies,
    Count,
    Commands,
    Tests,
    Uses,
    Definition,
    Explanation,
    File,
    Layout,
    Overview,
    Files,
    Topic(&'static Topic),
    Search,
}

/// What a command is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    Install,
    Build,
    Run,
    Test,
    Check,
    Deploy,
}

const GREETING: &str = "hi|hello|hey|hallo|hola|bonjour|salut|thanks|thank you|danke|merci|\
    gracias|who are you|what are you|what can you do|help|你好|谢谢|你是谁";
const BROAD: &str = "refactoring plan|refactor plan|improvement plan|plan for refactoring|\
    propose a plan|propose improvements|suggest improvements|code review|review the code|\
    review this repository|review this project|review the codebase|review this codebase|audit|\
    analyse the codebase|analyze the codebase|analyse this repository|analyze this repository|\
    analyse this project|analyze this project|explore this repository|explore the repository|\
    explore this project|explore this codebase|explore the codebase|deep dive|\
    untersuche dieses projekt|analysiere dieses projekt|analyse ce projet|analiza este proyecto|\
    分析这个项目|重构计划";
const CHANGE: &str = "fix|add|implement|write|create|refactor|rename|remove|delete|change|update|\
    replace|migrate|convert|improve|optimise|optimize|make|move|port|upgrade|generate|rewrite|\
    extend|introduce|behebe|füge|ändere|lösche|schreibe|ersetze|benenne|corrige|ajoute|écris|\
    supprime|remplace|renomme|arregla|añade|agrega|cambia|escribe|elimina|修复|添加|重构|\
    修改|删除|编写|实现一个";
const POLITE: &str = "please|can you|could you|would you|i want you to|i would like you to|\
    i need you to|you should|lets|let us|now|bitte|kannst du|peux-tu|puedes|por favor|请|帮我";
const HISTORY: &str = "who changed|who wrote|who touched|who modified|who edited|who committed|\
    who authored|who added|who introduced|who removed|who contributes|who contributed|\
    who worked on|who works on|who maintains|who created|who is the author|author of|authors|\
    contributors|contributor|last changed|last modified|last edited|last touched|last commit|\
    last commits|latest commit|latest commits|recent commit|recent commits|commits|\
    commit history|git log|git history|git blame|blame|changed recently|recent changes|\
    recently changed|changed last|when was|when did|history of|most recent change|wer hat|\
    zuletzt geändert|letzten commits|qui a|derniers commits|modifié en dernier|quién cambió|\
    quién escribió|quién modificó|últimos commits|谁修改|谁写|谁改|提交记录|\
    最近的提交|最近修改|最近的修改";
const TODOS: &str = "todo|todos|to-do|to-dos|fixme|fixmes|left to do|still to do|unfinished|\
    open points|hacks|offene punkte|a faire|pendientes|待办";
const DEPENDENCIES: &str = "dependency|dependencies|depend on|depends on|third-party|third party|\
    libraries|external packages|which crates|what crates|which packages|what packages|\
    npm packages|python packages|which gems|what gems|modules it requires|\
    modules does it require|which modules does it|which libraries|what libraries|framework|\
    frameworks|abhängigkeiten|bibliotheken|dépendances|bibliothèques|dependencias|librerías|\
    bibliotecas|依赖";
const COUNT: &str = "how many|number of|count the|how big|how large|lines of code|wie viele|\
    wieviele|combien|cuántos|cuántas|多少|几个";
const HOW: &str = "how do i|how do you|how do we|how to|how can i|how can you|how can we|\
    how should i|how would i|how is it|how is this|how is the project|how are the|how does one|\
    what command|which command|which commands|what commands|command to|command for|commands to|\
    commands for|steps to|instructions for|instructions to|how|wie|comment|cómo|como|怎么|\
    如何|怎样";
const VERBS: [(Purpose, &str); 6] = [
    (Purpose::Check, "lint|linter|format the code|formatter|clippy|checks|static analysis"),
    (
        Purpose::Test,
        "run the tests|run tests|run all the tests|run all tests|run the test suite|\
            run the unit tests|execute the tests|run its tests|test it|test this|\
            test the project|tests run|tests executed|test suite|run a test|run a single test|\
            tested|test|tests|testen|tests ausführen|tests aus|lancer les tests|tester|\
            ejecutar las pruebas|pruebas|测试",
    ),
    (
        Purpose::Install,
        "install|installed|set up|setup|set it up|add it|include it|use it in|integrate|\
            get started|getting started|installieren|einrichten|installer|instalar|安装",
    ),
    (
        Purpose::Deploy,
        "deploy|deployed|release|released|publish|ship|ausliefern|déployer|desplegar|部署",
    ),
    (
        Purpose::Build,
        "build|built|compile|compiled|bauen|baue|kompilieren|compiler|construire|compilar|构建|编译",
    ),
    (
        Purpose::Run,
        "run|start|started|launch|execute|serve|dev server|use it|try it|starten|ausführen|\
            lancer|démarrer|ejecutar|iniciar|运行|启动",
    ),
];
const TESTS: &str = "tested|tests for|tests of|test for|test of|tests cover|test covers|\
    tests covering|covered by|covered|unit tests|unit test|which tests|which test|what tests|\
    coverage|tests exercise|getestet|tests für|testé|testée|tests pour|probado|probada|\
    pruebas|测试";
const USES: &str = "used|uses|usage|usages|use of|called|calls|call|callers|caller|calling|\
    referenced|references|reference|refers to|invoked|invokes|imports|imported|consumers|\
    depends on|users of|who needs|verwendet|benutzt|aufgerufen|verwendung|utilisé|utilisée|\
    utilise|appelé|appelée|usado|usada|utiliza|utilizado|llama|使用|调用|引用";
const DEFINITION: &str = "defined|defines|declared|declares|definition|declaration|implemented|\
    implementation|implements|where is|where are|wheres|where do|where does|where can i find|\
    where|which file|which files define|in which file|what file|locate|location of|find|show|\
    show me|definiert|deklariert|implementiert|wo ist|wo sind|wo|défini|définie|où est|où|\
    definido|definida|dónde está|dónde|定义|声明|在哪|哪里|实现";
const EXPLANATION: &str = "explain|explains|what does|what do|how does|how do|how is|how are|\
    what is|what are|whats|describe|tell me about|why|what happens|erkläre|erklär|was macht|\
    was ist|wie funktioniert|explique|que fait|quest-ce que|explica|qué hace|qué es|解释|\
    什么是|是什么|怎么工作|作用";
const SUMMARY: &str = "summarise|summarize|summary|outline|overview of|contents of|content of|\
    what is in|whats in|zusammenfassung|fasse|résume|résumé|resume|resumen|总结|概括";
const LAYOUT: &str = "laid out|layout|structure|structured|organised|organized|organisation|\
    organization|architecture|folders|directories|folder structure|directory structure|tree|\
    modules are there|crates are there|aufbau|aufgebaut|struktur|architektur|organisé|\
    organizado|estructura|arquitectura|结构|架构|目录|布局";
const OVERVIEW: &str = "overview|purpose|what is this|what does this|whats this|what is it for|\
    what is it about|what does it do|about this|this project|this repository|this repo|\
    this codebase|this library|this program|this package|the project|the repository|this app|\
    this application|this service|this tool|in this folder|worum geht|dieses projekt|\
    dieses repository|zweck|ce projet|ce dépôt|à quoi sert|este proyecto|este repositorio|\
    de qué trata|这个项目|本项目|该项目|这个仓库|做什么";
const FILES: &str = "files|file about|are about|is about|documents|pages about|find all|\
    notes about|dateien|fichiers|archivos|文件";

/// What `question` wants.
pub(super) fn of(question: &Question) -> Intent {
    let named = !question.names.is_empty();
    let has_file = !question.files.is_empty();
    let subject = question.has_subject();
    if is_greeting(question) {
        return Intent::Greeting;
    }
    if question.has(BROAD) && !named && !has_file {
        return Intent::Broad;
    }
    if wants_change(question) {
        return Intent::Change;
    }
    if question.has(HISTORY) {
        return Intent::History;
    }
    if question.has(TODOS) && !named {
        return Intent::Todos;
    }
    let depends_on_name =
        named && question.has("depends on|depend on") && question.begins("what|who|which");
    if question.has(DEPENDENCIES) && !depends_on_name {
        return Intent::Dependencies;
    }
    if question.has(COUNT) {
        return Intent::Count;
    }
    if !named && !has_file && wants_command(question) {
        return Intent::Commands;
    }
    if has_file && !named && !question.has(USES) && !question.has(TESTS) {
        return Intent::File;
    }
    if question.has(TESTS) && (subject || has_file) && !is_about_project(question) {
        return Intent::Tests;
    }
    if let Some(topic) = topic::of(question).filter(|_| !named) {
        return Intent::Topic(topic);
    }
    if (named || has_file) && question.has(USES) {
        return Intent::Uses;
    }
    if question.has(LAYOUT) && !named {
        return Intent::Layout;
    }
    if is_about_project(question) {
        return Intent::Overview;
    }
    if named && question.has(SUMMARY) {
        return Intent::Explanation;
    }
    // The stronger word decides: "what does the function that is defined in x do".
    if named && question.has(EXPLANATION) && !question.has("defined|declared|definition") {
        return Intent::Explanation;
    }
    if question.has(FILES) && !named {
        return Intent::Files;
    }
    if named && (question.has(DEFINITION) || !question.has(EXPLANATION)) {
        return Intent::Definition;
    }
    if !subject {
        return Intent::Overview;
    }
    Intent::Search
}

fn is_greeting(question: &Question) -> bool {
    let words = question.plain.split_whitespace().count();
    let short = words <= 5 || is_han(&question.plain) && words <= 2;
    let bare = question.names.is_empty() && question.files.is_empty() && question.terms.len() <= 1;
    short && bare && question.begins(GREETING)
}

fn wants_change(question: &Question) -> bool {
    let mut rest = question.plain.as_str();
    while let Some(politeness) =
        POLITE.split('|').find(|polite| rest.starts_with(&format!(" {polite} ")))
    {
        rest = &rest[politeness.len() + 1..];
    }
    let first = rest.trim_start();
    let begins = CHANGE.split('|').any(|verb| {
        first.strip_prefix(verb).is_some_and(|after| after.starts_with(' ') || is_han(verb))
    });
    begins && !question.has(SUMMARY) && !question.has("make a list|write down|create a list")
}

/// Whether a command is wanted.
fn wants_command(question: &Question) -> bool {
    let asks = question.has(HOW) || VERBS.iter().any(|(_, verbs)| question.begins(verbs));
    if !asks {
        return false;
    }
    // "How does the build cache work" is about the cache: few other words may be left.
    let own = |word: &str| VERBS.iter().any(|(_, verbs)| verbs.split('|').any(|verb| verb == word));
    let other = question.terms.iter().filter(|term| !own(&term.word)).count();
    let direct = question
        .has("how do i|how do you|how do we|how to|how can i|how can we|how can you|how should i");
    let manner = question.has("how does|how do the|how are|how is")
        && !question
            .has("how is it|how is this|how is the project|how are the tests|how are tests");
    let strays = manner && other > 0 || other > if direct { 3 } else { 1 };
    !strays && !purposes(question).is_empty()
}

/// What commands are wanted for, in the order in which one needs them.
pub(super) fn purposes(question: &Question) -> Vec<Purpose> {
    let mut rest = question.plain.clone();
    let mut found = Vec::new();
    for (purpose, verbs) in VERBS {
        // The longest phrase first, and each only once: "run the tests" does not ask how to run it.
        let mut verbs: Vec<&str> = verbs.split('|').collect();
        verbs.sort_by_key(|verb| std::cmp::Reverse(verb.len()));
        for verb in verbs {
            let phrase = if is_han(verb) { verb.to_owned() } else { format!(" {verb} ") };
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

/// True when nothing but the project itself is asked about.
fn is_about_project(question: &Question) -> bool {
    let own = [
        "about",
        "idea",
        "goal",
        "main",
        "whole",
        "general",
        "brief",
        "short",
        "quick",
        "explore",
        "introduction",
    ];
    let itself = |word: &str| word.to_lowercase() == question.project;
    let other = question
        .terms
        .iter()
        .filter(|term| !own.contains(&term.word.as_str()) && !itself(&term.word))
        .count();
    let names = question.names.iter().filter(|name| !itself(&name.name)).count();
    let nothing_else = names == 0 && question.files.is_empty() && question.quoted.is_empty();
    let by_name = question.names.len() + question.terms.len() > 0 && question.frame.is_empty();
    let named = by_name
        && question.has(
            "what does|what is|whats|explain|describe|about|was macht|was ist|que fait|qué hace|\
                是什么",
        );
    nothing_else && (question.has(OVERVIEW) || named) && other == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Intent) {
        assert_eq!(of(&Question::parse(text, None)), expected, "{text}");
    }

    #[track_caller]
    fn check_commands(text: &str, expected: &[Purpose]) {
        check(text, Intent::Commands);
        assert_eq!(purposes(&Question::parse(text, None)), expected, "{text}");
    }

    #[test]
    fn questions_want_what_they_say() {
        check("Where is `Runtime` defined?", Intent::Definition);
        check("who calls next_step", Intent::Uses);
        check("is assign_berth tested anywhere", Intent::Tests);
        check("what does retryLater do?", Intent::Explanation);
        check("What does this project do?", Intent::Overview);
        check("how is the code laid out?", Intent::Layout);
        check_commands("how do I run the tests", &[Purpose::Test]);
        check_commands("how do I compile the library", &[Purpose::Build]);
        check_commands("how can I start the dev server", &[Purpose::Run]);
        check_commands(
            "How do I build, run and test it?",
            &[Purpose::Build, Purpose::Run, Purpose::Test],
        );
        check("list all TODOs", Intent::Todos);
        check("Which dependencies does it have?", Intent::Dependencies);
        check("who changed src/a.rs last", Intent::History);
        check("summarise src/a.rs", Intent::File);
        check("find files about caching", Intent::Files);
        check("how many lines of code are there", Intent::Count);
        check("please rename foo_bar to baz", Intent::Change);
        check("explore this repository and propose a refactoring plan", Intent::Broad);
        check("how does the retry logic work", Intent::Search);
        check("hello", Intent::Greeting);
        let asks = |text: &str| of(&Question::parse(text, Some("/work/koa")));
        assert_eq!(asks("what does Koa do?"), Intent::Overview);
        assert_eq!(asks("where is the Koa class"), Intent::Definition);
        check("thanks!", Intent::Greeting);
        check("help me find the config loader", Intent::Search);
    }

    #[test]
    fn other_languages_are_understood_a_little() {
        check("Wo ist backoff_seconds definiert?", Intent::Definition);
        check("Où est utilisé bookingsRouter ?", Intent::Uses);
        check("¿Qué hace este proyecto?", Intent::Overview);
        check("Runtime在哪里定义", Intent::Definition);
        check("Welche Abhängigkeiten gibt es?", Intent::Dependencies);
        check("wie viele Dateien gibt es", Intent::Count);
        check("这个项目是做什么的？", Intent::Overview);
        check_commands("Wie baue ich das Projekt?", &[Purpose::Build]);
    }
}
