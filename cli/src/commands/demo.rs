//! `posse demo`: a scripted agent at work on the user's folder, on the fake model.

use super::follow::{Form, Viewer};
use super::run::{follow_to_end, unfinished};
use super::{Common, Pickup, folder};
use crate::args::DemoOptions;
use crate::exit::{Code, Failure};
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
    let mut viewer = Viewer::new(&common, form)?;
    let runtime = common.runtime(&config, Pickup::Folder(folder.clone())).await?;
    let result = async {
        let run = match unfinished(&runtime, &config, &folder).await?.first() {
            Some(run) => {
                let again = "an earlier demo was interrupted here; it goes on where it stopped";
                viewer.screen.remark(again);
                runtime.resume(*run)
            }
            None => {
                let agent = config.agent.value.clone();
                let spec = RunSpec::new(agent, PROMPT, &folder);
                runtime.start(RunSpec { model: Some(MODEL.to_owned()), ..spec }).await?
            }
        };
        follow_to_end(&runtime, &run, &mut viewer).await
    }
    .await;
    viewer.close(&runtime).await;
    fake.shutdown().await;
    result
}
