//! Official client libraries accept the server: the Python packages of three vendors drive it.
//!
//! They live in a virtual environment that is made once, from `tests/python/requirements.txt`. Where it
//! cannot be made, these tests are skipped.

use crate::client::start;
use posse_testkit::{Conversation, Reply, Rule, Script, When, Wire, skipped};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Names a virtual environment that is ready for use.
const READY: &str = "POSSE_PYTHON_CLIENTS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python")
}

/// The Python of the virtual environment, or why there is none.
fn python() -> Result<PathBuf, String> {
    #[expect(clippy::disallowed_methods, reason = "only the test script knows where it is")]
    let ready = std::env::var_os(READY).filter(|path| !path.is_empty());
    let environment = match ready {
        Some(path) => PathBuf::from(path),
        None => {
            let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
            let environment = target.join("python-clients");
            install(&environment)?;
            environment
        }
    };
    Ok(environment.join("bin/python"))
}

/// Makes the environment, unless it is there. Tests run side by side: one makes it, all wait.
fn install(environment: &Path) -> Result<(), String> {
    let wanted = std::fs::read_to_string(folder().join("requirements.txt")).unwrap();
    let stamp = environment.join("installed.txt");
    let lock = std::fs::File::create(environment.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let place = environment.to_str().unwrap();
    let requirements = folder().join("requirements.txt");
    let pip = environment.join("bin/python");
    let steps: [(&Path, &[&str]); 2] = [
        (Path::new("python3"), &["-m", "venv", "--clear", place]),
        (
            &pip,
            &["-m", "pip", "install", "--quiet", "--requirement", requirements.to_str().unwrap()],
        ),
    ];
    for (program, arguments) in steps {
        let output = run(program, arguments, Variables::All);
        let output =
            output.map_err(|error| format!("{} does not start: {error}", program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            return Err(format!("`{}` failed: {last}", arguments[..2].join(" ")));
        }
    }
    std::fs::write(stamp, wanted).unwrap();
    Ok(())
}

/// Which variables of the environment a process sees.
enum Variables {
    All,
    /// No proxies, no keys, nothing that could lead elsewhere.
    None,
}

fn run(program: &Path, arguments: &[&str], variables: Variables) -> std::io::Result<Output> {
    #[expect(clippy::disallowed_methods, reason = "a test of other people's programs")]
    let mut command = std::process::Command::new(program);
    if matches!(variables, Variables::None) {
        command.env_clear();
    }
    command.args(arguments).output()
}

fn script() -> Script {
    let saying = |text: &str| Rule::when(When::any().last_user_contains(text));
    let call = |place: &str| json!({"place": place, "days": [1, 2.5]});
    Script::new()
        .model("fake-1")
        .rule(saying("limited").reply(Reply::error(429, "slow down").header("retry-after", "0")))
        .rule(saying("flaky").reply(Reply::error(503, "again").header("retry-after", "0")).once())
        .conversation(
            Conversation::when(When::any().first_user_contains("weather"))
                .reply(
                    Reply::thinking("Which place?")
                        .and_text("I look at two.")
                        .and_tool_call("weather", call("Aarhus"))
                        .and_tool_call("weather", call("Bergen")),
                )
                .reply(Reply::text("Last: {{last_tool_result}}")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("You said: {{last_user}}")))
}

/// Runs a program of `tests/python` against the server; it asserts by itself.
async fn check(program: &str, wire: Wire) {
    let fake = start(script()).await;
    let (path, url) = (folder().join(program), fake.url());
    let running = tokio::task::spawn_blocking(move || {
        let arguments = [path.to_str().unwrap(), &url];
        python().map(|python| run(&python, &arguments, Variables::None).unwrap())
    });
    let output = match running.await.unwrap() {
        Ok(output) => output,
        Err(reason) => return not_installed(&reason),
    };
    let (said, failed) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} failed\n{said}{failed}");
    assert!(fake.counts().wire(wire) >= 10, "{program} asked too little: {:?}", fake.counts());
}

fn not_installed(reason: &str) {
    skipped(&format!(
        "posse-testkit: the Python packages of vendors ({reason}; install python3 with its module \
         venv and let pip reach its index, or name in {READY} a virtual environment with what \
         testkit/tests/python/requirements.txt lists)"
    ));
}

#[tokio::test]
async fn the_anthropic_package_accepts_the_server() {
    check("anthropic_messages.py", Wire::Anthropic).await;
}

#[tokio::test]
async fn the_openai_package_accepts_the_server_as_chat() {
    check("openai_chat.py", Wire::OpenAiChat).await;
}

#[tokio::test]
async fn the_openai_package_accepts_the_server_as_responses() {
    check("openai_responses.py", Wire::OpenAiResponses).await;
}

#[tokio::test]
async fn the_google_package_accepts_the_server() {
    check("gemini.py", Wire::Gemini).await;
}
