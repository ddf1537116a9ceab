//! `posse demo`: a scripted agent works on the user's folder, with the fake model.

use super::follow::{FollowedRun, Form, Viewer};
use super::run::follow_to_end;
use super::{Common, folder};
use crate::args::DemoOptions;
use crate::database::Database;
use crate::exit::{Code, Failure};
use posse::ModelChoice;
use posse::store::Filter;
use posse::{Extent, RunSpec, Status};
use posse_testkit::{FakeModel, Script};

/// The name of the model. The script answers to any name.
const MODEL: &str = "anthropic/scripted-demo";
const PROMPT: &str = "Look around in this folder and tell me what is in it.";

pub async fn run(mut common: Common, options: DemoOptions) -> Result<Code, Failure> {
    let folder = folder(options.cwd.as_ref())?;
    let fake = FakeModel::start(Script::demo())
        .await
        .map_err(|error| Failure::internal(format!("the fake model does not start: {error}")))?;
    let keys = posse::Keys::default().with("ANTHROPIC_API_KEY", "demo");
    common.keys = Some(keys.with("ANTHROPIC_BASE_URL", fake.url()));
    if common.global.db.is_none() {
        // Use a separate database: this command cannot call the models of real runs.
        common.global.db =
            Some(Database::default_file(&common.environment)?.with_file_name("demo.db"));
    }
    let config = posse::config::Config::default();
    let form = if common.global.json { Form::Json } else { Form::Screen };
    let mut viewer = Viewer::new(&common, form)?;
    let runtime = common.runtime(&config, posse::AgentCatalog::built_in().into()).await?;
    let result = async {
        let earlier = Filter {
            workspace: Some(folder.display().to_string()),
            status: vec![Status::Interrupted, Status::Crashed, Status::Queued],
            limit: 1,
            ..Filter::default()
        };
        let mut followee = match runtime.list(&earlier).await?.first() {
            Some(row) => {
                let run = row.id;
                viewer.screen.remark(&format!(
                    "an earlier demo of this folder was killed or interrupted after {} tool calls; \
                     continuing run {} where it stopped",
                    row.spending.tool_calls,
                    run.short()
                ));
                let recalled = viewer.recall(&runtime, row).await?;
                if row.state.paused {
                    runtime.unpause(run, "the user", Extent::Subtree).await?;
                }
                FollowedRun::again(runtime.resume(run), recalled)
            }
            None => {
                let agent = config.agent.value.clone();
                let spec = RunSpec::new(agent, PROMPT, &folder);
                let spec = RunSpec { models: ModelChoice::of(MODEL.to_owned()), ..spec };
                let (begun, events) = runtime.start_and_watch(spec).await?;
                FollowedRun::started(runtime.handle(begun.run()), events)
            }
        };
        follow_to_end(&runtime, &mut followee, &mut viewer).await
    }
    .await;
    viewer.close(&runtime).await;
    fake.shutdown().await;
    result
}
