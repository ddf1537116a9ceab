//! A tool source that is a program: it reads a line of JSON and answers with a line of JSON.

use posse::launch::{Process, Status};
use posse::protocol::ToolOutput;
use posse::{Answer, OpenSource, Program, SourceContext, SourceError, ToolContext, ToolSource};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The longest line that the program may write.
const LONGEST: usize = 100_000;

/// How long the program may take to end when it has closed its output.
const ENDING: Duration = Duration::from_secs(2);

/// Starts `program` for each run, and asks it what it offers.
pub struct LineSource {
    pub name: String,
    pub program: Program,
}

#[async_trait::async_trait]
impl ToolSource for LineSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn open(&self, context: &SourceContext) -> Result<Arc<dyn OpenSource>, SourceError> {
        // As far from the machine as a command of the run, and gone with what is returned.
        let process = context.start(&self.program).await?;
        Ok(Arc::new(Talk(Mutex::new(Partner { process, asked: 0 }))))
    }
}

/// A program that runs. One question at a time.
struct Talk(Mutex<Partner>);

struct Partner {
    process: Process,
    asked: u64,
}

#[async_trait::async_trait]
impl OpenSource for Talk {
    async fn tools(&self) -> Result<Vec<posse::protocol::ToolSpec>, SourceError> {
        let mut answer = self.0.lock().await.ask(json!({"ask": "tools"})).await?;
        serde_json::from_value(answer["tools"].take())
            .map_err(|error| SourceError::new(format!("its list of tools is unclear: {error}")))
    }

    async fn call(
        &self,
        name: &str,
        input: Value,
        context: &ToolContext,
    ) -> Result<Answer, SourceError> {
        let question = json!({"ask": "call", "tool": name, "input": input});
        let mut partner = self.0.lock().await;
        let answer = tokio::select! {
            answer = partner.ask(question) => answer?,
            // The answer may still come. The next call is not to read it, and so starts anew.
            () = context.cancel.cancelled() => return Err(SourceError::new("cancelled")),
        };
        let text = answer["text"].as_str().unwrap_or_default();
        Ok(ToolOutput::text(text).into())
    }
}

impl Partner {
    async fn ask(&mut self, mut question: Value) -> Result<Value, SourceError> {
        self.asked += 1;
        question["id"] = self.asked.into();
        if self.process.write_line(question.to_string().as_bytes()).await.is_err() {
            return Err(self.why_ended().await);
        }
        loop {
            let Some(line) = self.process.read_line(LONGEST).await? else {
                return Err(self.why_ended().await);
            };
            let answer: Value = serde_json::from_slice(&line)
                .map_err(|error| SourceError::new(format!("it did not write JSON: {error}")))?;
            // Whoever asked before may have gone without its answer.
            if answer["id"] == self.asked {
                return Ok(answer);
            }
        }
    }

    async fn why_ended(&mut self) -> SourceError {
        match tokio::time::timeout(ENDING, self.process.ended()).await {
            Ok(Ok(ended)) => {
                let how = match ended.status {
                    Status::Exited(code) => format!("exit code {code}"),
                    other => format!("{other:?}"),
                };
                SourceError::new(format!("its process ended: {how}: {}", ended.output.trim()))
            }
            Ok(Err(error)) => error.into(),
            Err(_) => SourceError::new("its process closed its output"),
        }
    }
}
