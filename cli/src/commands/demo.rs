//! `posse demo`: a scripted agent at work on the user's folder, on the fake model.

use super::follow::{Form, Viewer};
use super::run::{follow_to_end, unfinished};
use super::{Common, Pickup, folder};
use crate::args::DemoOptions;
use crate::exit::{Code, Failure};
use posse::{RunSpec, Seq};
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
    let runtime = common.runtime(&config, Pickup::Named).await?;
    let result = async {
        let (run, after) = match unfinished(&runtime, &config, &folder).await?.first() {
            Some(run) => {
                let row = runtime.find(&run.to_string()).await?;
                viewer.screen.remark(&format!(
                    "an earlier demo was interrupted here, after {} tool calls; run {} goes on \
                     where it stopped",
                    row.tool_calls,
                    run.short()
                ));
                (runtime.resume(*run), row.last_seq)
            }
            None => {
                let agent = config.agent.value.clone();
                let spec = RunSpec::new(agent, PROMPT, &folder);
                let spec = RunSpec { model: Some(MODEL.to_owned()), ..spec };
                (runtime.start(spec).await?, Seq::ZERO)
            }
        };
        follow_to_end(&runtime, &run, after, &mut viewer).await
    }
    .await;
    viewer.close(&runtime).await;
    fake.shutdown().await;
    result
}
