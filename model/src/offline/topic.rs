//! Questions that come up in every project and have the same look in code everywhere: one row
//! each.

use super::question::Question;

/// Something that every project may have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Topic {
    /// In words, as the answer calls it.
    pub title: &'static str,
    /// Phrases that ask for it.
    cues: &'static str,
    /// How it looks in code: any of these regular expressions.
    pattern: &'static [&'static str],
    /// Files that are about it by their name.
    pub files: Option<&'static str>,
    /// Words that may stand beside the cue without making it another question.
    own: &'static str,
}

pub(super) static TOPICS: [Topic; 11] = [
    Topic {
        title: "Entry points",
        cues: "entry point|entry points|entrypoint|main function|program start|program begin|\
            does it start|execution start|einstiegspunkt|point dentrée|punto de entrada|入口",
        pattern: &[
            r"^\s*(?:pub\s+)?(?:async\s+)?fn main\s*\(|^func main\s*\(",
            r"^\s*(?:int|void)\s+main\s*\(|__main__|^\s*(?:async\s+)?def main\s*\(",
            r"public static void [Mm]ain\s*\(|\.listen\(|createRoot\(|ReactDOM\.render",
            r#"^\[project\.scripts\]|^\s*"(?:main|bin)":"#,
        ],
        files: Some("**/{__main__.py,manage.py,wsgi.py,asgi.py}"),
        own: "entry|point|entrypoint|main|start|begin|execution",
    },
    Topic {
        title: "Licence",
        cues: "license|licence|licensed|licenced|lizenz|licencia|许可证",
        pattern: &[r#"^\s*"?licen[cs]e"?\s*[:=]|SPDX-License-Identifier"#],
        files: Some("{LICENSE*,LICENCE*,COPYING*,UNLICENSE*}"),
        own: "license|licence|licensed|licenced",
    },
    Topic {
        title: "Version",
        cues: "what version|which version|current version|version number|welche version|\
            quelle version|qué versión|版本",
        pattern: &[
            r#"^\s*"?version"?\s*[:=]\s*["'0-9]|^__version__|^(?:VERSION|version)\b|<version>"#,
        ],
        files: None,
        own: "version|number|current",
    },
    Topic {
        title: "Environment variables",
        cues: "environment variable|environment variables|env variable|env variables|env vars|\
            env var|umgebungsvariable|umgebungsvariablen|variables denvironnement|\
            variables de entorno|环境变量",
        pattern: &[
            r"env::var|os\.environ|os\.getenv|\bgetenv\(|process\.env|\bEnv\(|LookupEnv|ENV\[",
            r"System\.getenv|import\.meta\.env|environment variable|^ENV\s|SetEnvPrefix",
            r"BindEnv|\benv:.[A-Z]",
        ],
        files: Some("**/{.env.example,.env.sample,.env.template}"),
        own: "environment|variable|variables|env|var|vars|read|reads|needed",
    },
    Topic {
        title: "Routes",
        cues: "route|routes|endpoint|endpoints|http api|rest api|web api|url paths|\
            schnittstellen|路由|接口",
        pattern: &[
            r"@\w+\.(?:get|post|put|delete|patch|route|websocket)\(",
            r#"\b(?:app|router|r|mux|server|\w+Router)\.(?:get|post|put|delete|patch)\(\s*["'/`]"#,
            r#"\b(?:r|mux|router|app)\.(?:Get|Post|Put|Delete|Patch|Handle|HandleFunc)\(\s*["`]"#,
            r#"\.route\(\s*["']|http\.HandleFunc\("#,
            "@(?:Get|Post|Put|Delete|Patch|Request)Mapping",
            r#"^\s*(?:get|post|put|delete)\s+['"]/|#\[(?:get|post|put|delete)\("#,
        ],
        files: Some("**/*{openapi,swagger}*"),
        own: "route|routes|endpoint|endpoints|http|rest|api|web|url|paths|exposed|expose|\
            available|serve|offer",
    },
    Topic {
        title: "Command line options",
        cues: "command line flags|command-line flags|command line options|command-line options|\
            command line arguments|command-line arguments|cli flags|cli options|cli arguments|\
            which flags|what flags|flags does|which options|subcommands|kommandozeilenoptionen|\
            命令行参数",
        pattern: &[
            r"add_argument\(|add_parser\(|flag\.(?:String|Int|Bool|Duration|Float64|Var)\w*\(",
            r#"#\[(?:arg|clap|command)\b|\.option\(\s*["']|\.command\(\s*["']|getopt"#,
            r"@click\.(?:option|argument|command)",
            r"\.(?:StringVar|BoolVar|IntVar|StringVarP|BoolVarP|IntVarP)\(|OptionParser",
            r"commander|yargs|\bArg::new\(",
        ],
        files: None,
        own: "command|line|command-line|flags|options|arguments|cli|subcommands|accept|accepts|\
            take|takes",
    },
    Topic {
        title: "Database schema",
        cues: "database schema|schema of the database|database tables|which tables|what tables|\
            sql tables|datenbankschema|数据库表",
        pattern: &[
            r"(?i)create table|create_table|@Entity|__tablename__|models\.Model\)|pgTable\(",
            r"sqliteTable\(|^model \w+ \{",
        ],
        files: Some("**/{schema.sql,schema.prisma,schema.rb,models.py}"),
        own: "database|schema|tables|sql",
    },
    Topic {
        title: "Port",
        cues: "what port|which port|port does|port is|ports does|listen on|listens on|\
            welchem port|quel port|qué puerto|端口",
        pattern: &[
            r"(?i)\bport\b\s*[:=,)?]|\bPORT\b|--port|EXPOSE\s+\d",
            r#"listen\w*\W{1,3}.{0,20}\d{2,5}|ports:|["']:\d{2,5}["']|\d+\.\d+\.\d+\.\d+:\d+"#,
        ],
        files: None,
        own: "port|ports|listen|listens|server|service|default|app",
    },
    Topic {
        title: "Continuous integration",
        cues: "ci|continuous integration|ci pipeline|github actions|workflow files|持续集成",
        pattern: &[r"^\s*-?\s*run:|^\s*script:"],
        files: Some(
            "{.github/workflows/*,.gitlab-ci.yml,.circleci/config.yml,azure-pipelines.yml,\
                Jenkinsfile,.travis.yml,.woodpecker.yml}",
        ),
        own: "ci|continuous|integration|pipeline|github|actions|workflow|configured|run|runs|\
            check|checks",
    },
    Topic {
        title: "Errors",
        cues: "what errors|which errors|error types|error type|what exceptions|which exceptions|\
            errors can|exceptions can|kinds of errors|welche fehler|quelles erreurs|qué errores",
        pattern: &[
            r"(?:enum|struct|class|interface|type)\s+\w*(?:Error|Exception|Fault|Failure)\b",
            r"\berrors\.New\(|^\s*#\[error\(|^\s*\w*Err\w*\s*=\s*(?:errors|fmt)\.",
        ],
        files: None,
        own: "error|errors|exception|exceptions|types|kinds|give|gives|occur|raise|raised|return|\
            returned|thrown",
    },
    Topic {
        title: "Settings",
        cues: "configuration options|config options|configuration file|config file|config files|\
            settings are there|what can be configured|which settings|what settings|configurable|\
            konfigurationsdatei|fichier de configuration|archivo de configuración|配置文件",
        pattern: &[
            r"(?:struct|class|interface|type)\s+\w*(?:Config|Settings|Options)\b",
            "^#+ .*(?:[Cc]onfigur|[Ss]etting)",
        ],
        files: Some("**/{*config*,*settings*,*.toml,*.ini,*.env*}"),
        own: "configuration|config|options|settings|file|configured|configurable",
    },
];

impl Topic {
    /// One regular expression for all it looks like.
    pub fn pattern(&self) -> String {
        self.pattern.join("|")
    }

    fn owns(&self, word: &str) -> bool {
        self.own.split('|').any(|own| own == word)
    }
}

/// The topic that `question` is about, if it is about nothing else.
pub(super) fn of(question: &Question) -> Option<&'static Topic> {
    // "How are routes matched" asks for more than a list of routes.
    let most = if question.begins("how|why|wie|warum|comment|pourquoi|cómo") { 0 } else { 1 };
    TOPICS.iter().find(|topic| {
        let other = question.terms.iter().filter(|term| !topic.owns(&term.word));
        question.has(topic.cues) && other.count() <= most
    })
}

/// Words of the question that narrow the topic down.
pub(super) fn narrowing<'q>(
    topic: &Topic,
    question: &'q Question,
) -> impl Iterator<Item = &'q super::words::Term> {
    question.terms.iter().filter(|term| !topic.owns(&term.word))
}
