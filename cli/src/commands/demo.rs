//! `posse demo`: a scripted agent at work on the user's folder, on the fake model.

use super::follow::Form;
use super::{Common, Pickup, folder, run as run_command};
use crate::args::DemoOptions;
use crate::exit::{Code, Failure};
use crate::signals::Signals;
use posse::RunSpec;
use posse_testkit::{FakeModel, Script};

/// The model's name on the wire; the script answers to any.
const MODEL: &str = "anthropic/scripted-demo";
const PROMPT: &str = "Look around in this folder and tell me what is in it.";

pub async fn run(mut common: Common, options: DemoOptions) -> Result<Code, Failure> {
    let folder = folder(options.cwd.as_ref())?;
    let fake = FakeModel::start(Script::demo())
        .await
        .map_err(|error| Failure::internal(format!("the fake model does not start: {error}")))?;
    common.environment.keys = posse::Keys {
        anthropic_api_key: Some("demo".into()),
        anthropic_base_url: Some(fake.url()),
    };
    if common.global.db.is_none() {
        // Apart from real runs: their models are not to be had here.
        let database = common.database()?;
        common.global.db = Some(database.with_file_name("demo.db"));
    }
    let config = posse::config::Config::default();
    let form = if common.global.json { Form::Json } else { Form::Screen };
    let mut signals = Signals::listen()?;
    let mut screen = run_command::screen(&common, form);
    let runtime = common.runtime(&config, Pickup::Folder(folder.clone())).await?;
    let unfinished = run_command::unfinished(&runtime, &folder).await?;
    let run = match unfinished.first() {
        Some(run) => {
            screen.note("an earlier demo was interrupted here; it goes on where it stopped");
            runtime.resume(*run)
        }
        None => {
            let agent = config.agent.value.clone();
            let spec =
                RunSpec { model: Some(MODEL.to_owned()), ..RunSpec::new(agent, PROMPT, &folder) };
            runtime.start(spec).await?
        }
    };
    run_command::finish(&runtime, &run, Vec::new(), form, &mut screen, &mut signals).await
}
