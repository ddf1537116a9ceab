//! `posse fake-model`: a scripted model over HTTP, for testing agents.

use super::Common;
use crate::args::FakeModelOptions;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::signals::Signals;
use posse_testkit::{FakeModel, Script};

pub async fn run(common: Common, options: FakeModelOptions) -> Result<Code, Failure> {
    let path = options.script.display();
    let text = std::fs::read_to_string(&options.script)
        .map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?;
    let script =
        Script::parse(&text).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
    // Captured requests would only pile up: the server may run for days, and nothing reads them.
    let script = script.without_capture();
    if !options.listen.ip().is_loopback() {
        return Err(Failure::usage(format!("{} is not a loopback address", options.listen)).hint(
            "the fake model answers anyone who asks; give it an address such as 127.0.0.1:8080",
        ));
    }
    let mut signals = Signals::listen()?;
    let fake = FakeModel::start_on(script, options.listen)
        .await
        .map_err(|error| Failure::usage(error.to_string()))?;
    if common.global.json {
        print::json(&serde_json::json!({"url": fake.url()}))?;
    } else {
        print::line(fake.url())?;
        if !common.global.quiet {
            let url = fake.url();
            print::note(format!(
                "serving {path}; use it with ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any, or \
                 OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=any, or GEMINI_BASE_URL={url}/v1beta \
                 GEMINI_API_KEY=any; Ctrl-C ends it"
            ));
        }
    }
    signals.next().await;
    if !common.global.quiet {
        print::note(format::count(fake.count() as u64, "request"));
    }
    fake.shutdown().await;
    Ok(Code::Done)
}
